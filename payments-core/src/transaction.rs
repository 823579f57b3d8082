//! The account's transactions: the changes of the merchant's balance.

use crate::{
    Balance, Currency, ErrorCode, PaymentId, PayoutId, Timestamp, TransactionId, aliased::aliased_resource,
    open_enum::open_enum, query::Query, validation::Invalid,
};

open_enum! {
    /// Why a transaction moved the balance.
    pub enum TransactionKind {
        /// A customer paid: the gross amount.
        Payment = "payment",
        /// The platform's fee on a payment, as a negative amount.
        Fee = "fee",
        /// Money given back to a customer, as a negative amount.
        Refund = "refund",
        /// The part of the fee that a refund gives back, or a dispute.
        FeeReturned = "fee_returned",
        /// Money of a refund that failed. The fee on it is a transaction of the kind `fee` again.
        RefundFailed = "refund_failed",
        /// What a gateway kept of a payment, if merchants bear it, as a negative amount.
        GatewayCost = "gateway_cost",
        /// Money that the gateway withdrew for a dispute, as a negative amount.
        Dispute = "dispute",
        /// Money of a dispute that the gateway reinstated.
        DisputeReversed = "dispute_reversed",
        /// Money of a payout, as a negative amount.
        Payout = "payout",
        /// Money of a payout that failed, was cancelled, or was returned.
        PayoutReversed = "payout_reversed",
    }
}

aliased_resource! {
    /// A posting to the ledger that moved the merchant's balance.
    #[derive(Debug)]
    pub struct Transaction {
        /// The transaction's id. It never changes.
        id: TransactionId = "id",
        /// When it was posted.
        created_at: Timestamp = "createdAt",
        /// The payment that it belongs to, if it belongs to one.
        payment_id: Option<PaymentId> = "paymentId",
        /// The payout that it belongs to, if it belongs to one.
        payout_id: Option<PayoutId> = "payoutId" (omitted if None),
        /// Why the balance moved.
        kind: TransactionKind = "kind",
        /// By how much: negative for fees and refunds.
        amount: Balance = "amount",
        /// The currency of `amount` and `balance`.
        currency: Currency = "currency",
        /// The balance in this currency right after this transaction.
        balance: Balance = "balance",
    }
}

aliased_resource! {
    /// A part of the list of transactions, newest first.
    #[derive(Debug)]
    pub struct TransactionPage {
        /// The transactions, the last one posted first.
        items: Vec<Transaction> = "items",
        /// Whether the list goes on.
        has_more: bool = "hasMore",
        /// Where the next part begins: pass it as `after`. With filters, it may be a transaction that they exclude, and a
        /// part may be empty although the list goes on.
        next: Option<TransactionId> = "next",
    }
}

/// The part of the list of transactions that a request asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TransactionQuery {
    /// Only transactions after this one in the list, which were posted before it.
    pub after: Option<TransactionId>,
    /// Only transactions in this currency.
    pub currency: Option<Currency>,
    /// Only transactions posted at this time or later.
    pub created_after: Option<Timestamp>,
    /// Only transactions posted before this time.
    pub created_before: Option<Timestamp>,
    limit: Option<u16>,
}

impl TransactionQuery {
    /// The default number of items.
    pub const DEFAULT_LIMIT: u16 = 20;
    /// The maximum number of items.
    pub const MAX_LIMIT: u16 = 100;
    /// The maximum, and the default, number of rows of a CSV table.
    pub const MAX_ROWS: u16 = 10_000;

    /// Parses the query parameters `after`, `currency`, `createdAfter`, `createdBefore` and `limit` (1 to 100, default 20).
    /// `parameter` returns a parameter's value.
    ///
    /// # Errors
    /// One sentence per invalid parameter.
    pub fn from_query(parameter: impl Fn(&str) -> Option<String>) -> Result<Self, Invalid> {
        Self::parse(parameter, Self::MAX_LIMIT)
    }

