//! The commands about settlements.

use std::path::PathBuf;

use clap::{
    Subcommand, ValueEnum,
    builder::{PossibleValuesParser, TypedValueParser as _},
};
use payments_core::Timestamp;

use super::values::{one_of, time};
use crate::{
    domain::GatewayName,
    gateway::{StatementColumns, registry},
};

#[derive(Debug, Subcommand)]
pub enum SettlementsCommand {
    /// Import a gateway's statement. Prints its rows with our payments, its rows without one, our payments without a row, and
    /// how many there are of each. A row counts once, so a file may be imported again.
    Import {
        /// The statement, a CSV file. Without it, the running server asks the gateway's API.
        file: Option<PathBuf>,
        #[arg(long, env = "PAYMENTS_GATEWAY", value_name = "NAME", value_parser = one_of::<GatewayName>(registry().map(|it| it.name.as_str())))]
        /// The gateway that settled.
        gateway: GatewayName,
        /// Whose columns the file has. Plain ones are id, kind (payment, refund, dispute, fee, other), reference, gross, fee,
        /// net, currency, date.
        #[arg(long, env = "PAYMENTS_COLUMNS", default_value = "plain", value_parser = columns())]
        columns: &'static StatementColumns,
        /// Name our payments and refunds without a row that are older than this many days.
        #[arg(long, env = "PAYMENTS_OLDER_THAN", default_value_t = 3, value_name = "DAYS")]
        older_than: u16,
        /// Take the rows' fees from the merchants' balances, as a server with this flag does.
        #[arg(long, env = "PAYMENTS_MERCHANTS_BEAR_GATEWAY_COSTS")]
        merchants_bear_gateway_costs: bool,
    },
    /// Find the payment of a row that has none.
    Resolve {
        /// The gateway's id of the row.
        row: String,
        /// The payment's id.
        #[arg(long, env = "PAYMENTS_PAYMENT", value_name = "PAY")]
        payment: String,
        /// Take the row's fee from the merchant's balance, as a server with this flag does.
        #[arg(long, env = "PAYMENTS_MERCHANTS_BEAR_GATEWAY_COSTS")]
        merchants_bear_gateway_costs: bool,
    },
    /// List imported rows with our payments, those without one, or our payments without a row.
    List {
        /// The list.
        list: SettlementList,
        /// In `ours`, only payments and refunds that are older than this many days.
        #[arg(long, env = "PAYMENTS_OLDER_THAN", default_value_t = 3, value_name = "DAYS")]
        older_than: u16,
    },
    /// For each gateway and currency, print what the gateway owed, what changed it since, what it owes now, and whether that is
    /// its account in the books.
    Report {
        /// The beginning of the period, such as 2026-03-01. Without it, the report begins with the first payment.
        #[arg(long, env = "PAYMENTS_SINCE", value_name = "TIME", value_parser = time)]
        since: Option<Timestamp>,
    },
}

/// Reads the name of columns.
fn columns() -> impl clap::builder::TypedValueParser<Value = &'static StatementColumns> {
    let names = StatementColumns::all().map(|it| it.name);
    PossibleValuesParser::new(names).try_map(|name| StatementColumns::named(&name).ok_or("no statement has them"))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SettlementList {
    /// Rows with our payments.
    Matched,
    /// Rows without a payment of ours.
    Theirs,
    /// Our payments and refunds without a row.
    Ours,
}
