//! Tests of the journal's parts: entries after damage, lists, unused files, copies.

use std::fs;

use super::{
    FILE_BYTES,
    copy::JournalCopy,
    entry::{EMPTY_BYTES, Head, MAGIC, encode, is_entry_behind, read_entries},
    file_list::FileList,
    files::{JournalFile, file_in},
    reader::is_begun,
    tests::{batch, entries_after, new_journal, three_entries},
    writer::Journal,
};
use crate::{disk::SystemDisk, error::JournalError, line::Lines};

fn entry(number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    encode(&mut bytes, number, &batch("key", Some("a value"))).unwrap();
    bytes
}

/// A file without entries.
fn empty() -> [u8; 16] {
    Head::bytes(EMPTY_BYTES)
}

#[test]
fn a_file_tells_where_its_last_entry_is() {
    let bytes = [&empty()[..], &entry(1), &entry(2), &[0; 50]].concat();
    let mut last = 0;
    let found = read_entries(&bytes, "journal".as_ref(), &mut last, 0, &mut |_, _| Ok(())).unwrap();
    let one = entry(1).len() as u64;
    assert_eq!((found, last), (EMPTY_BYTES + one..EMPTY_BYTES + 2 * one, 2));
}

#[test]
fn an_entry_after_damage_counts_only_with_a_plausible_number() {
    let damaged = 20;
    let file = |number| [&[1; 100][..], &vec![7; damaged], &entry(number), &[0; 9]].concat();
    let rest = file(9).len() as u64 - 100;
    // The damage may have destroyed one entry for each 16 bytes.
    let most = 3 + 2 + rest / 16;
    for (number, is_behind) in [(3, false), (4, false), (5, true), (6, true), (most, true), (most + 1, false)] {
        assert_eq!(is_entry_behind(&file(number), 100, 3), is_behind, "{number}");
    }
}

#[test]
fn a_list_of_files_that_is_empty_unsorted_or_has_a_repeated_file_or_file_zero_is_damaged() {
    let (_held, directory, _journal) = new_journal();
    for files in [vec![], vec![2, 1], vec![1, 1], vec![0], vec![0, 1]] {
        FileList::of(files.clone()).write(&SystemDisk, &directory).unwrap();
        let read = FileList::read(&SystemDisk, &directory);
        assert!(matches!(read, Err(JournalError::Damaged { offset: 0, .. })), "{files:?}");
    }
    FileList::of(vec![1, 2]).write(&SystemDisk, &directory).unwrap();
    assert_eq!(FileList::read(&SystemDisk, &directory).unwrap().unwrap().files, [1, 2]);
}

#[test]
fn a_file_with_only_a_whole_head_is_unused() {
    let (_held, directory, _journal) = new_journal();
    let file = JournalFile::new(&directory, 2);
    assert!(!file.is_unused(&SystemDisk).unwrap(), "it is missing");
    for (bytes, is_unused) in [
        (&b""[..], false),
        (&MAGIC[..5], false),
        (&empty()[..15], false),
        (&empty(), true),
        (&[&empty()[..], &[0; 500]].concat(), true),
        (&[&Head::bytes(500)[..], &[0; 8]].concat(), true),
        (&[&Head::bytes(500)[..], &[0; 7]].concat(), false),
        (&[&empty()[..], &[0; 500], &[1]].concat(), false),
        (&[&empty()[..], &entry(2)].concat(), false),
        (b"something else", false),
    ] {
        fs::write(file_in(&directory, 2), bytes).unwrap();
        assert_eq!(file.is_unused(&SystemDisk).unwrap(), is_unused, "{bytes:?}");
    }
}

#[test]
fn a_file_with_entries_that_is_not_listed_yet_belongs_to_the_journal() {
    let (_held, directory, _) = three_entries();
    fs::write(file_in(&directory, 4), [&empty()[..], &entry(4)].concat()).unwrap();
    assert_eq!(entries_after(&directory, 0).unwrap().len(), 4);
}

