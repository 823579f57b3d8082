//! How an event changes the merchant's balance and volume.

use payments_core::{Currency, EventKind, LedgerAccount, Posting};
use serde::{Deserialize, Serialize};

/// How an event changes the merchant's balance, in minor units.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct MoneyMove {
    pub currency: Currency,
    /// The paid amount, or the refunded amount as a negative number.
    pub amount: i64,
    /// The platform's fee as a negative number, or the part of it that a refund gives back.
    pub fee: i64,
}

impl MoneyMove {
    /// The move of a change's postings; `None` if it has none.
    pub fn of(currency: Currency, postings: &[Posting]) -> Option<Self> {
        let of = |account| postings.iter().filter(|it| it.account == account).map(|it| it.minor).sum::<i64>();
        let (net, fee) = (of(LedgerAccount::Merchant), of(LedgerAccount::PlatformFee));
        (!postings.is_empty()).then(|| Self { currency, amount: net + fee, fee: -fee })
    }

    /// The sum of amount and fee, which is added to the balance.
    pub fn net(&self) -> i128 {
        i128::from(self.amount) + i128::from(self.fee)
    }
}

/// The volume of postings: the amount that came in through a gateway. A refund does not reduce the volume.
pub fn volume_of(postings: &[Posting]) -> Option<i128> {
    let paid = |posting: &&Posting| posting.account == LedgerAccount::GatewayClearing && posting.minor < 0;
    postings.iter().find(paid).map(|posting| -i128::from(posting.minor))
}

/// Whether events of this kind have postings. A payment's events of these kinds have the same order as its lists of postings.
pub fn moves_money(kind: &EventKind) -> bool {
    matches!(kind, EventKind::PaymentCompleted | EventKind::PaymentPartiallyRefunded | EventKind::PaymentRefunded)
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
        }
    }

    pub fn after(self, money: &MoneyMove) -> Self {
        match money.currency {
            Currency::Bdt => Self { bdt: self.bdt + money.net(), ..self },
            Currency::Usd => Self { usd: self.usd + money.net(), ..self },
        }
    }
}

#[cfg(test)]
mod tests {
    use payments_core::ledger;

    use super::*;
    use crate::domain::samples::session;

    #[test]
    fn a_move_has_amount_and_fee_and_changes_only_the_balance_of_its_currency() {
        let postings = ledger::of_completion(&session().payment);
        assert_eq!(MoneyMove::of(Currency::Usd, &[]), None);
        let balances = BothBalances { bdt: 7, usd: 100 };
        for (currency, after) in [
            (Currency::Bdt, BothBalances { bdt: 7 + 9_750, usd: 100 }),
            (Currency::Usd, BothBalances { bdt: 7, usd: 100 + 9_750 }),
        ] {
            let paid = MoneyMove::of(currency, &postings).unwrap();
            assert_eq!(paid, MoneyMove { currency, amount: 10_000, fee: -250 });
            assert_eq!(balances.after(&paid), after);
            assert_eq!(after.of(currency) - balances.of(currency), paid.net());
        }
    }

    #[test]
    fn completions_and_refunds_move_money_and_no_other_events() {
        for kind in [EventKind::PaymentCompleted, EventKind::PaymentPartiallyRefunded, EventKind::PaymentRefunded] {
            assert!(moves_money(&kind), "{kind}");
        }
        for kind in [EventKind::PaymentCreated, EventKind::TestPing, EventKind::Other("payment.lost".into())] {
            assert!(!moves_money(&kind), "{kind}");
        }
    }
}
