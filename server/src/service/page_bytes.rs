//! The limit of a list's page in bytes.

/// Maximum bytes of a page's items. The first item always fits.
const AT_MOST: usize = 4 * 1024 * 1024;

/// How many items of these lengths fit in a page; `None` if all do.
pub(super) fn fitting(lengths: impl Iterator<Item = usize>) -> Option<usize> {
    let mut all = 0;
    for (nth, length) in lengths.enumerate() {
        all += length;
        if all > AT_MOST && nth > 0 {
            return Some(nth);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_the_items_that_fit_and_at_least_one() {
        let mib = 1024 * 1024;
        for (lengths, fits) in [
            (vec![], None),
            (vec![5 * mib], None),
            (vec![2 * mib, 2 * mib], None),
            (vec![5 * mib, 1], Some(1)),
            (vec![2 * mib, mib, mib + 1, 1], Some(2)),
        ] {
            assert_eq!(fitting(lengths.iter().copied()), fits, "{lengths:?}");
        }
    }
}
