//! The additions, and the results of their rows.

use std::{collections::BTreeSet, fmt::Debug};

/// The server's additions to the specification.
const ADDITIONS: [&str; 19] = [
    "Partial refunds",
    "Activity",
    "Transactions",
    "Second try",
    "Resend",
    "Retries",
    "Rotation and edits",
    "Test events",
    "List of events",
    "Filters",
    "Timeline",
    "Restricted keys",
    "List of keys",
    "Error codes",
    "Request log",
    "Line items",
    "Listen",
    "Trigger and reset",
    "Test clock",
];

/// The client of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Client {
    /// A client that knows only the specification.
    OfTheSpecification,
    OfTheAddition,
}

/// The results of the rows.
#[derive(Default)]
pub(super) struct Report {
    seen: BTreeSet<(&'static str, Client)>,
    failed: Vec<String>,
}

impl Report {
    /// A row about a client of the specification: everything is as it would be without the addition.
    pub(super) fn unnoticed(&mut self, addition: &'static str, row: &str, holds: bool, found: &dyn Debug) {
        self.row(addition, Client::OfTheSpecification, row, holds, found);
    }

    /// A row about a client that uses the addition: it works as documented.
    pub(super) fn documented(&mut self, addition: &'static str, row: &str, holds: bool, found: &dyn Debug) {
        self.row(addition, Client::OfTheAddition, row, holds, found);
    }

    fn row(&mut self, addition: &'static str, client: Client, row: &str, holds: bool, found: &dyn Debug) {
        assert!(ADDITIONS.contains(&addition), "{addition} is not in the table");
        self.seen.insert((addition, client));
        if !holds {
            self.failed.push(format!("{addition}: {row} ({client:?}): {found:?}"));
        }
    }

    /// Asserts that every row holds, and that each addition has rows about both clients.
    pub(super) fn end(self) {
        let both = |addition| [(addition, Client::OfTheSpecification), (addition, Client::OfTheAddition)];
        let missing: Vec<_> = ADDITIONS.into_iter().flat_map(both).filter(|row| !self.seen.contains(row)).collect();
        assert!(missing.is_empty(), "additions without a row: {missing:?}");
        assert!(self.failed.is_empty(), "{} rows fail:\n{}", self.failed.len(), self.failed.join("\n"));
    }
}
