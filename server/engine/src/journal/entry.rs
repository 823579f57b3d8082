//! What stands in a file of the journal.
//!
//! A file is `PAYJRNL1` and then entries: length and CRC-32 of what follows (4 bytes each), the entry's number (8), and
//! its writes. All numbers are little-endian. Numbers count from 1 without a gap, across files. Zeros are no entry.
//!
//! An entry that the crash cut short is the end of the journal: nobody was told of it. Since an entry is begun only when
//! the one before is synced, nothing can stand behind one that was cut short: where a whole entry does, the one before it
//! was whole once and is damaged, and the journal is refused.

use std::{io, path::Path};

use crate::{error::JournalError, writes::Writes};

/// What a file begins with.
pub(super) const MAGIC: &[u8; 8] = b"PAYJRNL1";
/// An entry's length and checksum.
pub(super) const ENTRY_HEAD_BYTES: usize = 8;

/// Makes the buffer hold an entry, and nothing else.
pub(super) fn encode(buffer: &mut Vec<u8>, number: u64, writes: &Writes) -> io::Result<()> {
    let too_long = |_| io::Error::new(io::ErrorKind::InvalidInput, "a batch of more than 4 GiB");
    buffer.clear();
    buffer.extend_from_slice(&[0; ENTRY_HEAD_BYTES]);
    buffer.extend_from_slice(&number.to_le_bytes());
    for (key, value) in writes {
        buffer.extend_from_slice(&u32::try_from(key.len()).map_err(too_long)?.to_le_bytes());
        buffer.extend_from_slice(key);
        match value {
            Some(value) => {
                buffer.push(1);
                buffer.extend_from_slice(&u32::try_from(value.len()).map_err(too_long)?.to_le_bytes());
                buffer.extend_from_slice(value);
            }
            None => buffer.push(0),
        }
    }
    let length = u32::try_from(buffer.len() - ENTRY_HEAD_BYTES).map_err(too_long)?;
    let checksum = crc32fast::hash(&buffer[ENTRY_HEAD_BYTES..]);
    buffer[..4].copy_from_slice(&length.to_le_bytes());
    buffer[4..ENTRY_HEAD_BYTES].copy_from_slice(&checksum.to_le_bytes());
    Ok(())
}

/// The next entry and what follows it, or `None` where no whole one stands.
fn decode(bytes: &[u8]) -> Option<(u64, Writes, &[u8])> {
    let (length, rest) = take_u32(bytes)?;
    let (checksum, rest) = take_u32(rest)?;
    let (entry, after) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    if crc32fast::hash(entry) != checksum {
        return None;
    }
    let (number, mut rest) = entry.split_first_chunk::<8>()?;
    let mut writes = Writes::new();
    while !rest.is_empty() {
        let (key, tagged) = take_bytes(rest)?;
        let (tag, tail) = tagged.split_first()?;
        let (value, tail) = match tag {
            0 => (None, tail),
            _ => take_bytes(tail).map(|(value, tail)| (Some(value.to_vec()), tail))?,
        };
        writes.insert(key.to_vec(), value);
        rest = tail;
    }
    Some((u64::from_le_bytes(*number), writes, after))
}

fn take_u32(bytes: &[u8]) -> Option<(u32, &[u8])> {
    bytes.split_first_chunk::<4>().map(|(number, rest)| (u32::from_le_bytes(*number), rest))
}

fn take_bytes(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = take_u32(bytes)?;
    rest.split_at_checked(usize::try_from(length).ok()?)
}

/// Reads a file's entries and hands over those after `applied`. Returns where the last whole entry ends.
pub(super) fn read_entries(
    bytes: &[u8],
    path: &Path,
    last: &mut u64,
    applied: u64,
    replay: &mut impl FnMut(u64, Writes) -> Result<(), JournalError>,
) -> Result<u64, JournalError> {
    let Some(entries) = bytes.strip_prefix(MAGIC) else {
        return Err(JournalError::Damaged { path: path.to_owned(), offset: 0 });
    };
    let mut rest = entries;
    while let Some((number, writes, after)) = decode(rest) {
        if number != *last + 1 {
            return Err(JournalError::Gap { path: path.to_owned(), after: *last, found: number });
        }
        if number > applied {
            replay(number, writes)?;
        }
        *last = number;
        rest = after;
    }
    Ok((bytes.len() - rest.len()) as u64)
}

/// Refuses a file in which a whole entry stands somewhere behind `end`, where the last one that can be read ends.
pub(super) fn refuse_damage(bytes: &[u8], path: &Path, end: u64, last: u64) -> Result<(), JournalError> {
    let rest = rest_from(bytes, end);
    // A later entry's number is larger, by one for each entry between, and an entry has 16 bytes at least. So what a
    // merchant's text happens to hold is not taken for one.
    let possible = last + 2..=last + 2 + rest.len() as u64 / 16;
    let is_entry = |start: usize| decode(&rest[start..]).is_some_and(|(number, ..)| possible.contains(&number));
    // Nor does one begin among the zeros at the end.
    let zeros = rest.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    if (1..zeros).any(is_entry) {
        return Err(JournalError::Damaged { path: path.to_owned(), offset: end });
    }
    Ok(())
}

/// Whether a file has no entry, nor anything that might have been one: a part of its first bytes, and zeros.
pub(super) fn is_blank(bytes: &[u8]) -> bool {
    let head = &bytes[..bytes.len().min(MAGIC.len())];
    (MAGIC.starts_with(head) || is_zero_from(head, 0)) && is_zero_from(bytes, MAGIC.len() as u64)
}

/// Whether a file holds nothing but zeros from an offset on.
pub(super) fn is_zero_from(bytes: &[u8], offset: u64) -> bool {
    rest_from(bytes, offset).iter().all(|byte| *byte == 0)
}

/// A file's bytes from an offset on.
fn rest_from(bytes: &[u8], offset: u64) -> &[u8] {
    usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)).unwrap_or_default()
}