    /// Parses the same for a CSV table: `limit` is 1 to 10,000, default 10,000.
    ///
    /// # Errors
    /// One sentence per invalid parameter.
    pub fn of_table(parameter: impl Fn(&str) -> Option<String>) -> Result<Self, Invalid> {
        let query = Self::parse(parameter, Self::MAX_ROWS)?;
        Ok(Self { limit: query.limit.or(Some(Self::MAX_ROWS)), ..query })
    }

    fn parse(parameter: impl Fn(&str) -> Option<String>, max_limit: u16) -> Result<Self, Invalid> {
        let mut query = Query::of(parameter);
        let after = query.parsed("after", ErrorCode::FieldInvalid, "must be the id of a transaction");
        let currency = query.parsed("currency", ErrorCode::CurrencyInvalid, "must be BDT or USD");
        let (created_after, created_before) = (query.time("createdAfter"), query.time("createdBefore"));
        let limit = query.limit(max_limit);
        query.invalid.or(Self { after, currency, created_after, created_before, limit })
    }

    /// The maximum number of items.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit.unwrap_or(Self::DEFAULT_LIMIT).into()
    }

    /// Whether the filters include a transaction.
    #[must_use]
    pub fn includes(&self, currency: Currency, created_at: Timestamp) -> bool {
        self.currency.is_none_or(|only| only == currency)
            && self.created_after.is_none_or(|from| created_at >= from)
            && self.created_before.is_none_or(|end| created_at < end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::UnknownFields;

    fn parameters<'p>(pairs: &'p [(&'p str, &'p str)]) -> impl Fn(&str) -> Option<String> + 'p {
        |name| pairs.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned())
    }

    #[test]
    fn by_default_a_page_has_twenty_items_and_a_table_ten_thousand_rows() {
        assert_eq!(TransactionQuery::from_query(parameters(&[])).unwrap(), TransactionQuery::default());
        assert_eq!(TransactionQuery::default().limit(), 20);
        assert_eq!(TransactionQuery::of_table(parameters(&[])).unwrap().limit(), 10_000);
        let limited = [("limit", "1000")];
        assert_eq!(TransactionQuery::of_table(parameters(&limited)).unwrap().limit(), 1000);
        assert!(TransactionQuery::from_query(parameters(&limited)).is_err());
    }

    #[test]
    fn filters_include_their_first_moment_and_exclude_their_last() {
        let query = TransactionQuery::from_query(parameters(&[
            ("currency", "USD"),
            ("createdAfter", "2026-03-01T00:00:00Z"),
            ("createdBefore", "2026-03-02T00:00:00Z"),
        ]))
        .unwrap();
        for (currency, time, is_included) in [
            (Currency::Usd, "2026-03-01T00:00:00Z", true),
            (Currency::Usd, "2026-03-02T00:00:00Z", false),
            (Currency::Usd, "2026-02-28T23:59:59.999Z", false),
            (Currency::Bdt, "2026-03-01T12:00:00Z", false),
        ] {
            assert_eq!(query.includes(currency, time.parse().unwrap()), is_included, "{currency} {time}");
        }
    }

    #[test]
    fn each_invalid_parameter_is_named() {
        let wrong =
            [("after", "a b"), ("currency", "EUR"), ("createdAfter", "x"), ("createdBefore", "1"), ("limit", "0")];
        let fields = TransactionQuery::from_query(parameters(&wrong)).unwrap_err().fields();
        let named: Vec<_> = fields.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(named, wrong.map(|(name, _)| name));
    }

    #[test]
    fn a_negative_amount_is_written_in_major_units() {
        let transaction = Transaction {
            id: "txn_fee_1".parse().unwrap(),
            created_at: "2026-03-01T00:00:00Z".parse().unwrap(),
            payment_id: "pay_1".parse().ok(),
            payout_id: None,
            kind: TransactionKind::Fee,
            amount: Balance::from_minor(-3750),
            currency: Currency::Bdt,
            balance: Balance::from_minor(71_250),
            unknown: UnknownFields::new(),
        };
        let json = serde_json::to_value(&transaction).unwrap();
        assert_eq!((&json["amount"], &json["balance"]), (&serde_json::json!(-37.5), &serde_json::json!(712.5)));
        assert_eq!(serde_json::from_value::<Transaction>(json).unwrap(), transaction);
    }
}
