//! The columns of statements. A mapping is data.

use crate::{cli::StatementColumns, domain::RowKind};

/// Where a statement has the parts of a row. A part has several names, because gateways change theirs. Names are compared
/// without capitals, spaces and signs.
#[derive(Debug)]
pub(super) struct Columns {
    /// In messages.
    pub(super) title: &'static str,
    pub(super) id: &'static [&'static str],
    pub(super) kind: &'static [&'static str],
    /// The words for kinds, without capitals.
    pub(super) kinds: &'static [(&'static str, RowKind)],
    /// The kind of other words. Without it they are refused.
    pub(super) other_kind: Option<RowKind>,
    /// The columns that may name the payment.
    pub(super) references: &'static [&'static [&'static str]],
    pub(super) gross: &'static [&'static str],
    /// Without it, the fee is what the net lacks.
    pub(super) fee: Option<&'static [&'static str]>,
    /// Without it, the net is the gross less the fee.
    pub(super) net: Option<&'static [&'static str]>,
    /// Without it, the currency is BDT.
    pub(super) currency: Option<&'static [&'static str]>,
    pub(super) date: &'static [&'static str],
    /// Whether it writes what a refund or a dispute takes without a sign.
    pub(super) takes_without_sign: bool,
}

impl Columns {
    pub(super) const fn of(columns: StatementColumns) -> &'static Self {
        match columns {
            StatementColumns::Plain => &PLAIN,
            StatementColumns::Bkash => &BKASH,
            StatementColumns::Sslcommerz => &SSLCOMMERZ,
        }
    }
}

const PLAIN: Columns = Columns {
    title: "plain",
    id: &["id"],
    kind: &["kind"],
    kinds: &[
        ("payment", RowKind::Payment),
        ("refund", RowKind::Refund),
        ("dispute", RowKind::Dispute),
        ("fee", RowKind::Fee),
        ("other", RowKind::Other),
    ],
    other_kind: None,
    references: &[&["reference"]],
    gross: &["gross"],
    fee: Some(&["fee"]),
    net: Some(&["net"]),
    currency: Some(&["currency"]),
    date: &["date"],
    takes_without_sign: false,
};

/// By the names of bKash's API, and those of its portal.
const BKASH: Columns = Columns {
    title: "bkash",
    id: &["trxID", "Transaction ID"],
    kind: &["transactionType", "Type"],
    kinds: &[
        ("payment", RowKind::Payment),
        ("bkash tokenized checkout via api", RowKind::Payment),
        ("refund", RowKind::Refund),
        ("reversal", RowKind::Refund),
        ("chargeback", RowKind::Dispute),
        ("charge", RowKind::Fee),
        ("fee", RowKind::Fee),
    ],
    other_kind: Some(RowKind::Other),
    references: &[
        &["merchantInvoiceNumber", "Merchant Invoice", "Reference"],
        &["originalTrxID", "Original Transaction ID"],
        &["trxID", "Transaction ID"],
    ],
    gross: &["amount", "Transaction Amount"],
    fee: Some(&["serviceFee", "Charge", "Fee"]),
    net: Some(&["creditedAmount", "Net Amount"]),
    currency: Some(&["currency"]),
    date: &["completedTime", "Transaction Date", "Date"],
    takes_without_sign: true,
};

/// By the names of SSLCommerz's API.
const SSLCOMMERZ: Columns = Columns {
    title: "sslcommerz",
    id: &["val_id", "settlement_id"],
    kind: &["type", "transaction type"],
    kinds: &[
        ("sale", RowKind::Payment),
        ("payment", RowKind::Payment),
        ("refund", RowKind::Refund),
        ("chargeback", RowKind::Dispute),
        ("charge", RowKind::Fee),
        ("fee", RowKind::Fee),
    ],
    other_kind: Some(RowKind::Other),
    references: &[&["tran_id"], &["bank_tran_id"]],
    gross: &["amount"],
    fee: None,
    net: Some(&["store_amount"]),
    currency: Some(&["currency"]),
    date: &["tran_date", "settlement_date", "date"],
    takes_without_sign: true,
};
