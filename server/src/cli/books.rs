//! The commands about the platform's own accounts, and about what covers the merchants' money.

use clap::{Args, Subcommand};
use payments_core::{Amount, Currency, Day};

use super::AdminArgs;

#[derive(Debug, Subcommand)]
pub enum BooksCommand {
    /// Record money that the owner paid in, or that the bank account had when the books began.
    PaidIn(EntryArgs),
    /// Record money that the owner took out.
    TakenOut(EntryArgs),
    /// Record a charge that the bank kept.
    BankCharge(EntryArgs),
    /// Record that the platform took its fees on a workspace's payments.
    FeesTaken {
        #[command(flatten)]
        entry: EntryArgs,
        /// The workspace's id or name.
        #[arg(long, env = "PAYMENTS_WORKSPACE", value_name = "WS")]
        workspace: String,
    },
}

#[derive(Debug, Args)]
pub struct EntryArgs {
    /// The amount, such as 1250.50.
    pub amount: Amount,
    /// Its currency.
    #[arg(long, env = "PAYMENTS_CURRENCY", default_value = "BDT")]
    pub currency: Currency,
    /// The bank's name of the transfer. The same command again changes nothing.
    #[arg(long, env = "PAYMENTS_REFERENCE", value_name = "R")]
    pub reference: String,
}

#[derive(Debug, Args)]
pub struct CoverageArgs {
    /// The figure that was kept when this day had ended in Dhaka, such as 2026-03-01. Without it, the figure now.
    #[arg(long, env = "PAYMENTS_DATE", value_name = "DAY")]
    pub date: Option<Day>,
    #[command(flatten)]
    pub args: AdminArgs,
}
