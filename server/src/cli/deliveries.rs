//! The commands that send webhooks once more.

use clap::Subcommand;
use payments_core::Timestamp;

use super::values::time;

#[derive(Debug, Subcommand)]
pub(crate) enum DeliveriesCommand {
    /// Send a delivery's event to its endpoint once more. Prints the id of the new delivery.
    Resend {
        /// The delivery's id.
        delivery: String,
    },
    /// Send each delivery to an endpoint that failed, and was not sent again since, once more. Prints how many.
    Recover {
        /// The webhook endpoint's id.
        webhook: String,
        /// Only deliveries made at this time or later, such as 2026-03-01.
        #[arg(long, env = "PAYMENTS_SINCE", value_name = "TIME", value_parser = time)]
        since: Timestamp,
        /// Only deliveries made before this time.
        #[arg(long, env = "PAYMENTS_UNTIL", value_name = "TIME", value_parser = time)]
        until: Option<Timestamp>,
    },
}
