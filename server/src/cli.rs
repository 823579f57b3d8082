//! The command line.

mod books;
mod customers;
mod data;
mod developer;
mod disputes;
mod error;
mod export;
mod gateways;
mod merchants;
mod notices;
mod operators;
mod payouts;
mod people;
mod serve;
mod settlements;
mod values;

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
};

use clap::{Args, Parser, Subcommand};
use clap_complete::Shell;
use payments_core::Timestamp;
use secrecy::SecretString;

use crate::{service::ManualOutcome, store::Location};
pub use books::{BooksCommand, CoverageArgs, EntryArgs};
pub use customers::{CustomersCommand, RetentionArgs};
pub use data::{AdminArgs, DataArgs, StoreArgs};
pub use developer::{ApiArgs, ListenArgs, ResetArgs, TriggerArgs, secret_from};
pub use disputes::{DisputeMoveArgs, DisputesCommand};
pub use error::CommandError;
pub use export::{ExportArgs, ExportFormat, ExportedRecords};
pub use gateways::GatewaysCommand;
pub use merchants::{AppsCommand, KeysCommand, WorkspacesCommand};
pub use notices::{NoticeArgs, NoticesCommand};
pub use operators::{AuditCommand, PlatformKeysCommand};
pub use payouts::{PayoutArgs, PayoutsCommand, ReasonArgs};
pub use people::{PeopleArgs, SessionsCommand};
pub use serve::{LogFormat, ServeArgs};
pub use settlements::{SettlementList, SettlementsCommand};
use values::{address, one_of, time};

/// A payments server: hosted checkout, refunds, signed webhooks. Without a command it runs `serve`.
#[derive(Debug, Parser)]
#[command(name = "payments-server", version, args_conflicts_with_subcommands = true)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub serve: ServeArgs,
}

impl Cli {
    /// The command; `serve` by default.
    pub fn into_command(self) -> Command {
        self.command.unwrap_or(Command::Serve(self.serve))
    }
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the API and the checkout page.
    Serve(ServeArgs),
    #[command(flatten)]
    Admin(AdminCommand),
    /// Import gateways' statements into the books, and compare both.
    Settlements(Admin<SettlementsCommand>),
    /// Approve merchants' payouts, send them in batches, and record the bank's answers.
    Payouts(Admin<PayoutsCommand>),
    /// List who changed what.
    Audit(Admin<AuditCommand>),
    /// Export and erase what is held on a customer.
    Customers(Admin<CustomersCommand>),
    /// Print a server's events as they happen, read from its API. With --forward-to, also send each, signed, to your program.
    Listen(ListenArgs),
    /// Trigger an event with a test key, through a server's API.
    Trigger(TriggerArgs),
    /// Empty the sandbox of a test key's workspace, through a server's API. Asks first.
    Reset(ResetArgs),
    /// Ask the server on this machine whether it is ready. Exits with 1 if it is not, for health checks.
    Health(HealthArgs),
    /// Check every invariant of the whole store; print each violation on a line and exit with 1 if there is one.
    Check(StoreArgs),
    /// Write payments, refunds, ledger postings, settled rows or deliveries to the standard output. The server may keep running.
    Export(ExportArgs),
    /// Restore a store from a backup, a journal, or both. The data directory must be missing or empty.
    Restore(RestoreArgs),
    /// Move a whole store between a directory and a database. Stop its servers first. If the migration is interrupted, run the
    /// command again to continue it. Both stores are checked and compared record by record.
    Migrate(MigrateArgs),
    /// Check what `serve` needs with these flags: settings, permissions, descriptors, clock, disk, gateways. Prints what to do,
    /// changes nothing, and exits with 1 if the server cannot work. A token of bKash is requested only where servers find it.
    Doctor(ServeArgs),
    /// Print a script that completes commands and flags in a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
    /// Print the manual page of all commands, or write a page for each of them to a directory.
    Man {
        /// The directory, such as /usr/local/share/man/man1.
        directory: Option<PathBuf>,
    },
}

impl Command {
    /// The arguments of `serve`, if this is `serve` or checks what it needs.
    pub fn serve_args(&self) -> Option<&ServeArgs> {
        match self {
            Self::Serve(serve) | Self::Doctor(serve) => Some(serve),
            _ => None,
        }
    }

    /// The flags that say where the store is, if the command is about one store.
    pub fn data(&self) -> Option<&DataArgs> {
        match self {
            Self::Serve(serve) | Self::Doctor(serve) => Some(&serve.data),
            Self::Admin(command) => Some(&command.args().data),
            Self::Settlements(Admin { args, .. }) | Self::Payouts(Admin { args, .. }) => Some(&args.data),
            Self::Audit(Admin { args, .. }) => Some(&args.data),
            Self::Customers(Admin { args, .. }) => Some(&args.data),
            Self::Check(args) => Some(&args.data),
            Self::Export(args) => Some(&args.data),
            Self::Restore(args) => Some(&args.admin.data),
            _ => None,
        }
    }

