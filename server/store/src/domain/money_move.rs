//! How a booking changes the merchant's balance.

use payments_core::{Booking, BookingKind, Currency, EventKind, LedgerAccount};

/// How a booking changes the merchant's balance, in minor units.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MoneyMove {
    pub kind: BookingKind,
    pub currency: Currency,
    /// The paid amount, or the refunded or disputed amount as a negative number.
    pub amount: i64,
    /// The platform's fee as a negative number, or the part of it that a refund or a dispute gives back.
    pub fee: i64,
}

impl MoneyMove {
    /// The move of a booking; `None` if it does not change the merchant's balance.
    pub fn of(currency: Currency, booking: Booking) -> Option<Self> {
        let (net, fee) = (booking.change_of(LedgerAccount::Merchant), booking.change_of(LedgerAccount::PlatformFee));
        let kind = booking.kind;
        kind.is_of_a_merchant().then_some(Self { kind, currency, amount: net + fee, fee: -fee })
    }

    /// The sum of amount and fee, which is added to the balance.
    pub fn net(&self) -> i128 {
        i128::from(self.amount) + i128::from(self.fee)
    }
}

/// Whether events of this kind have a booking. The bookings of a dispute have no event, because one of them can come without
/// a change of its status.
pub fn moves_money(kind: &EventKind) -> bool {
    matches!(
        kind,
        EventKind::PaymentCompleted
            | EventKind::PaymentPartiallyRefunded
            | EventKind::PaymentRefunded
            | EventKind::PaymentRefundFailed
    )
}

/// A merchant's balance in each currency, in minor units.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct BothBalances {
    pub bdt: i128,
    pub usd: i128,
}

impl BothBalances {
    pub fn of(self, currency: Currency) -> i128 {
        match currency {
            Currency::Bdt => self.bdt,
            Currency::Usd => self.usd,
            Currency::Other(_) => 0,
        }
    }

    pub fn after(self, money: &MoneyMove) -> Self {
        match money.currency {
            Currency::Bdt => Self { bdt: self.bdt + money.net(), ..self },
            Currency::Usd => Self { usd: self.usd + money.net(), ..self },
            Currency::Other(_) => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_move_has_amount_and_fee_and_changes_only_the_balance_of_its_currency() {
        let booking = |kind| Booking { kind, minor: 10_000, fee_minor: 250 };
        assert_eq!(MoneyMove::of(Currency::Usd, booking(BookingKind::GatewayCost)), None);
        let balances = BothBalances { bdt: 7, usd: 100 };
        for (currency, after) in [
            (Currency::Bdt, BothBalances { bdt: 7 + 9_750, usd: 100 }),
            (Currency::Usd, BothBalances { bdt: 7, usd: 100 + 9_750 }),
        ] {
            let kind = BookingKind::Paid;
            let paid = MoneyMove::of(currency, booking(kind)).unwrap();
            assert_eq!(paid, MoneyMove { kind, currency, amount: 10_000, fee: -250 });
            let refunded = MoneyMove::of(currency, booking(BookingKind::Refunded)).unwrap();
            assert_eq!((refunded.amount, refunded.fee), (-10_000, 250));
            assert_eq!(balances.after(&paid), after);
            assert_eq!(after.of(currency) - balances.of(currency), paid.net());
        }
    }

    #[test]
    fn completions_and_refunds_move_money_and_no_other_events() {
        let refunds = [EventKind::PaymentPartiallyRefunded, EventKind::PaymentRefunded, EventKind::PaymentRefundFailed];
        for kind in refunds.iter().chain([&EventKind::PaymentCompleted]) {
            assert!(moves_money(kind), "{kind}");
        }
        for kind in [
            EventKind::PaymentCreated,
            EventKind::PaymentDisputed,
            EventKind::TestPing,
            EventKind::Other("payment.lost".into()),
        ] {
            assert!(!moves_money(&kind), "{kind}");
        }
    }
}
