//! What is done to files while no process uses them: restores, and bits that flip.

use std::path::PathBuf;

use journaled_tree::{Sources, simulation};

use super::run::Run;
use crate::workload::{Bytes, count};

impl Run<'_> {
    /// A path that nothing has.
    pub(super) fn new_path(&mut self, what: &str) -> PathBuf {
        self.counts.paths += 1;
        format!("/{what}-{}", self.counts.paths).into()
    }

    /// Restores what the journal and the last backup hold, which is everything, and goes on with that.
    pub(super) fn restore_instead(&mut self) {
        // A disk that still fails would fail this too.
        let target = self.new_path("restored");
        let (journal, backup) = (self.data.join("journal"), self.backup.clone().map(|(path, _)| path));
        let sources = Sources { backup: backup.as_deref(), journal: Some(&journal), until: None };
        match simulation::restore(&self.disk, &sources, &target, Bytes) {
            Ok(_) => {
                self.counts.restores += 1;
                (self.data, self.is_pruned) = (target, true);
            }
            Err(error) => {
                assert!(self.disk.has_crashed(), "a damaged store cannot be restored: {error}");
            }
        }
    }

    /// Restores the last backup, or the journal, into a directory of its own; perhaps with a crash on the way.
    pub(super) fn restore_beside(&mut self) {
        if self.is_pruned && self.backup.is_none() || !self.disk.has(&self.data.join("journal.json")) {
            return;
        }
        let target = self.new_path("restored");
        let journal = self.data.join("journal");
        let of_backup = self.backup.clone().filter(|_| self.is_pruned || self.rng.bool());
        let with_journal = of_backup.is_none() || self.rng.bool();
        let sources = Sources {
            backup: of_backup.as_ref().map(|(path, _)| path.as_path()),
            journal: with_journal.then_some(&*journal),
            until: None,
        };
        if self.rng.bool() {
            self.disk.crash_after(self.rng.u64(..100));
        }
        let restored = simulation::restore(&self.disk, &sources, &target, Bytes);
        let crashed = self.disk.has_crashed();
        if let Err(error) = restored {
            // Of a journal whose making was cut off nothing can be restored, and nothing was acknowledged.
            assert!(crashed || self.least == 0, "a restore fails: {error}");
            self.disk.note(format!("no restore: {error}"));
        }
        self.disk.crash();
        self.restart();
        if self.disk.has(&target) {
            let (data, least, most) = (std::mem::replace(&mut self.data, target), self.least, self.most);
            if let Some((_, commits)) = of_backup.filter(|_| !with_journal) {
                (self.least, self.most) = (commits, commits);
            }
            self.counts.restores += 1;
            let (database, closing) = self.open().unwrap();
            drop(database);
            closing.wait();
            (self.data, self.least, self.most) = (data, least, most);
        }
    }

    /// Cuts the newest journal file off. A start refuses it, and finds everything once it is whole again; or nothing is missing.
    pub(super) fn cut_the_newest_file_off(&mut self) {
        let mut files = self.disk.files(&self.data.join("journal"));
        files.retain(|(path, _)| path.extension().is_some_and(|suffix| suffix == "journal"));
        let Some((path, length)) = files.pop() else { return };
        let left = if self.rng.u8(..4) == 0 { 0 } else { self.rng.u64(..=length) };
        let Some(put_back) = self.disk.cut_off(&path, left) else { return };
        self.counts.cuts += 1;
        match self.options().open() {
            Ok((database, closing)) => {
                self.check(&database);
                (self.least, self.most) = (count(&database), count(&database));
                drop(database);
                closing.wait();
            }
            Err(error) => {
                self.disk.note(format!("refused: {error}"));
                self.counts.refused += 1;
                put_back();
            }
        }
    }

    /// Changes a bit in a closed journal file: nobody takes what is damaged for the truth.
    pub(super) fn flip_a_bit(&mut self) {
        let files = self.disk.files(&self.data.join("journal"));
        // A file is closed if it is compressed or comes before one that is.
        let compressed = files.iter().rposition(|(path, _)| path.extension().is_some_and(|suffix| suffix == "zst"));
        let closed: Vec<_> = files.iter().take(compressed.map_or(0, |at| at + 1)).filter(|file| file.1 > 0).collect();
        if closed.is_empty() {
            return;
        }
        let (path, length) = closed[self.rng.usize(..closed.len())].clone();
        let bit = self.rng.usize(..usize::try_from(length).unwrap() * 8);
        self.disk.note(format!("bit {bit} of {} flips", path.display()));
        self.disk.flip_bit(&path, bit);
        self.counts.flips += 1;
        let faults = simulation::check_journal(&self.disk, &self.data);
        if faults.is_ok_and(|faults| faults.is_empty()) && !self.is_pruned {
            // The bit means nothing, or the file is no part of the journal.
            let target = self.new_path("restored");
            let journal = self.data.join("journal");
            let sources = Sources { journal: Some(&journal), ..Sources::default() };
            simulation::restore(&self.disk, &sources, &target, Bytes).unwrap();
            let data = std::mem::replace(&mut self.data, target);
            let (least, most) = (self.least, self.most);
            let (database, closing) = self.open().unwrap();
            drop(database);
            closing.wait();
            (self.data, self.least, self.most) = (data, least, most);
        }
        self.disk.flip_bit(&path, bit);
    }
}
