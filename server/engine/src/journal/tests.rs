//! Appended entries can be read again, whatever a crash, a full disk or an operator did to the files.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{
    archive::Archivist,
    entry::{EMPTY_BYTES, Head, encode},
    file_list::FileList,
    files::file_in,
    reader::{check_journal, read, read_closed},
    writer::Journal,
};
use crate::{
    disk::{Disk, SystemDisk},
    error::JournalError,
    writes::Writes,
};

pub(super) fn system() -> Arc<dyn Disk> {
    SystemDisk::shared()
}

pub(super) fn batch(key: &str, value: Option<&str>) -> Writes {
    Writes::from([(key.as_bytes().to_vec(), value.map(|value| value.as_bytes().to_vec()))])
}

/// A directory with an empty journal in it.
pub(super) fn new_journal() -> (tempfile::TempDir, PathBuf, Journal) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("journal");
    let journal = Journal::create(&system(), &path).unwrap();
    (directory, path, journal)
}

/// Opens the journal and returns what a start would apply.
pub(super) fn entries_after(directory: &Path, applied: u64) -> Result<Vec<(u64, Writes)>, JournalError> {
    let mut entries = Vec::new();
    Journal::open(&system(), directory, applied, |number, writes| {
        entries.push((number, writes));
        Ok(())
    })?;
    Ok(entries)
}

/// A directory with a journal of three entries in it, and the path of its file.
pub(super) fn three_entries() -> (tempfile::TempDir, PathBuf, PathBuf) {
    let (held, directory, mut journal) = new_journal();
    journal.append(&batch("a", Some("1"))).unwrap();
    journal.append(&batch("b", None)).unwrap();
    journal.append(&batch("c", Some("3"))).unwrap();
    let path = file_in(&directory, 1);
    // Without the zeros, so that the tests cover only the entries. The last entry ends with its value.
    let mut bytes = fs::read(&path).unwrap();
    bytes.truncate(bytes.iter().rposition(|byte| *byte == b'3').unwrap() + 1);
    set_head(&mut bytes);
    fs::write(&path, bytes).unwrap();
    (held, directory, path)
}

/// Updates a file's head to its length.
fn set_head(bytes: &mut [u8]) {
    let head = Head::bytes(bytes.len() as u64);
    bytes[..head.len()].copy_from_slice(&head);
}

/// A file without entries.
pub(super) fn empty() -> Vec<u8> {
    Head::bytes(EMPTY_BYTES).to_vec()
}

#[test]
fn after_a_lost_list_a_start_applies_the_earlier_file_until_the_tree_is_synced() {
    let (held, directory, mut journal) = new_journal();
    journal.append(&batch("a", Some("1"))).unwrap();
    let list = held.path().join("journal.json");
    let before = fs::read(&list).unwrap();
    journal.rotate(0).unwrap();
    journal.append(&batch("b", Some("2"))).unwrap();
    fs::write(&list, before).unwrap();
    // A power cut can leave the number of the last batch in the tree, but not the rest of that batch.
    for applied in [0, 2, 2] {
        assert_eq!(entries_after(&directory, applied).unwrap().len(), 2);
    }
}

#[test]
fn appended_entries_are_read_again_in_order() {
    let (_held, directory, _) = three_entries();
    let all = vec![(1, batch("a", Some("1"))), (2, batch("b", None)), (3, batch("c", Some("3")))];
    assert_eq!(entries_after(&directory, 0).unwrap(), all);
    // The tree may lack a part of the entries whose numbers it has.
    assert_eq!(entries_after(&directory, 2).unwrap(), all);
    assert_eq!(entries_after(&directory, 3).unwrap(), all);
}

#[test]
fn a_journal_cut_short_at_any_byte_keeps_every_whole_entry_and_goes_on() {
    let (_held, directory, path) = three_entries();
    let whole = fs::read(&path).unwrap();
    let mut kept = Vec::new();
    for length in 0..whole.len() - empty().len() {
        // In the place of bytes that never reached the disk are the earlier zeros.
        let mut cut = whole.clone();
        cut[empty().len() + length..].fill(0);
        fs::write(&path, cut).unwrap();
        let entries = entries_after(&directory, 0).unwrap();
        kept.push(entries.len());
        let mut journal = Journal::open(&system(), &directory, 0, |_, _| Ok(())).unwrap();
        journal.append(&batch("new", Some("x"))).unwrap();
        let entries = entries_after(&directory, 0).unwrap();
        assert_eq!(entries.len(), kept[length] + 1);
        assert_eq!(entries[kept[length]].1, batch("new", Some("x")));
    }
    assert!(kept.is_sorted());
    assert_eq!((kept[0], kept[kept.len() - 1]), (0, 2));
}

