//! Records that hold many small entries. A write costs the engine per key, not per byte.

use serde::{Serialize, de::DeserializeOwned};

/// The lines of a record. No line is empty.
pub(super) fn lines(record: &[u8]) -> impl DoubleEndedIterator<Item = &str> {
    record.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(|line| str::from_utf8(line).unwrap_or("?"))
}

/// Whether a record has a line.
pub(super) fn has_line(record: &[u8], line: &str) -> bool {
    record.split(|byte| *byte == b'\n').any(|found| found == line.as_bytes())
}

/// Adds a line at the end.
pub(super) fn push_line(record: &mut Vec<u8>, line: &str) {
    record.extend_from_slice(line.as_bytes());
    record.push(b'\n');
}

/// The record without a line.
pub(super) fn without_line(record: &[u8], line: &str) -> Vec<u8> {
    let mut kept = Vec::with_capacity(record.len());
    lines(record).filter(|found| *found != line).for_each(|found| push_line(&mut kept, found));
    kept
}

/// The JSON values of a record, which are concatenated.
pub(super) fn values<T: DeserializeOwned>(record: &[u8]) -> impl Iterator<Item = Result<T, serde_json::Error>> {
    serde_json::Deserializer::from_slice(record).into_iter()
}

/// Appends an object or an array.
pub(super) fn push_value(record: &mut Vec<u8>, value: &impl Serialize) -> Result<(), serde_json::Error> {
    serde_json::to_writer(record, value)
}

/// Sets or clears a bit.
pub(super) fn set_bit(record: &mut Vec<u8>, number: u64, is_set: bool) {
    let Some((byte, bit)) = at(number) else { return };
    if record.len() <= byte {
        record.resize(byte + 1, 0);
    }
    if is_set { record[byte] |= bit } else { record[byte] &= !bit }
}

/// Whether a bit is set.
pub(super) fn is_set(record: &[u8], number: u64) -> bool {
    at(number).is_some_and(|(byte, bit)| record.get(byte).is_some_and(|marks| marks & bit != 0))
}

/// The number of set bits.
pub(super) fn count_set(record: &[u8]) -> u64 {
    record.iter().map(|marks| u64::from(marks.count_ones())).sum()
}

/// The positions of set bits, highest first.
pub(super) fn set_bits_down(record: &[u8]) -> impl Iterator<Item = u64> {
    (0..record.len() as u64 * 8).rev().filter(|number| is_set(record, *number))
}

fn at(number: u64) -> Option<(usize, u8)> {
    Some((usize::try_from(number / 8).ok()?, 1 << (number % 8)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn marks_are_a_set_of_numbers(changes in prop::collection::vec((0..512_u64, any::<bool>()), 0..200)) {
            let (mut record, mut model) = (Vec::new(), BTreeSet::new());
            for (number, value) in changes {
                set_bit(&mut record, number, value);
                if value { model.insert(number); } else { model.remove(&number); }
                prop_assert_eq!(is_set(&record, number), value);
            }
            prop_assert!(record.len() <= 64);
            prop_assert_eq!(count_set(&record), model.len() as u64);
            prop_assert_eq!(set_bits_down(&record).collect::<Vec<_>>(), model.into_iter().rev().collect::<Vec<_>>());
        }

        #[test]
        fn lines_come_in_the_order_they_were_added(changes in prop::collection::vec(("[a-c]{1,2}", any::<bool>()), 0..50)) {
            let (mut record, mut model) = (Vec::new(), Vec::<String>::new());
            for (line, is_added) in changes {
                prop_assert_eq!(has_line(&record, &line), model.contains(&line));
                if is_added {
                    push_line(&mut record, &line);
                    model.push(line);
                } else {
                    record = without_line(&record, &line);
                    model.retain(|kept| *kept != line);
                }
            }
            prop_assert_eq!(lines(&record).collect::<Vec<_>>(), model);
        }
    }
}
