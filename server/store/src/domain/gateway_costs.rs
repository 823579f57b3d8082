//! What gateways keep for themselves.

use payments_core::{Amount, Booking, BookingKind, Currency};
use serde::{Deserialize, Serialize};

use super::Session;

/// A row of a gateway's own books with what it kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostRow {
    /// The gateway's id of the row.
    pub id: String,
    pub amount: Amount,
    /// The currency in which the gateway settles. `None` if this server does not know it.
    pub currency: Option<Currency>,
}

/// What a gateway kept of a payment, by one row of its books.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatewayCost {
    pub row: String,
    pub amount: Amount,
    /// Whether the merchant bears it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_of_merchant: bool,
}

/// How many rows with costs a payment may have.
const MAX_COSTS: usize = 100;

impl GatewayCost {
    pub fn booking(&self) -> Booking {
        let kind = if self.is_of_merchant { BookingKind::MerchantCost } else { BookingKind::GatewayCost };
        Booking::new(kind, self.amount, Amount::ZERO)
    }
}

impl Session {
    /// Whether a row of the gateway's books is a cost of this payment that is not booked yet. There is no exchange here: a cost
    /// in another currency than the payment's is not booked.
    pub fn lacks_cost(&self, row: &CostRow) -> bool {
        let is_known = self.costs.iter().any(|cost| cost.row == row.id);
        let is_its = self.payment.paid_at.is_some() && row.currency == Some(self.payment.currency);
        is_its && !is_known && row.amount > Amount::ZERO && self.costs.len() < MAX_COSTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::samples::{at, session};

    #[test]
    fn each_row_in_the_payments_currency_is_booked_once() {
        let row = |currency| CostRow { id: "txn_1".into(), amount: Amount::from_minor(30), currency };
        let mut session = session();
        assert!(!session.lacks_cost(&row(Some(Currency::Bdt))), "it was not paid");
        session.payment.paid_at = Some(at(9));
        assert!(session.lacks_cost(&row(Some(Currency::Bdt))));
        assert!(!session.lacks_cost(&row(Some(Currency::Usd))) && !session.lacks_cost(&row(None)));
        session.costs.push(GatewayCost { row: "txn_1".into(), amount: Amount::from_minor(30), is_of_merchant: false });
        assert!(!session.lacks_cost(&row(Some(Currency::Bdt))));
        assert_eq!(session.costs[0].booking(), Booking { kind: BookingKind::GatewayCost, minor: 30, fee_minor: 0 });
    }
}