    /// The directories in which the command creates files.
    pub fn directories(&self) -> Vec<&Path> {
        match (self, self.data()) {
            // Restore creates a directory in the parent directory. The new one replaces an empty one.
            (Self::Restore(args), _) => args.admin.data.data_dir.parent().into_iter().collect(),
            (Self::Migrate(args), _) => [&args.from, &args.to].into_iter().filter_map(Location::directory_in).collect(),
            (_, Some(data)) => {
                let of_store = data.database_url.is_none().then_some(&*data.data_dir);
                let of_sandbox = self.serve_args().and_then(|args| args.sandbox_dir.as_deref());
                of_store.into_iter().chain(of_sandbox).collect()
            }
            (_, None) => Vec::new(),
        }
    }
}

/// Commands that a running server executes. Without a server, this process opens the store and executes them.
#[derive(Debug, Subcommand)]
pub enum AdminCommand {
    /// Create and list workspaces, one per merchant.
    Workspaces(Admin<WorkspacesCommand>),
    /// Create, list, revoke and rotate API keys.
    Keys(Admin<KeysCommand>),
    /// Create and list developer apps.
    Apps(Admin<AppsCommand>),
    /// List refunds that wait for manual settlement, and record settlements.
    Refunds(Admin<RefundsCommand>),
    /// Record and list disputes at gateways that do not report them.
    Disputes(Admin<DisputesCommand>),
    /// Resend webhook deliveries.
    Deliveries(Admin<DeliveriesCommand>),
    /// List and resolve payments whose gateway state contradicts ours. The old name of the command is `reconcile`.
    #[command(alias = "reconcile")]
    Reviews(Admin<ReviewsCommand>),
    /// Record changes of the platform's own accounts: money paid in, bank charges, fees taken.
    Books(Admin<BooksCommand>),
    /// Create, list and revoke the keys with which a server is administered from elsewhere.
    PlatformKeys(Admin<PlatformKeysCommand>),
    /// List what somebody must look at: failing endpoints, refunds and evidence that are due, late backups and more.
    Notices(Admin<NoticesCommand>),
    /// List gateways, and pause one.
    Gateways(Admin<GatewaysCommand>),
    /// List and revoke people's sessions of the console.
    Sessions(Admin<SessionsCommand>),
    /// Print what merchants are owed, and what bank and gateways hold to cover it, now or when a day had ended. Exits with 1 if
    /// they do not cover it.
    Coverage(CoverageArgs),
    /// Copy the store, as of one moment, into a missing or empty directory. The server may keep running.
    Backup {
        /// The target directory.
        directory: PathBuf,
        #[command(flatten)]
        args: AdminArgs,
    },
}

impl AdminCommand {
    pub fn args(&self) -> &AdminArgs {
        match self {
            Self::Workspaces(Admin { args, .. })
            | Self::Keys(Admin { args, .. })
            | Self::Apps(Admin { args, .. })
            | Self::Refunds(Admin { args, .. })
            | Self::Disputes(Admin { args, .. })
            | Self::Deliveries(Admin { args, .. })
            | Self::Reviews(Admin { args, .. })
            | Self::Books(Admin { args, .. })
            | Self::Gateways(Admin { args, .. })
            | Self::PlatformKeys(Admin { args, .. })
            | Self::Notices(Admin { args, .. })
            | Self::Sessions(Admin { args, .. })
            | Self::Coverage(CoverageArgs { args, .. })
            | Self::Backup { args, .. } => args,
        }
    }
}

/// A group of commands with the arguments of each of them.
#[derive(Debug, Args)]
pub struct Admin<C: Subcommand> {
    #[command(subcommand)]
    pub command: C,
    #[command(flatten)]
    pub args: AdminArgs,
}

#[derive(Debug, Args)]
pub struct HealthArgs {
    /// Address that the server listens on, IP:PORT or a port.
    #[arg(long, env = "PAYMENTS_LISTEN", default_value = "127.0.0.1:8080", value_name = "ADDR", value_parser = address)]
    pub listen: SocketAddr,
}

