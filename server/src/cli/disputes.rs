//! The commands about disputes.

use clap::Subcommand;
use payments_core::{Amount, Timestamp};

use super::values::{one_of, time};
use crate::service::DisputeOutcome;

#[derive(Debug, Subcommand)]
pub enum DisputesCommand {
    /// List open disputes, the next date for evidence first: date, dispute, payment, status, amount, currency, withdrawn,
    /// reinstated, opened, reference, reason.
    List,
    /// Record that a customer disputes a payment at a gateway that does not report disputes, such as bKash. The merchant gets
    /// `payment.disputed`. No money moves yet.
    Open {
        /// The payment's id.
        payment: String,
        /// The disputed amount.
        #[arg(long, env = "PAYMENTS_AMOUNT")]
        amount: Amount,
        /// The gateway's name of the dispute. The same command again opens no second one.
        #[arg(long, env = "PAYMENTS_REFERENCE", value_name = "R")]
        reference: String,
        /// The customer's reason, which the merchant sees.
        #[arg(long, env = "PAYMENTS_REASON", value_name = "TEXT")]
        reason: Option<String>,
        /// When the evidence must be with the gateway, such as 2026-03-01.
        #[arg(long = "evidence-due", env = "PAYMENTS_EVIDENCE_DUE", value_name = "TIME", value_parser = time)]
        evidence_due_by: Option<Timestamp>,
        /// Return the platform's fee on what is withdrawn.
        #[arg(long, env = "PAYMENTS_RETURNS_FEE")]
        returns_fee: bool,
    },
    /// Record that the gateway withdrew money for a dispute.
    Withdraw(DisputeMoveArgs),
    /// Record that the gateway reinstated money that it had withdrawn. A lost dispute with all its money back is won.
    Reinstate(DisputeMoveArgs),
    /// Record how a dispute ended. The merchant gets `payment.dispute_closed`.
    Close {
        /// The dispute's id, or the payment's id if it has only one open dispute.
        dispute: String,
        /// `won` if the merchant keeps the money, `lost` if the customer has it.
        #[arg(long = "as", env = "PAYMENTS_CLOSE_AS", value_name = "OUTCOME",
            value_parser = one_of::<DisputeOutcome>(["won", "lost"]))]
        outcome: DisputeOutcome,
    },
}

#[derive(Debug, clap::Args)]
pub struct DisputeMoveArgs {
    /// The dispute's id, or the payment's id if it has only one open dispute.
    pub dispute: String,
    /// The amount.
    #[arg(long, env = "PAYMENTS_AMOUNT")]
    pub amount: Amount,
    /// The gateway's name of the movement. The same command again records no second one.
    #[arg(long, env = "PAYMENTS_REFERENCE", value_name = "R")]
    pub reference: String,
}
