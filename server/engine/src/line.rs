//! The timeline of changes to which a journal or a backup belongs. Here it is called a line.
//!
//! A number alone does not identify a change. Two databases both count from 1, and a database restored as of an earlier
//! moment gives later numbers to other changes. So a database has a line, as PostgreSQL has timelines. A new database begins
//! a line, and so does every restore. A database, its journal and its backups know their own line and the lines before it.

use serde::{Deserialize, Serialize};

/// Maximum lines that a history keeps: the latest ones.
const MOST: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Line {
    /// An id that is unique among all lines of all databases.
    id: String,
    /// The number of the change after which the line begins.
    after: u64,
}

/// The lines of a database, oldest first, with its own line as the last one. Empty if they are not known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct Lines(Vec<Line>);

impl Lines {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn present(&self) -> Option<&str> {
        self.0.last().map(|line| &*line.id)
    }

    /// Begins a line with this id after a change. Drops lines that begin later, because they belong to other histories.
    pub(crate) fn begin(mut self, id: u64, after: u64) -> Self {
        self.0.retain(|line| line.after < after);
        self.0.push(Line { id: format!("{id:016x}"), after });
        let surplus = self.0.len().saturating_sub(MOST);
        self.0.drain(..surplus);
        self
    }

    /// Whether change `number` of the history `other` belongs to this history too. If the line of either is unknown, it may.
    pub(crate) fn may_hold(&self, other: &Self, number: u64) -> bool {
        let Some(first) = self.0.first().filter(|_| !other.is_empty()) else { return true };
        // This need not be the last line, which may have begun after the change and have no changes yet.
        let of_change = other.0.iter().rfind(|line| line.after < number);
        match of_change.and_then(|of_change| self.0.iter().position(|line| line.id == of_change.id)) {
            Some(nth) => self.0.get(nth + 1).is_none_or(|next| number <= next.after),
            None => number <= first.after,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_belongs_only_to_the_lines_that_were_restored_with_it() {
        let first = Lines::default().begin(1, 0);
        let second = first.clone().begin(2, 50);
        let third = second.clone().begin(3, 80);
        for (history, of, number, may_hold) in [
            (&first, &first, u64::MAX, true),
            (&second, &first, 50, true),
            (&second, &first, 51, false),
            (&first, &second, 51, false),
            (&third, &first, 50, true),
            (&third, &first, 51, false),
            (&third, &second, 80, true),
            (&third, &second, 81, false),
            (&third, &third, 81, true),
            // Two restores as of the same change. The first restore's line has no changes, so its backup fits.
            (&first.clone().begin(4, 50), &second, 50, true),
            (&first.clone().begin(4, 50), &second, 51, false),
            (&Lines::default().begin(9, 0), &first, 1, false),
            // Changes before the first known line.
            (&Lines::default().begin(9, 30), &first, 30, true),
            (&Lines::default().begin(9, 30), &first, 31, false),
            (&Lines::default(), &first, 1, true),
            (&first, &Lines::default(), 1, true),
        ] {
            assert_eq!(history.may_hold(of, number), may_hold, "{history:?} {of:?} {number}");
        }
    }

    #[test]
    fn a_line_replaces_the_lines_that_begin_after_it() {
        let lines = Lines::default().begin(1, 0).begin(2, 50).begin(3, 80).begin(4, 50);
        assert_eq!(lines, Lines::default().begin(1, 0).begin(4, 50));
        assert_eq!(lines.present(), Some("0000000000000004"));
    }

    #[test]
    fn a_history_keeps_a_bounded_number_of_lines_the_latest() {
        let lines = (1..=300).fold(Lines::default(), |lines, number| lines.begin(number, number));
        assert_eq!((lines.0.len(), lines.0[0].after), (MOST, 201));
        let json = serde_json::to_string(&Lines::default().begin(10, 7)).unwrap();
        assert_eq!(json, r#"[{"id":"000000000000000a","after":7}]"#);
        assert_eq!(serde_json::from_str::<Lines>(&json).unwrap(), Lines::default().begin(10, 7));
    }
}
