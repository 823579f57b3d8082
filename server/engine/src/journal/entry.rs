//! The form of a journal file and its entries. The crate's documentation shows it. Zeros are no entry.
//!
//! A head is written before the entries within its length, and a crash never makes a file shorter. So if a file is shorter
//! than its head says, something else cut it off.
//!
//! An entry that a crash cut short is the end of the journal: its commits were not answered. The engine begins an entry only
//! when the one before is synced, so no entry follows one that was cut short. If a whole entry follows an unreadable one, the
//! unreadable one is damaged, and the journal is refused.

use std::{io, ops::Range, path::Path};

use crate::{error::JournalError, writes::Writes};

pub(super) const MAGIC: &[u8; 8] = b"PAYJRNL1";
/// The length of a file without entries.
pub(super) const EMPTY_BYTES: u64 = 16;
/// An entry's length and checksum.
pub(super) const ENTRY_HEAD_BYTES: usize = 8;

/// The beginning of a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    /// The length that the file had on the disk.
    pub(super) length: u64,
}

impl Head {
    /// The head for a file of this length on the disk.
    pub(super) fn bytes(length: u64) -> [u8; 16] {
        let mut bytes = [0; 16];
        bytes[..MAGIC.len()].copy_from_slice(MAGIC);
        bytes[MAGIC.len()..].copy_from_slice(&length.to_le_bytes());
        bytes
    }

    /// Reads a file's head. `None` if it is incomplete.
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        let length = bytes.strip_prefix(MAGIC)?.first_chunk()?;
        Some(Self { length: u64::from_le_bytes(*length) })
    }

    /// Whether entries may be missing after a file's last entry, which ends at `end`. That is so if the file was longer and
    /// the bytes at `end` are not the zeros in the place of the next entry's length and checksum.
    pub(super) fn is_cut(self, bytes: &[u8], end: u64) -> bool {
        let is_shorter = (bytes.len() as u64) < self.length;
        is_shorter && rest_from(bytes, end).first_chunk() != Some(&[0; ENTRY_HEAD_BYTES])
    }
}

/// Receives an entry's number and its writes.
pub(super) type Each<'e> = dyn FnMut(u64, Writes) -> Result<(), JournalError> + 'e;

/// Replaces the content of the buffer with an entry.
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

/// The length of an entry, according to its head.
pub(super) fn entry_bytes(head: &[u8]) -> Option<u64> {
    take_u32(head).map(|(length, _)| u64::from(length) + ENTRY_HEAD_BYTES as u64)
}

/// Returns the next entry's number, its writes and the bytes after it, or `None` if no whole entry is there.
pub(super) fn decode(bytes: &[u8]) -> Option<(u64, Writes, &[u8])> {
    let (length, rest) = take_u32(bytes)?;
    let (checksum, rest) = take_u32(rest)?;
    let (entry, after) = rest.split_at_checked(usize::try_from(length).ok()?)?;
    if crc32fast::hash(entry) != checksum && !planted!(ChecksumIgnored) {
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

/// Reads a file's entries and passes those after number `after` to `each`. Returns where the last whole entry is.
pub(super) fn read_entries(
    bytes: &[u8],
    path: &Path,
    last: &mut u64,
    after: u64,
    each: &mut Each<'_>,
) -> Result<Range<u64>, JournalError> {
    if Head::of(bytes).is_none() {
        return Err(JournalError::Damaged { path: path.to_owned(), offset: 0 });
    }
    let mut start = EMPTY_BYTES;
    let mut rest = rest_from(bytes, start);
    while let Some((number, writes, tail)) = decode(rest) {
        if number != *last + 1 {
            return Err(JournalError::Gap { path: path.to_owned(), after: *last, found: number });
        }
        if number > after {
            each(number, writes)?;
        }
        *last = number;
        start = (bytes.len() - rest.len()) as u64;
        rest = tail;
    }
    Ok(start..(bytes.len() - rest.len()) as u64)
}

/// Whether a whole entry follows anywhere after `end`, where the last readable entry, `last`, ends.
pub(super) fn is_entry_behind(bytes: &[u8], end: u64, last: u64) -> bool {
    let rest = rest_from(bytes, end);
    // A later entry has a larger number, by at most one for each 16 bytes in between, the shortest length of an entry. So the
    // text of a value does not count as an entry.
    let possible = last + 2..=last + 2 + rest.len() as u64 / 16;
    let is_entry = |start: usize| decode(&rest[start..]).is_some_and(|(number, ..)| possible.contains(&number));
    // No entry begins in the zeros at the end.
    let zeros = rest.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    (1..zeros).any(is_entry)
}

/// Whether a file never had an entry or a part of one: it has only zeros after its head.
pub(super) fn is_blank(bytes: &[u8]) -> bool {
    Head::of(bytes).is_some_and(|head| is_zero_from(bytes, EMPTY_BYTES) && !head.is_cut(bytes, EMPTY_BYTES))
}

/// Whether a file has only zeros from an offset.
pub(super) fn is_zero_from(bytes: &[u8], offset: u64) -> bool {
    rest_from(bytes, offset).iter().all(|byte| *byte == 0)
}

/// A file's bytes from an offset.
fn rest_from(bytes: &[u8], offset: u64) -> &[u8] {
    usize::try_from(offset).ok().and_then(|offset| bytes.get(offset..)).unwrap_or_default()
}
