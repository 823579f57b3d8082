//! The history of a simulated disk: a hash of all calls, and the last calls as text.

use std::{collections::VecDeque, fmt::Write as _, io, path::Path};

const LINES: usize = 400;

pub(super) struct Trace {
    pub(super) calls: u64,
    /// The FNV-1a hash of all calls and notes.
    pub(super) hash: u64,
    lines: VecDeque<String>,
}

/// A call and its numeric arguments.
#[derive(Clone, Copy)]
pub(super) struct Call<'c> {
    pub(super) name: &'static str,
    pub(super) path: &'c Path,
    pub(super) numbers: [u64; 2],
}

impl Trace {
    pub(super) fn new() -> Self {
        Self { calls: 0, hash: 0xcbf2_9ce4_8422_2325, lines: VecDeque::with_capacity(LINES) }
    }

    /// Adds a call that has ended.
    pub(super) fn add<T>(&mut self, call: Call<'_>, outcome: &io::Result<T>) {
        let Call { name, path, numbers } = call;
        let mut line = format!("{:>7} {name} {}", self.calls, path.display());
        if numbers != [0, 0] {
            let _ = write!(line, " {} {}", numbers[0], numbers[1]);
        }
        if let Err(error) = outcome {
            let _ = write!(line, ": {error}");
        }
        self.note(line);
    }

    pub(super) fn note(&mut self, line: String) {
        self.hash(line.as_bytes());
        if self.lines.len() == LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    pub(super) fn hash(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    pub(super) fn story(&self) -> String {
        self.lines.iter().flat_map(|line| [line, "\n"]).collect()
    }
}
