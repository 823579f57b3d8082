//! Makes a database of a backup, of a journal, or of both.

use std::{
    fs::{self, DirBuilder},
    os::unix::fs::DirBuilderExt,
    path::Path,
    sync::Arc,
};

use crate::{
    backup::{Manifest, RECORDS, make_empty, refuse_if_used, sync_parent},
    error::BackupError,
    journal::{self, JournalCopy},
    layout::Layout,
    replay::Replay,
    tree::{self, Tree},
    until::{LeftOut, Restored, Until},
    whole_file,
    writes::{APPLIED, Writes, committed_at, set_number},
};

/// What a database is made of.
#[derive(Debug, Default)]
pub struct Sources<'p> {
    /// A backup. Without one the journal must begin with the first change there ever was.
    pub backup: Option<&'p Path>,
    /// The `journal` directory of the database that was lost: with it nothing is lost that was acknowledged.
    pub journal: Option<&'p Path>,
    /// Where to stop; after the last change unless given.
    pub until: Option<Until>,
}

/// Makes a database in a directory that is missing or empty.
///
/// # Errors
/// Where the directory is in use, the sources are damaged or do not meet, or the disk is full. The directory is then as it
/// was.
pub fn restore(sources: &Sources<'_>, directory: &Path, layout: impl Layout) -> Result<Restored, BackupError> {
    let layout: Arc<dyn Layout> = Arc::new(layout);
    let manifest = sources.manifest(layout.format())?;
    refuse_if_used(directory)?;
    // Under another name until it is whole, so that a crash leaves no half of a database to be opened.
    let making = whole_file::beside(directory, "restoring");
    if making.exists() {
        // A restore that was refused or killed did not come to an end.
        fs::remove_dir_all(&making)?;
    }
    make_empty(&making)?;
    let new_journal = making.join(journal::DIRECTORY);
    DirBuilder::new().mode(0o700).create(&new_journal)?;
    let mut restored = Restored { last: 0, left_out: None };
    tree::make(&making.join(tree::DIRECTORY), &layout, |tree| {
        restored = sources.put_together(manifest.as_ref(), tree, &new_journal)?;
        Ok::<_, BackupError>(())
    })?;
    for made in [&new_journal, &making] {
        whole_file::sync_directory(made)?;
    }
    fs::rename(&making, directory)?;
    sync_parent(directory)?;
    Ok(restored)
}

impl Sources<'_> {
    fn manifest(&self, known: u32) -> Result<Option<Manifest>, BackupError> {
        let Some(backup) = self.backup else { return Ok(None) };
        match Manifest::read(backup) {
            None => Err(BackupError::NotWhole { backup: backup.to_owned() }),
            // Records of an earlier version are brought up to date when the database is opened.
            Some(Manifest { format, .. }) if format > known => Err(BackupError::Format { found: format, known }),
            manifest => Ok(manifest),
        }
    }

    fn put_together(
        &self,
        manifest: Option<&Manifest>,
        tree: &Tree,
        new_journal: &Path,
    ) -> Result<Restored, BackupError> {
        if let (Some(backup), Some(manifest)) = (self.backup, manifest) {
            self.copy_records(backup, manifest, tree)?;
        }
        let (from, to) = manifest.map_or((0, 0), |manifest| (manifest.from, manifest.to));
        let mut copy = JournalCopy::create(new_journal, from + 1)?;
        let mut replay = Replay::new(tree);
        let mut last = from;
        // The last entry up to the place that is asked for.
        let mut end = from;
        let (mut left_out, mut is_beyond) = (None, false);
        let until = match self.until {
            Some(Until::Entry(entry)) => Some(entry),
            _ => None,
        };
        for source in [self.backup.map(|backup| backup.join(journal::DIRECTORY)), self.journal.map(Path::to_owned)] {
            let Some(source) = source else { continue };
            last = last.max(journal::read_closed(&source, last, until, |number, writes| {
                // Entries have one order, that of their numbers, whatever the clock said: what comes after the first that
                // is beyond the place is beyond it too.
                is_beyond |= self.ends_before(number, &writes);
                if is_beyond {
                    left_out = Some(LeftOut::with(left_out, number, committed_at(&writes)));
                    return Ok(());
                }
                copy.append(&writes)?;
                end = number;
                Ok(replay.add(number, writes)?)
            })?);
            if last < to {
                return Err(BackupError::Short { last, to });
            }
        }
        if let Some(backup) = self.backup.filter(|_| end < to) {
            // Its records are of moments up to its end, and only its whole journal makes them of one.
            return Err(BackupError::Later { backup: backup.to_owned() });
        }
        copy.finish()?;
        replay.finish()?;
        let mut writes = Writes::new();
        set_number(&mut writes, APPLIED, end);
        tree.apply(&writes)?;
        Ok(Restored { last: end, left_out })
    }

    /// Puts a backup's records in the tree.
    fn copy_records(&self, backup: &Path, manifest: &Manifest, tree: &Tree) -> Result<(), BackupError> {
        let (mut records, mut is_later) = (0, false);
        let pieces = journal::read_pieces(&backup.join(RECORDS), |writes| {
            records += writes.len() as u64;
            is_later |= self.ends_before(manifest.from, &writes);
            Ok(tree.apply_stored(writes)?)
        })?;
        if (pieces, records) != (manifest.pieces, manifest.records) {
            return Err(BackupError::Damaged { backup: backup.to_owned() });
        }
        if is_later {
            return Err(BackupError::Later { backup: backup.to_owned() });
        }
        Ok(())
    }

    /// Whether an entry, or a piece of records as of one, comes after the place that is asked for.
    fn ends_before(&self, number: u64, writes: &Writes) -> bool {
        self.until.is_some_and(|until| until.is_before(number, committed_at(writes)))
    }
}
