//! The commands about customers' data, and the settings of how long records are kept.

use clap::{ArgGroup, Args, Subcommand};

use crate::service::{CustomerName, Retention};

#[derive(Debug, Subcommand)]
pub enum CustomersCommand {
    /// Print all that is held on a customer, one line of JSON for each payment: the payment with its refunds, the
    /// gateway's words, events, deliveries and stored responses.
    Export(CustomerArgs),
    /// Erase name, e-mail address and phone number of a customer in payments, events, deliveries, stored responses and the search.
    /// Amounts and ids stay. Prints how much was erased and where copies remain. Payments that still need the data, such as open
    /// ones, are named, and the exit code is 1. If it was interrupted, run it again.
    Erase {
        #[command(flatten)]
        customer: CustomerArgs,
        /// Erase the payments' metadata too.
        #[arg(long)]
        metadata: bool,
        /// Erase the lines of orders, descriptions and reasons of refunds too.
        #[arg(long)]
        lines: bool,
        /// Confirm: nothing brings the data back.
        #[arg(long, required = true)]
        yes: bool,
    },
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("who").args(["phone", "email"]).required(true))]
pub struct CustomerArgs {
    /// The workspace's id or name.
    #[arg(long, env = "PAYMENTS_WORKSPACE", value_name = "W")]
    workspace: String,
    /// The customer's phone number, in any of its forms.
    #[arg(long, value_name = "PHONE")]
    phone: Option<String>,
    /// The customer's e-mail address.
    #[arg(long, value_name = "E-MAIL")]
    email: Option<String>,
}

impl CustomerArgs {
    pub fn name(self) -> CustomerName {
        let Self { workspace, phone, email } = self;
        CustomerName { workspace, phone, email }
    }
}

#[derive(Debug, Args)]
pub struct RetentionArgs {
    /// Days after a payment's last change after which the server erases its customer's name, e-mail address and phone number; 0
    /// keeps them.
    #[arg(long, env = "PAYMENTS_CUSTOMER_DATA_DAYS", value_name = "DAYS", default_value_t = 0)]
    pub customer_data_days: u16,
    /// Days for which merchants can read the log of their requests, and after which it is dropped; at most 30.
    #[arg(long, env = "PAYMENTS_REQUEST_LOG_DAYS", value_name = "DAYS", default_value_t = 7,
        value_parser = clap::value_parser!(u16).range(1..=30))]
    pub request_log_days: u16,
    /// Days within which a refund must be sent by hand. Later it is overdue: see `refunds list` and the alert.
    #[arg(long, env = "PAYMENTS_MANUAL_REFUND_DAYS", value_name = "DAYS", default_value_t = Retention::default().manual_refund_days,
        value_parser = clap::value_parser!(u16).range(1..=365))]
    pub manual_refund_days: u16,
}

impl RetentionArgs {
    pub fn settings(&self) -> Retention {
        Retention {
            customer_data_days: Some(self.customer_data_days).filter(|days| *days > 0),
            request_log_days: self.request_log_days,
            manual_refund_days: self.manual_refund_days,
        }
    }
}
