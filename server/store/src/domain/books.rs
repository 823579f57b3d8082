//! Changes of the platform's own accounts that an operator records.

use payments_core::{Amount, Booking, BookingKind, Currency, DeveloperId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BooksChange {
    /// The owner paid money in, or the bank account had it when the books began.
    PaidIn,
    /// The owner took money out.
    TakenOut,
    /// The bank kept a charge.
    BankCharge,
    /// The platform took its fees on a workspace's payments out of the bank account.
    FeesTaken,
}

impl BooksChange {
    pub const ALL: [Self; 4] = [Self::PaidIn, Self::TakenOut, Self::BankCharge, Self::FeesTaken];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::PaidIn => "paid-in",
            Self::TakenOut => "taken-out",
            Self::BankCharge => "bank-charge",
            Self::FeesTaken => "fees-taken",
        }
    }
}

/// A change, recorded once under its reference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BooksEntry {
    pub change: BooksChange,
    /// The bank's name of the transfer.
    pub reference: String,
    pub amount: Amount,
    #[serde(deserialize_with = "Currency::deserialize_closed")]
    pub currency: Currency,
    /// Whose fees were taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub developer_id: Option<DeveloperId>,
    pub recorded_at: Timestamp,
}

impl BooksEntry {
    pub fn booking(&self) -> Booking {
        let booking = |kind| Booking::new(kind, self.amount, Amount::ZERO);
        match self.change {
            BooksChange::PaidIn => booking(BookingKind::OwnerPaidIn),
            BooksChange::TakenOut => {
                let paid_in = booking(BookingKind::OwnerPaidIn);
                Booking { minor: -paid_in.minor, ..paid_in }
            }
            BooksChange::BankCharge => booking(BookingKind::BankCharged),
            BooksChange::FeesTaken => booking(BookingKind::FeesTaken),
        }
    }
}
