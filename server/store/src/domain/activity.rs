//! Totals of a day's payments.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// Totals of the payments that a scope created in one currency on one day, in UTC. A payment counts on the day of its
/// creation, so paid divided by created is the success rate. Stored as three numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u64, u64, i128)", into = "(u64, u64, i128)")]
pub struct DayTotals {
    pub created: u64,
    /// How many of these were ever paid.
    pub paid: u64,
    /// The gross amount of those that were ever paid, in minor units.
    pub volume_minor: i128,
}

impl AddAssign for DayTotals {
    fn add_assign(&mut self, added: Self) {
        self.created += added.created;
        self.paid += added.paid;
        self.volume_minor += added.volume_minor;
    }
}

impl From<(u64, u64, i128)> for DayTotals {
    fn from((created, paid, volume_minor): (u64, u64, i128)) -> Self {
        Self { created, paid, volume_minor }
    }
}

impl From<DayTotals> for (u64, u64, i128) {
    fn from(DayTotals { created, paid, volume_minor }: DayTotals) -> Self {
        (created, paid, volume_minor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_totals_of_a_day_add_up_one_by_one() {
        let mut totals = DayTotals::from((1, 2, 30));
        totals += DayTotals::from((10, 20, 300));
        assert_eq!(<(u64, u64, i128)>::from(totals), (11, 22, 330));
    }
}
