//! The log: lines on the standard error stream, filtered by `PAYMENTS_LOG`.
//!
//! A running server must survive whoever reads its log: a pipe that is full or closed, a full disk. So a thread writes the lines,
//! and nobody else in a running server writes to this stream.

mod queue;
pub mod subscriber;
pub mod terminal;

use std::{
    fmt::Display,
    io::{self, Write, stderr},
    sync::{LazyLock, OnceLock},
    time::Duration,
};

use prometheus_client::metrics::counter::Counter;

use self::queue::Queue;
use crate::log::terminal::visible;

/// How long the last lines may take to be written when the process ends.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(1);

/// The lines of a running server that wait. A command writes its lines itself.
static QUEUE: OnceLock<Queue> = OnceLock::new();
/// The lines that were dropped because nobody read the log.
pub static DROPPED: LazyLock<Counter> = LazyLock::new(Counter::default);

/// Writes a line that no filter drops, with its control characters escaped. A stream that cannot be written stops nobody.
pub fn say(line: impl Display) {
    let _ = writeln!(Lines, "{}", visible(&line.to_string()));
}

/// Waits a moment until the last lines are written. For the end of the process.
pub fn flush() {
    if let Some(queue) = QUEUE.get() {
        queue.flush(FLUSH_TIMEOUT);
    }
}

struct Lines;

impl Write for Lines {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        match QUEUE.get() {
            Some(queue) => queue.push(line),
            None => stderr().write_all(line)?,
        }
        Ok(line.len())
    }

    fn write_fmt(&mut self, line: std::fmt::Arguments<'_>) -> io::Result<()> {
        // At once: the parts of a line would be lines of their own.
        self.write_all(line.to_string().as_bytes())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