#[test]
fn an_entry_with_a_flipped_bit_is_never_read_and_only_the_last_one_may_be_dropped() {
    let (_held, directory, path) = three_entries();
    let whole = fs::read(&path).unwrap();
    let entries = entries_after(&directory, 0).unwrap();
    let mut last = Vec::new();
    encode(&mut last, 3, &batch("c", Some("3"))).unwrap();
    let last_bytes = last.len();
    for bit in empty().len() * 8..whole.len() * 8 {
        let mut flipped = whole.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        fs::write(&path, &flipped).unwrap();
        match entries_after(&directory, 0) {
            // A crash can have cut short only the last entry.
            Ok(read) => assert_eq!(read, entries[..2], "bit {bit}"),
            Err(error) => assert!(matches!(error, JournalError::Damaged { .. }), "bit {bit}: {error}"),
        }
        let is_of_the_last = bit / 8 >= whole.len() - last_bytes;
        assert_eq!(entries_after(&directory, 0).is_ok(), is_of_the_last, "bit {bit}");
    }
}

#[test]
fn a_journal_that_ends_before_the_tree_or_begins_after_it_is_refused() {
    let (_held, directory, _) = three_entries();
    assert!(matches!(entries_after(&directory, 4), Err(JournalError::Behind { last: 3, applied: 4, .. })));
    let (_held, directory, mut journal) = new_journal();
    for _ in 1..=8 {
        journal.append(&batch("a", Some("1"))).unwrap();
    }
    journal.set_in_tree(8).unwrap();
    journal.rotate(8).unwrap();
    journal.append(&batch("d", Some("4"))).unwrap();
    assert!(matches!(entries_after(&directory, 4), Err(JournalError::Gap { after: 4, found: 9, .. })));
    // The list says what the tree has, even if the tree was lost and does not.
    let mut list = FileList::read(&SystemDisk, &directory).unwrap().unwrap();
    list.in_tree = Some(12);
    list.write(&SystemDisk, &directory).unwrap();
    let is_behind = |error: JournalError| matches!(error, JournalError::Behind { last: 9, applied: 12, .. });
    assert!(is_behind(entries_after(&directory, 9).unwrap_err()));
    assert!(is_behind(read_closed(&SystemDisk, &directory, 8, None, |_, _| Ok(())).unwrap_err()));
    assert!(is_behind(check_journal(directory.parent().unwrap()).unwrap().pop().unwrap().1));
}

#[test]
fn a_file_without_entries_does_not_hide_the_file_before_it() {
    let (_held, directory, mut journal) = new_journal();
    journal.append(&batch("a", Some("1"))).unwrap();
    // The next file exists, with or without zeros, listed or not; but the old one was used further.
    let stray = file_in(&directory, 2);
    journal.append(&batch("b", Some("2"))).unwrap();
    journal.append(&batch("c", Some("3"))).unwrap();
    for list in [vec![1], vec![1, 2]] {
        for left in [empty(), [empty(), vec![0; 9000]].concat()] {
            fs::write(&stray, left).unwrap();
            FileList::of(list.clone()).write(&SystemDisk, &directory).unwrap();
            assert_eq!(entries_after(&directory, 0).unwrap().len(), 3);
            let mut read_again = 0;
            read(&SystemDisk, &directory, 0, |_, _| {
                read_again += 1;
                Ok(())
            })
            .unwrap();
            assert_eq!(read_again, 3);
            assert!(!stray.exists());
            assert_eq!(FileList::read(&SystemDisk, &directory).unwrap().unwrap().files, [1]);
        }
    }
    // A file that was begun after the last entry is continued.
    fs::write(file_in(&directory, 4), empty()).unwrap();
    FileList::of(vec![1, 4]).write(&SystemDisk, &directory).unwrap();
    let mut journal = Journal::open(&system(), &directory, 3, |_, _| Ok(())).unwrap();
    assert_eq!(journal.list.files, [1, 4]);
    journal.append(&batch("d", Some("4"))).unwrap();
    assert_eq!(entries_after(&directory, 0).unwrap().len(), 4);
}

