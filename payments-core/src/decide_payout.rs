//! Decides what a step does to a payout.
//!
//! | from | step | to | booking | event |
//! |---|---|---|---|---|
//! | | [requested](request_payout) | requested | requested | `payout.created` |
//! | requested | approved | approved | | `payout.approved` |
//! | approved | sent | sending | | |
//! | sending | its outcome is unknown | unknown | | |
//! | sending, unknown | paid | paid | paid | `payout.paid` |
//! | sending, unknown | failed | failed | failed | `payout.failed` |
//! | requested, approved | cancelled | cancelled | failed | `payout.cancelled` |
//! | failed | paid after all | paid | paid late | `payout.paid` |
//! | paid | returned | returned | returned | `payout.returned` |
//!
//! Nothing sends a payout twice: one whose outcome is unknown waits for a person, and a new try is a new payout.

use crate::{
    Amount, Balance, Booking, BookingKind, Currency, Environment, EventKind, Payout, PayoutDestination, PayoutId,
    PayoutStatus, Statement, Timestamp, aliased::UnknownFields,
};

/// What happens to a payout.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PayoutStep {
    /// A person, or the platform's policy, approves it.
    Approved,
    /// The platform sends it.
    Sent,
    /// Nobody knows whether the bank paid it.
    Unknown {
        /// Why not.
        reason: String,
    },
    /// The bank paid it.
    Paid {
        /// The bank's reference.
        reference: String,
    },
    /// The bank did not pay it.
    Failed {
        /// Why not.
        reason: String,
    },
    /// The merchant or the operator cancels it.
    Cancelled {
        /// Why, if a reason is given.
        reason: Option<String>,
    },
    /// The bank sent it back.
    Returned {
        /// Why.
        reason: String,
    },
}

impl PayoutStep {
    /// The status after it.
    fn target(&self) -> PayoutStatus {
        match self {
            Self::Approved => PayoutStatus::Approved,
            Self::Sent => PayoutStatus::Sending,
            Self::Unknown { .. } => PayoutStatus::Unknown,
            Self::Paid { .. } => PayoutStatus::Paid,
            Self::Failed { .. } => PayoutStatus::Failed,
            Self::Cancelled { .. } => PayoutStatus::Cancelled,
            Self::Returned { .. } => PayoutStatus::Returned,
        }
    }
}

/// The result of a step. Commit all of it in one transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PayoutDecision {
    /// The payout after the step.
    pub payout: Payout,
    /// How the books change.
    pub booking: Option<Booking>,
    /// The event to send.
    pub event: Option<EventKind>,
}

/// Why a payout cannot be requested, or a step is not allowed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PayoutRefusal {
    /// Its status does not allow the step.
    #[error("a payout that is {from} cannot become {to}")]
    Status {
        /// The status.
        from: PayoutStatus,
        /// The status after the step.
        to: PayoutStatus,
    },
    /// More is asked for than is available.
    #[error("{available} {currency} is available for a payout")]
    MoreThanIsAvailable {
        /// What is available.
        available: Amount,
        /// Its currency.
        currency: Currency,
    },
}

/// What is known of a new payout.
#[derive(Debug, Clone)]
pub struct NewPayout {
    /// Its id.
    pub id: PayoutId,
    /// Its environment.
    pub environment: Environment,
    /// Its currency.
    pub currency: Currency,
    /// A copy of the destination.
    pub destination: PayoutDestination,
    /// The last statement's closing balance, which is zero before the first payout.
    pub opening_balance: Balance,
    /// The balance now.
    pub balance: Balance,
    /// The time.
    pub now: Timestamp,
}

/// Requests a payout of `amount`, or of all that is available.
///
/// # Errors
/// [`PayoutRefusal::MoreThanIsAvailable`] if that is less than the amount, or nothing.
pub fn request_payout(
    amount: Option<Amount>,
    available: Amount,
    new: NewPayout,
) -> Result<PayoutDecision, PayoutRefusal> {
    let amount = amount.unwrap_or(available);
    if amount > available || amount == Amount::ZERO {
        return Err(PayoutRefusal::MoreThanIsAvailable { available, currency: new.currency });
    }
    let payout = Payout {
        id: new.id,
        environment: new.environment,
        amount,
        currency: new.currency,
        status: PayoutStatus::Requested,
        destination: new.destination,
        statement: Statement {
            opening_balance: new.opening_balance,
            closing_balance: Balance::from_minor(new.balance.as_minor() - i128::from(amount.as_minor())),
            unknown: UnknownFields::default(),
        },
        reference: None,
        reason: None,
        created_at: new.now,
        approved_at: None,
        sent_at: None,
        paid_at: None,
        ended_at: None,
        updated_at: new.now,
        unknown: UnknownFields::default(),
    };
    let booking = Some(Booking::new(BookingKind::PayoutRequested, amount, Amount::ZERO));
    Ok(PayoutDecision { payout, booking, event: Some(EventKind::PayoutCreated) })
}

