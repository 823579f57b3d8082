//! The arguments of `export`.

use clap::{Args, ValueEnum};
use payments_core::Timestamp;

use super::{DataArgs, values::time};

#[derive(Debug, Args)]
pub struct ExportArgs {
    /// The records to export.
    pub records: ExportedRecords,
    /// JSON lines hold each record as the API returns it, CSV a row of its scalar fields.
    #[arg(long, env = "PAYMENTS_FORMAT", default_value = "jsonl")]
    pub format: ExportFormat,
    /// Skip records before this time, such as 2026-03-01.
    #[arg(long, env = "PAYMENTS_SINCE", value_name = "TIME", value_parser = time)]
    pub since: Option<Timestamp>,
    /// Skip records at or after this time.
    #[arg(long, env = "PAYMENTS_UNTIL", value_name = "TIME", value_parser = time)]
    pub until: Option<Timestamp>,
    #[command(flatten)]
    pub data: DataArgs,
}

/// The records that `export` writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportedRecords {
    /// Payments; their time is the creation.
    Payments,
    /// Refunds; their time is the creation.
    Refunds,
    /// Double-entry ledger postings; their time is the movement of the money.
    Postings,
    /// Rows of gateways' statements; their time is the import.
    Settlements,
    /// Webhook deliveries; their time is the creation.
    Deliveries,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    Jsonl,
    Csv,
}