#[test]
fn a_missing_listed_file_is_reported_and_refused_if_the_store_needs_it() {
    let (_held, directory, path) = three_entries();
    let mut journal = Journal::open(&system(), &directory, 3, |_, _| Ok(())).unwrap();
    journal.set_in_tree(3).unwrap();
    journal.rotate(0).unwrap();
    journal.append(&batch("d", Some("4"))).unwrap();
    let active = file_in(&directory, 4);
    drop(journal);
    fs::rename(&path, path.with_extension("away")).unwrap();
    // The tree already has these entries, so the file is not needed.
    assert_eq!(entries_after(&directory, 3).unwrap().len(), 1);
    assert!(matches!(entries_after(&directory, 2), Err(JournalError::Gone { path: gone, first: 1 }) if gone == path));
    fs::rename(path.with_extension("away"), &path).unwrap();
    assert_eq!(entries_after(&directory, 2).unwrap().len(), 2);
    fs::remove_file(&active).unwrap();
    assert!(matches!(entries_after(&directory, 4), Err(JournalError::Gone { path, first: 4 }) if path == active));
}

#[test]
fn a_closed_journal_without_its_last_file_is_refused_unless_only_earlier_entries_are_wanted() {
    let (_held, directory, mut journal) = new_journal();
    journal.append(&batch("a", Some("1"))).unwrap();
    journal.rotate(0).unwrap();
    journal.append(&batch("b", Some("2"))).unwrap();
    drop(journal);
    let last = file_in(&directory, 2);
    fs::remove_file(&last).unwrap();
    let read = |until| read_closed(&SystemDisk, &directory, 0, until, |_, _| Ok(()));
    assert!(matches!(read(None), Err(JournalError::Gone { path, first: 2 }) if path == last));
    assert!(matches!(read(Some(2)), Err(JournalError::Gone { .. })));
    assert_eq!(read(Some(1)).unwrap(), 1);
    assert!(
        matches!(&*check_journal(directory.parent().unwrap()).unwrap(), [(path, JournalError::Gone { .. })] if *path == last)
    );
}

#[test]
fn damage_in_the_last_file_is_a_fault_but_a_torn_last_entry_is_not() {
    let (_held, directory, path) = three_entries();
    let whole = fs::read(&path).unwrap();
    let mut torn = whole.clone();
    torn[whole.len() - 3..].fill(0);
    fs::write(&path, torn).unwrap();
    assert!(check_journal(directory.parent().unwrap()).unwrap().is_empty());
    let mut damaged = whole.clone();
    damaged[30] ^= 1;
    fs::write(&path, damaged).unwrap();
    assert!(matches!(&*check_journal(directory.parent().unwrap()).unwrap(), [(_, JournalError::Damaged { .. })]));
}

#[test]
fn a_damaged_last_entry_is_found_if_a_file_was_begun_after_it() {
    let (_held, directory, path) = three_entries();
    let mut journal = Journal::open(&system(), &directory, 3, |_, _| Ok(())).unwrap();
    journal.rotate(0).unwrap();
    drop(journal);
    let mut bytes = fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&path, bytes).unwrap();
    let is_gap = |error: JournalError| matches!(error, JournalError::Gap { after: 2, found: 4, .. });
    assert!(is_gap(entries_after(&directory, 0).unwrap_err()));
    assert!(is_gap(read_closed(&SystemDisk, &directory, 0, None, |_, _| Ok(())).unwrap_err()));
    let mut faults = check_journal(directory.parent().unwrap()).unwrap();
    assert!(is_gap(faults.pop().unwrap().1));
}