#[test]
fn a_missing_file_is_refused_if_the_unused_one_after_it_begins_too_late() {
    let (_held, directory, path) = three_entries();
    fs::remove_file(&path).unwrap();
    fs::write(file_in(&directory, 4), empty()).unwrap();
    FileList::of(vec![1, 4]).write(&SystemDisk, &directory).unwrap();
    assert!(matches!(entries_after(&directory, 2), Err(JournalError::Gone { path: gone, first: 1 }) if gone == path));
    assert_eq!(entries_after(&directory, 3).unwrap(), []);
}

#[test]
fn a_journal_counts_as_begun_once_it_may_have_entries() {
    let (held, directory, _journal) = new_journal();
    let is_begun = || is_begun(&SystemDisk, &directory).unwrap();
    assert!(!is_begun());
    FileList::of(vec![1, 4]).write(&SystemDisk, &directory).unwrap();
    assert!(is_begun(), "its second file is listed");
    FileList::of(vec![1]).write(&SystemDisk, &directory).unwrap();
    fs::remove_file(file_in(&directory, 1)).unwrap();
    assert!(is_begun(), "its listed file is missing");
    fs::write(file_in(&directory, 1), "").unwrap();
    assert!(is_begun(), "it was emptied");
    fs::write(file_in(&directory, 1), [&empty()[..], &entry(1)].concat()).unwrap();
    assert!(is_begun(), "it has an entry");
    fs::remove_file(held.path().join("journal.json")).unwrap();
    assert!(is_begun(), "it has an entry and no list");
    fs::remove_dir_all(&directory).unwrap();
    assert!(!is_begun());
}

#[test]
fn a_short_copy_has_one_file_with_entries_and_an_empty_one() {
    for (entries, files) in [(0, vec![5]), (1, vec![5, 6]), (12, vec![5, 17])] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("journal");
        fs::create_dir(&path).unwrap();
        let mut copy = JournalCopy::create(&SystemDisk, &path, 5).unwrap();
        for _ in 0..entries {
            copy.append(&batch("key", Some("a value"))).unwrap();
        }
        copy.finish(Lines::default()).unwrap();
        assert_eq!(FileList::read(&SystemDisk, &path).unwrap().unwrap().files, files);
        let last = files.last().map(|first| fs::read(file_in(&path, *first)).unwrap());
        assert_eq!(last.as_deref(), Some(&empty()[..]));
    }
}

#[test]
fn a_file_of_a_copy_ends_once_it_exceeds_a_journal_files_length() {
    let one = entry(1).len() - "a value".len();
    let full = usize::try_from(FILE_BYTES - EMPTY_BYTES).unwrap() - one;
    for (value, files) in [(full, vec![1, 3]), (full + 1, vec![1, 2, 3])] {
        let directory = tempfile::tempdir().unwrap();
        let mut copy = JournalCopy::create(&SystemDisk, directory.path(), 1).unwrap();
        copy.append(&batch("key", Some(&"a".repeat(value)))).unwrap();
        copy.append(&batch("key", Some("a value"))).unwrap();
        copy.finish(Lines::default()).unwrap();
        assert_eq!(FileList::read(&SystemDisk, directory.path()).unwrap().unwrap().files, files);
    }
}

#[test]
fn zeros_are_written_only_when_the_next_entry_has_no_room() {
    let (_held, directory, mut journal) = new_journal();
    let one = entry(1).len();
    journal.set_file_bytes(2 * one as u64);
    let length = || fs::metadata(file_in(&directory, 1)).unwrap().len();
    for entries in [3, 3, 3, 6, 6, 6, 9] {
        journal.append(&batch("key", Some("a value"))).unwrap();
        assert_eq!(length(), EMPTY_BYTES + (entries * one) as u64);
    }
}

