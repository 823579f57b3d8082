//! Files that were cut off while no process used them.

use std::fs;

use super::{
    entry::EMPTY_BYTES,
    files::file_in,
    reader::{check_journal, read_closed},
    tests::{batch, empty, entries_after, new_journal, system, three_entries},
    writer::Journal,
};
use crate::{disk::SystemDisk, error::JournalError};

#[test]
fn a_file_without_a_whole_head_is_refused() {
    let (held, directory, path) = three_entries();
    for is_listed in [true, false] {
        for (left, is_cut) in [(&b""[..], true), (b"PAYJ", true), (&empty()[..15], true), (&[0; 5000], false)] {
            fs::write(&path, left).unwrap();
            match entries_after(&directory, 0).unwrap_err() {
                JournalError::Cut { path: cut, length, last: 0, .. } if is_cut => {
                    assert_eq!((cut, length), (path.clone(), left.len() as u64));
                }
                JournalError::Damaged { offset: 0, .. } if !is_cut => {}
                error => panic!("{left:?}: {error}"),
            }
            assert_eq!(fs::read(&path).unwrap(), left);
        }
        if is_listed {
            fs::remove_file(held.path().join("journal.json")).unwrap();
        }
    }
}

#[test]
fn the_last_file_is_refused_if_cut_off_and_the_error_names_its_last_whole_entry() {
    let (_held, directory, path) = three_entries();
    let whole = fs::read(&path).unwrap();
    let is_cut = |error: JournalError, wanted| matches!(error, JournalError::Cut { last, .. } if last == wanted);
    let mut left = Vec::new();
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).unwrap();
        let JournalError::Cut { last, .. } = entries_after(&directory, 0).unwrap_err() else {
            panic!("{length} bytes are opened")
        };
        assert!(is_cut(read_closed(&SystemDisk, &directory, 0, None, |_, _| Ok(())).unwrap_err(), last));
        assert!(is_cut(check_journal(directory.parent().unwrap()).unwrap().pop().unwrap().1, last));
        // The remaining entries can still be read.
        let left_of = |until| read_closed(&SystemDisk, &directory, 0, Some(until), |_, _| Ok(()));
        assert!(last == 0 || left_of(last).is_ok_and(|found| found == last), "{length} bytes");
        assert!(left_of(last + 1).is_err());
        assert_eq!(fs::read(&path).unwrap(), &whole[..length]);
        left.push(last);
    }
    assert_eq!((left[0], left[whole.len() - 1]), (0, 2));
    fs::write(&path, &whole).unwrap();
    assert_eq!(entries_after(&directory, 0).unwrap().len(), 3);
}

#[test]
fn a_file_that_was_emptied_after_it_was_begun_is_refused() {
    let (_held, directory, mut journal) = new_journal();
    journal.append(&batch("a", Some("1"))).unwrap();
    journal.rotate(0).unwrap();
    journal.append(&batch("b", Some("2"))).unwrap();
    let path = file_in(&directory, 2);
    let whole = fs::read(&path).unwrap();
    for length in [0, 7, EMPTY_BYTES, EMPTY_BYTES + 7] {
        fs::write(&path, &whole[..usize::try_from(length).unwrap()]).unwrap();
        assert!(matches!(entries_after(&directory, 1), Err(JournalError::Cut { last: 1, .. })), "{length} bytes");
    }
}

#[test]
fn a_file_that_was_cut_off_after_its_last_entry_is_still_used() {
    let (_held, directory, mut journal) = new_journal();
    journal.append(&batch("a", Some("1"))).unwrap();
    let (end, path) = (journal.length, file_in(&directory, 1));
    let whole = fs::read(&path).unwrap();
    // The next entry would begin with its length and its checksum, eight bytes.
    for (zeros, is_refused) in [(0, true), (7, true), (8, false), (500_000, false)] {
        fs::write(&path, &whole[..usize::try_from(end + zeros).unwrap()]).unwrap();
        assert_eq!(entries_after(&directory, 0).is_err(), is_refused, "{zeros} zeros");
    }
    let mut journal = Journal::open(&system(), &directory, 0, |_, _| Ok(())).unwrap();
    journal.append(&batch("b", Some("2"))).unwrap();
    fs::write(&path, &fs::read(&path).unwrap()[..usize::try_from(journal.length).unwrap()]).unwrap();
    assert!(matches!(entries_after(&directory, 0), Err(JournalError::Cut { last: 2, .. })));
}
