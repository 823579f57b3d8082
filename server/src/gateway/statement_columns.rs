//! The columns of gateways' statements. A mapping is data.

use super::registry;
use crate::domain::RowKind;

/// The names of the columns that hold a row's values. A column has several names, because gateways rename columns.
/// Case, spaces and punctuation in names do not count.
#[derive(Debug)]
pub struct StatementColumns {
    /// Its word in commands and in messages.
    pub name: &'static str,
    pub id: &'static [&'static str],
    pub kind: &'static [&'static str],
    /// The words for kinds, without capitals.
    pub kinds: &'static [(&'static str, RowKind)],
    /// The kind of other words. Without it they are refused.
    pub other_kind: Option<RowKind>,
    /// The columns that may name the payment.
    pub references: &'static [&'static [&'static str]],
    pub gross: &'static [&'static str],
    /// Without it, the fee is what the net lacks.
    pub fee: Option<&'static [&'static str]>,
    /// Without it, the net is the gross less the fee.
    pub net: Option<&'static [&'static str]>,
    /// Without it, the currency is BDT.
    pub currency: Option<&'static [&'static str]>,
    pub date: &'static [&'static str],
    /// Whether it writes what a refund or a dispute takes without a sign.
    pub takes_without_sign: bool,
}

impl StatementColumns {
    /// The plain columns, and those of each gateway that has statements.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        [&PLAIN].into_iter().chain(registry().filter_map(|declared| declared.statement))
    }

    pub fn named(name: &str) -> Option<&'static Self> {
        Self::all().find(|it| it.name == name)
    }
}

pub static PLAIN: StatementColumns = StatementColumns {
    name: "plain",
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
