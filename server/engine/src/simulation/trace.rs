//! What happened on a simulated disk: a hash over all calls, and the last of them to read.

use std::{
    collections::VecDeque,
    fmt::{self, Display, Formatter},
    io,
    path::Path,
    sync::Arc,
};

/// How many lines are kept.
const LINES: usize = 400;

/// All calls of a disk.
pub(super) struct Trace {
    /// How many there were.
    pub(super) calls: u64,
    /// Of all of them, FNV-1a.
    pub(super) hash: u64,
    lines: VecDeque<Line>,
}

enum Line {
    Call { number: u64, call: Call, error: Option<String> },
    Note(String),
}

/// A call, and the numbers that it was given.
#[derive(Clone)]
pub(super) struct Call {
    pub(super) name: &'static str,
    pub(super) path: Arc<Path>,
    pub(super) numbers: [u64; 2],
}

impl Trace {
    pub(super) fn new() -> Self {
        Self { calls: 0, hash: 0xcbf2_9ce4_8422_2325, lines: VecDeque::with_capacity(LINES) }
    }

    /// Adds a call that has ended.
    pub(super) fn add<T>(&mut self, call: Call, outcome: &io::Result<T>) {
        self.hash(call.name.as_bytes());
        self.hash(call.path.as_os_str().as_encoded_bytes());
        call.numbers.iter().for_each(|number| self.hash(&number.to_le_bytes()));
        let error = outcome.as_ref().err().map(ToString::to_string);
        self.hash(error.as_deref().unwrap_or("done").as_bytes());
        self.line(Line::Call { number: self.calls, call, error });
    }

    /// Adds something that is no call.
    pub(super) fn note(&mut self, note: String) {
        self.hash(note.as_bytes());
        self.line(Line::Note(note));
    }

    /// Takes bytes into the hash.
    pub(super) fn hash(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn line(&mut self, line: Line) {
        if self.lines.len() == LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }
}

impl Display for Trace {
    fn fmt(&self, to: &mut Formatter<'_>) -> fmt::Result {
        for line in &self.lines {
            match line {
                Line::Note(note) => writeln!(to, "        {note}")?,
                Line::Call { number, call: Call { name, path, numbers }, error } => {
                    write!(to, "{number:>7} {name} {}", path.display())?;
                    if *numbers != [0, 0] {
                        write!(to, " {} {}", numbers[0], numbers[1])?;
                    }
                    match error {
                        Some(error) => writeln!(to, ": {error}")?,
                        None => writeln!(to)?,
                    }
                }
            }
        }
        Ok(())
    }
}