#[derive(Debug, Args)]
pub struct RestoreArgs {
    /// The backup's directory. Without a backup, the journal must start with the store's first change.
    #[arg(required_unless_present = "journal")]
    pub backup: Option<PathBuf>,
    /// The journal directory of the lost store. It recovers every change acknowledged after the backup.
    #[arg(long, env = "PAYMENTS_JOURNAL", value_name = "DIR")]
    pub journal: Option<PathBuf>,
    /// Stop before the first change committed after this time, such as 2026-03-01 or 2026-03-01T12:00:00Z.
    #[arg(long, env = "PAYMENTS_UNTIL", value_name = "TIME", value_parser = time)]
    pub until: Option<Timestamp>,
    /// Stop after change number N, whatever its time.
    #[arg(long, env = "PAYMENTS_UNTIL_ENTRY", value_name = "N", conflicts_with = "until")]
    pub until_entry: Option<u64>,
    #[command(flatten)]
    pub admin: StoreArgs,
}

#[derive(Debug, Args)]
pub struct MigrateArgs {
    /// The store to move: a data directory, or postgres://USER@HOST/DATABASE. It stays as it is. A URL with a password
    /// belongs in the environment variable, because other users can read command lines.
    #[arg(long, env = "PAYMENTS_FROM", hide_env_values = true, value_name = "DIR|URL")]
    pub from: SecretString,
    /// Where to move it: a missing or empty directory, or a database without a store.
    #[arg(long, env = "PAYMENTS_TO", hide_env_values = true, value_name = "DIR|URL")]
    pub to: SecretString,
    /// File that holds the password of the database in --from.
    #[arg(long, env = "PAYMENTS_FROM_PASSWORD_FILE", value_name = "FILE")]
    pub from_password_file: Option<PathBuf>,
    /// File that holds the password of the database in --to.
    #[arg(long, env = "PAYMENTS_TO_PASSWORD_FILE", value_name = "FILE")]
    pub to_password_file: Option<PathBuf>,
    /// Print JSON.
    #[arg(long, env = "PAYMENTS_JSON")]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum RefundsCommand {
    /// List refunds that wait for manual settlement, the oldest first: payment, amount, currency, gateway transaction, phone,
    /// created, due, whether it is overdue, refund.
    List {
        /// Days within which a refund must be sent. Default: as the running server is set, else 3.
        #[arg(long = "manual-refund-days", env = "PAYMENTS_MANUAL_REFUND_DAYS", value_name = "DAYS",
            value_parser = clap::value_parser!(u16).range(1..=365))]
        due_days: Option<u16>,
    },
    /// Record that you sent a refund to the customer.
    Settle {
        /// The refund's id, or the payment's id if only one of its refunds waits for settlement.
        refund: String,
        /// The transfer's reference at the wallet or bank that sent it.
        #[arg(long, env = "PAYMENTS_REFERENCE", value_name = "R")]
        reference: String,
    },
}

#[derive(Debug, Subcommand)]
pub enum DeliveriesCommand {
    /// Resend a delivery's event to its endpoint. Prints the id of the new delivery.
    Resend {
        /// The delivery's id.
        delivery: String,
    },
    /// Resend an endpoint's failed deliveries, except those already resent. Prints how many.
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

#[derive(Debug, Subcommand)]
pub enum ReviewsCommand {
    /// List payments in manual review: payment, raw status, amount, currency, found, discrepancy.
    List,
    /// Resolve a payment after you checked it at the gateway.
    Resolve {
        /// The payment's id.
        payment: String,
        /// The reason; stored with the payment.
        #[arg(long, env = "PAYMENTS_NOTE", value_name = "N")]
        note: String,
        /// How the payment ended: paid if the money arrived, else failed. Required while the payment is open. If a refund is
        /// pending, or the review is about one, how that ended: refunded if the gateway made it, else not-refunded.
        #[arg(long = "as", env = "PAYMENTS_RESOLVE_AS", value_name = "ENDING",
            value_parser = one_of::<ManualOutcome>(["paid", "failed", "refunded", "not-refunded"]))]
        outcome: Option<ManualOutcome>,
        /// The gateway's id of the transaction that paid it, by which it can be refunded. Without it the server asks the gateway.
        #[arg(long, env = "PAYMENTS_TRANSACTION", value_name = "T")]
        transaction: Option<String>,
    },
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn clap_accepts_the_definition_of_the_command_line() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_commands_old_name_also_lists_reviews() {
        for name in ["reviews", "reconcile"] {
            let command = Cli::try_parse_from(["payments-server", name, "list"]).unwrap().into_command();
            assert!(matches!(command, Command::Admin(AdminCommand::Reviews(_))), "{name}");
        }
    }

    #[test]
    fn no_command_means_serve() {
        let cli = Cli::try_parse_from(["payments-server", "--listen", "127.0.0.1:0"]).unwrap();
        assert_eq!(cli.into_command().serve_args().unwrap().listen.port(), 0);
    }
}