#[test]
fn a_new_journal_expects_an_empty_tree_and_writes_zeros_up_to_its_files_length() {
    let (_held, directory, mut journal) = new_journal();
    assert_eq!(journal.in_tree(), 0);
    journal.set_file_bytes(4096);
    journal.append(&batch("key", Some("a value"))).unwrap();
    let length = fs::metadata(file_in(&directory, 1)).unwrap().len();
    assert_eq!(length, EMPTY_BYTES + entry(1).len() as u64 + 4096);
}

#[test]
fn a_journal_without_a_list_applies_its_last_file_again() {
    let (held, directory, mut journal) = new_journal();
    for number in 1..=5 {
        journal.append(&batch("key", Some("a value"))).unwrap();
        if number == 2 {
            journal.rotate(0).unwrap();
        }
    }
    for _ in 0..2 {
        fs::remove_file(held.path().join("journal.json")).unwrap();
        let applied: Vec<_> = entries_after(&directory, 5).unwrap().into_iter().map(|(number, _)| number).collect();
        assert_eq!(applied, [3, 4, 5]);
        // A file that was begun but never used changes nothing.
        journal.rotate(0).unwrap();
    }
}

#[cfg(feature = "simulation")]
#[test]
fn an_unsynced_entry_survives_a_power_cut_after_it_is_written_again() {
    use std::{path::Path, sync::Arc};

    use super::reader::write_last_again;
    use crate::{
        disk::{Disk, Open},
        simulation::{Crash, SimulatedDisk},
    };

    let directory = Path::new("/journal");
    let kept_after = |seed, is_written_again: bool| {
        let simulated = SimulatedDisk::new(seed);
        let disk: Arc<dyn Disk> = Arc::new(simulated.clone());
        let mut journal = Journal::create(&disk, directory).unwrap();
        journal.append(&batch("key", Some("a value"))).unwrap();
        let file = disk.open(&file_in(directory, 1), Open::Write).unwrap();
        file.write_all_at(&entry(2), EMPTY_BYTES + entry(1).len() as u64).unwrap();
        if is_written_again {
            write_last_again(&*disk, directory).unwrap();
        }
        simulated.crash();
        simulated.restart(Crash::PowerCut);
        let mut kept = 0;
        Journal::open(&disk, directory, 0, |_, _| {
            kept += 1;
            Ok(())
        })
        .unwrap();
        kept
    };
    assert!((0..50).all(|seed| kept_after(seed, true) == 2));
    assert!((0..50).any(|seed| kept_after(seed, false) == 1), "a power cut can lose what was not synced");
}

#[cfg(feature = "simulation")]
#[test]
fn an_entry_that_one_start_did_not_find_never_comes_back() {
    use std::{path::Path, sync::Arc};

    use crate::{
        disk::{Disk, Open},
        simulation::{Crash, SimulatedDisk},
    };

    let directory = Path::new("/journal");
    let entries = |disk: &Arc<dyn Disk>| {
        let mut found = 0;
        let opened = Journal::open(disk, directory, 0, |_, _| {
            found += 1;
            Ok(())
        });
        opened.map(|_| found).unwrap()
    };
    let found_after = |seed, is_started: bool| {
        let simulated = SimulatedDisk::new(seed);
        let disk: Arc<dyn Disk> = Arc::new(simulated.clone());
        let mut journal = Journal::create(&disk, directory).unwrap();
        journal.append(&batch("key", Some("a value"))).unwrap();
        journal.rotate(0).unwrap();
        journal.append(&batch("key", Some("another value"))).unwrap();
        let file = disk.open(&file_in(directory, 2), Open::Write).unwrap();
        file.write_all_at(&empty(), 0).unwrap();
        file.sync_all().unwrap();
        file.set_length(EMPTY_BYTES).unwrap();
        if is_started {
            assert_eq!(entries(&disk), 1);
        }
        simulated.crash();
        simulated.restart(Crash::PowerCut);
        entries(&disk)
    };
    assert!((0..50).all(|seed| found_after(seed, true) == 1));
    assert!((0..50).any(|seed| found_after(seed, false) == 2), "a power cut can bring back what was cut off");
}