#[test]
fn a_file_that_was_begun_and_never_listed_is_neither_compressed_nor_restored() {
    let (held, directory, mut journal) = new_journal();
    journal.append(&batch("a", Some("1"))).unwrap();
    // The list cannot be written, and the begun file stays, as after a failed sync of the directory.
    let blocked = held.path().join("journal.json.unfinished");
    fs::create_dir_all(blocked.join("full")).unwrap();
    journal.rotate(0).unwrap_err();
    fs::remove_dir_all(&blocked).unwrap();
    assert!(!file_in(&directory, 2).exists());
    fs::write(file_in(&directory, 2), empty()).unwrap();
    journal.append(&batch("b", Some("2"))).unwrap();
    journal.append(&batch("c", Some("3"))).unwrap();
    journal.rotate(0).unwrap();
    journal.append(&batch("d", Some("4"))).unwrap();
    let (archivist, _) = Archivist::start(system(), directory.clone(), Arc::default(), true).unwrap();
    archivist.send(&journal.list);
    while file_in(&directory, 1).exists() {
        std::thread::yield_now();
    }
    drop(archivist);
    let mut numbers = Vec::new();
    let last = read_closed(&SystemDisk, &directory, 1, None, |number, _| {
        numbers.push(number);
        Ok(())
    });
    assert_eq!((last.unwrap(), numbers), (4, vec![2, 3, 4]));
    assert!(check_journal(directory.parent().unwrap()).unwrap().is_empty());
}

#[test]
fn an_unused_file_replaces_a_missing_one_and_is_listed_once() {
    let (_held, directory, path) = three_entries();
    let mut journal = Journal::open(&system(), &directory, 3, |_, _| Ok(())).unwrap();
    journal.set_in_tree(3).unwrap();
    journal.rotate(0).unwrap();
    drop(journal);
    fs::remove_file(path).unwrap();
    let mut journal = Journal::open(&system(), &directory, 3, |_, _| Ok(())).unwrap();
    assert_eq!(journal.list.files, [1, 4]);
    assert_eq!(journal.append(&batch("d", Some("4"))).unwrap(), 4);
    let found = check_journal(directory.parent().unwrap()).unwrap();
    assert!(matches!(&*found, [(_, JournalError::Superseded { .. })]), "{found:?}");
}

#[test]
fn a_last_file_that_was_compressed_is_followed_by_a_new_one() {
    let (_held, directory, path) = three_entries();
    let (archivist, _) = Archivist::start(system(), directory.clone(), Arc::default(), true).unwrap();
    archivist.send(&FileList::of(vec![1, 4]));
    while path.exists() {
        std::thread::yield_now();
    }
    drop(archivist);
    let mut journal = Journal::open(&system(), &directory, 3, |_, _| Ok(())).unwrap();
    assert_eq!(journal.list.files, [1, 4]);
    assert_eq!(journal.append(&batch("d", Some("4"))).unwrap(), 4);
    let numbers: Vec<_> = entries_after(&directory, 0).unwrap().into_iter().map(|(number, _)| number).collect();
    assert_eq!(numbers, [1, 2, 3, 4]);
}

#[cfg(feature = "simulation")]
#[test]
fn a_file_closed_after_a_failed_write_ends_with_zeros_after_any_power_cut() {
    use crate::simulation::{Crash, SimulatedDisk};
    let directory = Path::new("/journal");
    for seed in 0..400 {
        let simulated = SimulatedDisk::new(seed);
        let disk: Arc<dyn Disk> = Arc::new(simulated.clone());
        let mut journal = Journal::create(&disk, directory).unwrap();
        journal.set_file_bytes(4096);
        journal.append(&batch("a", Some("1"))).unwrap();
        // The entry needs no new zeros, so one of the next two calls asks for the length and the other writes.
        simulated.fail(0..2, 1);
        journal.append(&batch("b", Some(&"2".repeat(2000)))).unwrap_err();
        simulated.mend();
        journal.rotate(0).unwrap();
        journal.append(&batch("c", Some("3"))).unwrap();
        simulated.crash();
        simulated.restart(Crash::PowerCut);
        let mut found = 0;
        let opened = Journal::open(&disk, directory, 0, |_, _| {
            found += 1;
            Ok(())
        });
        assert!(opened.is_ok(), "seed {seed}: {}", opened.err().unwrap());
        assert_eq!(found, 2);
    }
}
