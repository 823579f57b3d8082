//! The trace of a world: a hash over all lines, and the last lines to read.

use std::{
    collections::VecDeque,
    fmt::{self, Write},
};

/// How many lines are kept.
const LINES: usize = 20_000;

pub(super) struct Trace {
    /// FNV-1a over all lines.
    hash: u64,
    lines: VecDeque<String>,
}

impl Default for Trace {
    fn default() -> Self {
        Self { hash: 0xcbf2_9ce4_8422_2325, lines: VecDeque::with_capacity(LINES) }
    }
}

impl Trace {
    /// Adds a line, with its time in milliseconds since the beginning.
    pub(super) fn add(&mut self, at_millis: u64, what: fmt::Arguments<'_>) {
        let mut line =
            if self.lines.len() == LINES { self.lines.pop_front().unwrap_or_default() } else { String::new() };
        line.clear();
        // Writing to a text does not fail.
        let _ = write!(line, "{:>9}.{:03} {what}", at_millis / 1000, at_millis % 1000);
        for byte in line.bytes() {
            self.hash = (self.hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self.lines.push_back(line);
    }

    pub(super) fn hash(&self) -> u64 {
        self.hash
    }

    pub(super) fn take_lines(&mut self) -> Vec<String> {
        std::mem::take(&mut self.lines).into()
    }
}
