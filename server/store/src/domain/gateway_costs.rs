//! Gateway costs: the fees that gateways keep.

use payments_core::{Amount, Booking, BookingKind, Currency};
use serde::{Deserialize, Serialize};

use super::Session;

/// A row of a gateway's own books with what it kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CostRow {
    /// The gateway's id of the row.
    pub id: String,
    /// What it kept, in minor units. Negative if it returned some.
    pub minor: i64,
    /// The currency in which the gateway settles. `None` if this server does not know it.
    pub currency: Option<Currency>,
}

/// What a gateway kept of a payment, by one row of its books.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GatewayCost {
    pub row: String,
    /// In minor units. Negative if it was returned.
    pub minor: i64,
    /// Whether the merchant bears it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_of_merchant: bool,
}

/// How many rows with costs a payment may have.
const MAX_COSTS: usize = 100;

impl GatewayCost {
    pub fn booking(&self) -> Booking {
        let kind = if self.is_of_merchant { BookingKind::MerchantCost } else { BookingKind::GatewayCost };
        Booking { kind, minor: self.minor, fee_minor: 0 }
    }
}

impl Session {
    /// Whether a row of the gateway's books is a cost of this payment that is not booked yet. There is no exchange here: a cost
    /// in another currency than the payment's is not booked.
    pub fn lacks_cost(&self, row: &CostRow) -> bool {
        let is_known = self.costs.iter().any(|cost| cost.row == row.id);
        let is_its = self.payment.paid_at.is_some() && row.currency == Some(self.payment.currency);
        let is_amount = row.minor != 0 && row.minor.unsigned_abs() <= Amount::MAX.as_minor();
        is_its && !is_known && is_amount && self.costs.len() < MAX_COSTS
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::samples::{at, session};

    #[test]
    fn each_row_in_the_payments_currency_is_booked_once() {
        let row = |currency| CostRow { id: "txn_1".into(), minor: 30, currency };
        let mut session = session();
        assert!(!session.lacks_cost(&row(Some(Currency::Bdt))), "it was not paid");
        session.payment.paid_at = Some(at(9));
        assert!(session.lacks_cost(&row(Some(Currency::Bdt))));
        assert!(!session.lacks_cost(&row(Some(Currency::Usd))) && !session.lacks_cost(&row(None)));
        session.costs.push(GatewayCost { row: "txn_1".into(), minor: 30, is_of_merchant: false });
        assert!(!session.lacks_cost(&row(Some(Currency::Bdt))));
        let returned = CostRow { id: "txn_2".into(), minor: -10, currency: Some(Currency::Bdt) };
        assert!(session.lacks_cost(&returned));
        assert!(!session.lacks_cost(&CostRow { minor: i64::MIN, ..returned }), "it is no amount");
        session.costs.push(GatewayCost { row: "txn_2".into(), minor: -10, is_of_merchant: true });
        let booked: Vec<_> = session.costs.iter().map(|cost| (cost.booking().kind, cost.booking().minor)).collect();
        assert_eq!(booked, [(BookingKind::GatewayCost, 30), (BookingKind::MerchantCost, -10)]);
    }
}
