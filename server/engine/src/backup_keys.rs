//! The keys of a backup.

use std::{collections::BTreeMap, path::Path};

use crate::{
    backup::{Manifest, RECORDS},
    disk::SystemDisk,
    error::BackupError,
    journal::{self, DIRECTORY, file_in},
    writes::APPLIED,
};

/// Reads a whole backup. Passes each key of the database that a restore would make to `each`, once, in no order.
///
/// In memory are one entry of the backup at a time, and the keys that were written during the backup.
///
/// # Errors
/// If the backup cannot be read or is not whole.
pub fn backup_keys(backup: &Path, mut each: impl FnMut(&[u8])) -> Result<(), BackupError> {
    let disk = &SystemDisk;
    let manifest = Manifest::read(disk, backup)?;
    // Whether the journal leaves each key there. It overrides the records.
    let mut rewritten = BTreeMap::new();
    let journal = file_in(&backup.join(DIRECTORY), manifest.from + 1);
    let last = journal::read_pieces(disk, &journal, manifest.from + 1, |writes| {
        rewritten.extend(writes.into_iter().map(|(key, value)| (key, value.is_some())));
        Ok(())
    })?;
    let mut records = 0;
    let pieces = journal::read_pieces(disk, &backup.join(RECORDS), 1, |writes| {
        records += writes.len() as u64;
        writes.keys().filter(|key| !rewritten.contains_key(*key)).for_each(|key| each(key));
        Ok(())
    })?;
    if (last, pieces, records) != (manifest.to, manifest.pieces, manifest.records) {
        return Err(BackupError::NotWhole { backup: backup.to_owned(), what: "it holds less than it says" });
    }
    rewritten.iter().filter(|(_, is_there)| **is_there).for_each(|(key, _)| each(key));
    // A restore writes this key.
    each(APPLIED);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{
        Database, Options, View,
        error::TreeError,
        layout::tests::Plain,
        restore::{Sources, restore},
    };

    fn commit(database: &Database, change: fn(&mut View<'_>)) {
        let committed = database.commit_blocking(move |view| {
            change(view);
            Ok::<_, TreeError>(())
        });
        committed.unwrap();
    }

    #[test]
    fn a_backup_has_the_keys_of_the_database_restored_from_it() {
        let directory = tempfile::tempdir().unwrap();
        let within = |name: &str| directory.path().join(name);
        let keys_of = |name: &str| {
            let (database, closing) = Options::new(within(name), Plain).open().unwrap();
            let keys: Vec<_> = database.range(..).map(|entry| entry.unwrap().0).collect();
            drop(database);
            closing.wait();
            keys
        };
        let (database, closing) = Options::new(within("store"), Plain).open().unwrap();
        let commit = |change| commit(&database, change);
        commit(|view| ["a", "b", "c"].into_iter().for_each(|key| view.put(key, key)));
        // Some of these changes may be in the tree by now, and others only in the journal.
        commit(|view| {
            view.remove("b");
            view.put("c", "again");
            view.put("d", "d");
        });
        tokio::runtime::Runtime::new().unwrap().block_on(database.back_up(within("backup"))).unwrap();
        drop(database);
        closing.wait();
        let mut keys = Vec::new();
        backup_keys(&within("backup"), |key| keys.push(key.to_vec())).unwrap();
        keys.sort();
        let sources = Sources { backup: Some(&within("backup")), ..Sources::default() };
        restore(&sources, &within("restored"), Plain).unwrap();
        assert_eq!(keys, keys_of("restored"));
        assert_eq!(keys, keys_of("store"));
        assert!(keys.contains(&b"d".to_vec()) && !keys.contains(&b"b".to_vec()));
    }

    #[test]
    fn a_backup_that_lost_bytes_has_no_keys() {
        let directory = tempfile::tempdir().unwrap();
        let backup = directory.path().join("backup");
        let (database, closing) = Options::new(directory.path().join("store"), Plain).open().unwrap();
        commit(&database, |view| view.put("a", "a"));
        tokio::runtime::Runtime::new().unwrap().block_on(database.back_up(backup.clone())).unwrap();
        drop(database);
        closing.wait();
        let journal = fs::read_dir(backup.join(DIRECTORY)).unwrap().next().unwrap().unwrap().path();
        for file in [journal, backup.join(RECORDS)] {
            let bytes = fs::read(&file).unwrap();
            for length in [0, 15, bytes.len() - 1] {
                fs::write(&file, &bytes[..length]).unwrap();
                assert!(backup_keys(&backup, |_| ()).is_err(), "{} of {length} bytes", file.display());
            }
            fs::write(&file, &bytes).unwrap();
        }
        backup_keys(&backup, |_| ()).unwrap();
        fs::remove_file(backup.join("backup.json")).unwrap();
        assert!(matches!(backup_keys(&backup, |_| ()), Err(BackupError::NotWhole { .. })));
    }
}