/// Applies a step to a payout. Its times strictly increase, as those of a payment.
///
/// # Errors
/// [`PayoutRefusal::Status`] if the payout's status does not allow the step.
pub fn decide_payout(payout: &Payout, step: PayoutStep, now: Timestamp) -> Result<PayoutDecision, PayoutRefusal> {
    use PayoutStatus::{Approved, Failed, Paid, Requested, Sending, Unknown};
    let (from, to) = (&payout.status, step.target());
    let (booking, event) = match (from, &step) {
        (Requested, PayoutStep::Approved) => (None, Some(EventKind::PayoutApproved)),
        (Approved, PayoutStep::Sent) | (Sending, PayoutStep::Unknown { .. }) => (None, None),
        (Sending | Unknown, PayoutStep::Paid { .. }) => (Some(BookingKind::PayoutPaid), Some(EventKind::PayoutPaid)),
        (Sending | Unknown, PayoutStep::Failed { .. }) => {
            (Some(BookingKind::PayoutFailed), Some(EventKind::PayoutFailed))
        }
        (Requested | Approved, PayoutStep::Cancelled { .. }) => {
            (Some(BookingKind::PayoutFailed), Some(EventKind::PayoutCancelled))
        }
        (Failed, PayoutStep::Paid { .. }) => (Some(BookingKind::PayoutPaidLate), Some(EventKind::PayoutPaid)),
        (Paid, PayoutStep::Returned { .. }) => (Some(BookingKind::PayoutReturned), Some(EventKind::PayoutReturned)),
        _ => return Err(PayoutRefusal::Status { from: from.clone(), to }),
    };
    let now = now.max(payout.updated_at.plus_millis(1));
    let mut after = Payout { status: to, updated_at: now, ..payout.clone() };
    if !after.status.is_open() {
        after.ended_at = Some(now);
    }
    match step {
        PayoutStep::Approved => after.approved_at = Some(now),
        PayoutStep::Sent => after.sent_at = Some(now),
        PayoutStep::Paid { reference } => {
            (after.reference, after.reason, after.paid_at) = (Some(reference), None, Some(now));
        }
        PayoutStep::Unknown { reason } | PayoutStep::Failed { reason } | PayoutStep::Returned { reason } => {
            after.reason = Some(reason);
        }
        PayoutStep::Cancelled { reason } => after.reason = reason,
    }
    let booking = booking.map(|kind| Booking::new(kind, payout.amount, Amount::ZERO));
    Ok(PayoutDecision { payout: after, booking, event })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{DestinationKind, LedgerAccount, RANDOM_BYTES, Slot};

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis).unwrap()
    }

    fn new(balance: i128) -> NewPayout {
        NewPayout {
            id: PayoutId::new(Slot::FIRST, at(5), [1; RANDOM_BYTES]),
            environment: Environment::Live,
            currency: Currency::Bdt,
            destination: PayoutDestination {
                kind: DestinationKind::BankAccount,
                holder: "Karim Stores".to_owned(),
                institution: "010271234".to_owned(),
                last4: "6789".to_owned(),
                created_at: at(1),
                unknown: UnknownFields::default(),
            },
            opening_balance: Balance::from_minor(20),
            balance: Balance::from_minor(balance),
            now: at(5),
        }
    }

    fn minor(minor: u64) -> Amount {
        Amount::from_minor(minor)
    }

    fn steps() -> Vec<PayoutStep> {
        let reason = || "no such account".to_owned();
        vec![
            PayoutStep::Approved,
            PayoutStep::Sent,
            PayoutStep::Unknown { reason: reason() },
            PayoutStep::Paid { reference: "FT-1".to_owned() },
            PayoutStep::Failed { reason: reason() },
            PayoutStep::Cancelled { reason: None },
            PayoutStep::Returned { reason: reason() },
        ]
    }

    #[test]
    fn a_payout_takes_what_is_asked_for_or_all_that_is_available() {
        for (amount, available, expected) in [
            (None, 900, Some(900)),
            (Some(900), 900, Some(900)),
            (Some(1), 900, Some(1)),
            (Some(901), 900, None),
            (Some(0), 900, None),
            (None, 0, None),
        ] {
            let decided = request_payout(amount.map(minor), minor(available), new(1_000));
            match (decided, expected) {
                (Ok(PayoutDecision { payout, booking, event }), Some(expected)) => {
                    assert_eq!(payout.amount, minor(expected));
                    assert_eq!(payout.statement.closing_balance.as_minor(), 1_000 - i128::from(expected));
                    assert_eq!(booking.unwrap().minor.cast_unsigned(), expected);
                    assert_eq!(event, Some(EventKind::PayoutCreated));
                }
                (Err(refusal), None) => {
                    assert_eq!(refusal.to_string(), format!("{} BDT is available for a payout", minor(available)));
                }
                (decided, _) => panic!("{amount:?} of {available}: {decided:?}"),
            }
        }
    }

    #[test]
    fn every_status_and_step_follows_the_table() {
        let table = [
            ("requested", 0, "approved", None, Some("payout.approved")),
            ("approved", 1, "sending", None, None),
            ("sending", 2, "unknown", None, None),
            ("sending", 3, "paid", Some(BookingKind::PayoutPaid), Some("payout.paid")),
            ("unknown", 3, "paid", Some(BookingKind::PayoutPaid), Some("payout.paid")),
            ("failed", 3, "paid", Some(BookingKind::PayoutPaidLate), Some("payout.paid")),
            ("sending", 4, "failed", Some(BookingKind::PayoutFailed), Some("payout.failed")),
            ("unknown", 4, "failed", Some(BookingKind::PayoutFailed), Some("payout.failed")),
            ("requested", 5, "cancelled", Some(BookingKind::PayoutFailed), Some("payout.cancelled")),
            ("approved", 5, "cancelled", Some(BookingKind::PayoutFailed), Some("payout.cancelled")),
            ("paid", 6, "returned", Some(BookingKind::PayoutReturned), Some("payout.returned")),
        ];
        let requested = request_payout(None, minor(900), new(900)).unwrap().payout;
        for from in PayoutStatus::KNOWN.iter().chain([&PayoutStatus::Other("later".into())]) {
            for (nth, step) in steps().into_iter().enumerate() {
                let payout = Payout { status: from.clone(), ..requested.clone() };
                let row = table.iter().find(|row| (row.0, row.1) == (from.as_str(), nth));
                match (decide_payout(&payout, step.clone(), at(9)), row) {
                    (Ok(decision), Some((.., to, booking, event))) => {
                        assert_eq!(decision.payout.status.as_str(), *to);
                        assert_eq!(decision.booking.map(|it| it.kind), *booking);
                        assert_eq!(decision.event.as_ref().map(EventKind::as_str), *event);
                    }
                    (Err(refusal), None) => {
                        let expected = format!("a payout that is {from} cannot become {}", step.target());
                        assert_eq!(refusal.to_string(), expected);
                    }
                    (decided, row) => panic!("{from} by {step:?}: {decided:?} and not {row:?}"),
                }
            }
        }
    }

    proptest! {
        #[test]
        fn the_books_of_a_payout_follow_from_its_status(chosen in prop::collection::vec(0..7usize, 0..12)) {
            let PayoutDecision { mut payout, booking, .. } = request_payout(None, minor(900), new(900)).unwrap();
            let mut bookings: Vec<Booking> = booking.into_iter().collect();
            for nth in chosen {
                if let Ok(decision) = decide_payout(&payout, steps().remove(nth), at(1)) {
                    prop_assert!(decision.payout.updated_at > payout.updated_at);
                    bookings.extend(decision.booking);
                    payout = decision.payout;
                }
            }
            let of = |account| bookings.iter().map(|it| it.change_of(account)).sum::<i64>();
            let (in_transit, merchant, bank) = match payout.status {
                PayoutStatus::Paid => (0, -900, 900),
                PayoutStatus::Failed | PayoutStatus::Cancelled | PayoutStatus::Returned => (0, 0, 0),
                _ => (900, -900, 0),
            };
            prop_assert_eq!(of(LedgerAccount::PayoutsInTransit), in_transit);
            prop_assert_eq!(of(LedgerAccount::Merchant), merchant);
            prop_assert_eq!(of(LedgerAccount::Bank), bank);
            prop_assert_eq!(payout.status.is_open(), payout.ended_at.is_none());
        }
    }
}
