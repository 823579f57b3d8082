//! The command line.

mod data;
mod serve;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use payments_core::{Environment, Timestamp};

pub(crate) use data::DataArgs;
pub(crate) use serve::{LogFormat, ServeArgs};

/// A payments server: hosted checkout, refunds, signed webhooks. Without a command it serves.
#[derive(Debug, Parser)]
#[command(name = "payments-server", version, args_conflicts_with_subcommands = true)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
    #[command(flatten)]
    pub(crate) serve: ServeArgs,
}

impl Cli {
    /// What is to be done.
    pub(crate) fn into_command(self) -> Command {
        self.command.unwrap_or(Command::Serve(self.serve))
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the API and the checkout page.
    Serve(ServeArgs),
    #[command(flatten)]
    Admin(AdminCommand),
    /// Read the whole store and prove every invariant; exit 1 and one finding a line otherwise.
    Check(AdminArgs),
    /// Write the books to the standard output, for a bookkeeper. The server may go on running.
    Export(ExportArgs),
    /// Make a store of a backup, of a journal, or of both. The data directory must be missing or empty.
    Restore(RestoreArgs),
}

impl Command {
    /// The arguments of `serve`, if it is that.
    pub(crate) fn serve_args(&self) -> Option<&ServeArgs> {
        match self {
            Self::Serve(serve) => Some(serve),
            _ => None,
        }
    }
}

/// What a running server does for the command line, or the command line itself where no server runs.
#[derive(Debug, Subcommand)]
pub(crate) enum AdminCommand {
    /// Make workspaces, one for each merchant.
    #[command(subcommand)]
    Workspaces(WorkspacesCommand),
    /// Make, list, revoke and rotate API keys.
    #[command(subcommand)]
    Keys(KeysCommand),
    /// Make developer apps.
    #[command(subcommand)]
    Apps(AppsCommand),
    /// Refunds that are sent to the customer by hand.
    #[command(subcommand)]
    Refunds(RefundsCommand),
    /// Payments whose gateway state contradicts ours and needs a manual decision.
    #[command(subcommand)]
    Reconcile(ReconcileCommand),
    /// Copy the store, as it is at one moment, into a directory that is missing or empty. The server may go on running.
    Backup {
        /// Where to.
        directory: PathBuf,
        #[command(flatten)]
        admin: AdminArgs,
    },
}

#[derive(Debug, Args)]
pub(crate) struct RestoreArgs {
    /// The backup's directory. Without one the journal must begin with the first change there ever was.
    #[arg(required_unless_present = "journal")]
    pub(crate) backup: Option<PathBuf>,
    /// The journal directory of the store that was lost. With it everything acknowledged since the backup comes back.
    #[arg(long, env = "PAYMENTS_JOURNAL", value_name = "DIR")]
    pub(crate) journal: Option<PathBuf>,
    /// Only the changes before the first that was committed after this time, as 2026-03-01T12:00:00Z.
    #[arg(long, env = "PAYMENTS_UNTIL", value_name = "TIME")]
    pub(crate) until: Option<Timestamp>,
    /// Only the changes up to the one of this number, whatever the clock said.
    #[arg(long, env = "PAYMENTS_UNTIL_ENTRY", value_name = "N", conflicts_with = "until")]
    pub(crate) until_entry: Option<u64>,
    #[command(flatten)]
    pub(crate) admin: AdminArgs,
}

#[derive(Debug, Args)]
pub(crate) struct AdminArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Print JSON.
    #[arg(long, env = "PAYMENTS_JSON")]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// Which book.
    pub(crate) ledger: Ledger,
    /// JSON lines hold each record as the API shows it, CSV a row of its plain fields.
    #[arg(long, env = "PAYMENTS_FORMAT", default_value = "jsonl")]
    pub(crate) format: ExportFormat,
    /// Only what happened at this time or later, such as 2026-03-01T00:00:00Z.
    #[arg(long, env = "PAYMENTS_SINCE", value_name = "TIME")]
    pub(crate) since: Option<Timestamp>,
    /// Only what happened before this time.
    #[arg(long, env = "PAYMENTS_UNTIL", value_name = "TIME")]
    pub(crate) until: Option<Timestamp>,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

/// What can be exported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Ledger {
    /// By when they were created.
    Payments,
    /// By when they were asked for.
    Refunds,
    /// The double-entry ledger, by when the money moved.
    Postings,
    /// Webhook deliveries, by when they were put into the outbox.
    Deliveries,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    Jsonl,
    Csv,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WorkspacesCommand {
    /// Make a workspace and print its id.
    Create {
        /// What customers read on the checkout page.
        #[arg(long, env = "PAYMENTS_NAME")]
        name: String,
        #[command(flatten)]
        admin: AdminArgs,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeysCommand {
    /// Make an API key and print it. It is shown this once and cannot be shown again.
    Create {
        /// The workspace's id.
        #[arg(long, env = "PAYMENTS_WORKSPACE", value_name = "W")]
        workspace: String,
        /// live moves real money, test moves none.
        #[arg(long, env = "PAYMENTS_ENVIRONMENT")]
        environment: World,
        /// The id of a developer app of the workspace; payments made with the key then carry it as appId.
        #[arg(long, env = "PAYMENTS_APP", value_name = "APP")]
        app: Option<String>,
        #[command(flatten)]
        admin: AdminArgs,
    },
    /// List the keys of all workspaces: id, workspace, environment, last 4 characters, made, revoked, app.
    List {
        #[command(flatten)]
        admin: AdminArgs,
    },
    /// Revoke a key. From then on it is answered with 401.
    Revoke {
        /// The key's id, as the list shows it.
        id: String,
        #[command(flatten)]
        admin: AdminArgs,
    },
    /// Make a new key in place of one, revoke that, and print the new one, this once.
    Rotate {
        /// The old key's id, as the list shows it.
        id: String,
        #[command(flatten)]
        admin: AdminArgs,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum AppsCommand {
    /// Make a developer app and print its id.
    Create {
        /// The workspace's id.
        #[arg(long, env = "PAYMENTS_WORKSPACE", value_name = "W")]
        workspace: String,
        /// The app's name.
        #[arg(long, env = "PAYMENTS_NAME")]
        name: String,
        /// Where customers may be sent back to; may be given several times.
        #[arg(long = "redirect-uri", env = "PAYMENTS_REDIRECT_URI", value_delimiter = ',', value_name = "U")]
        redirect_uris: Vec<String>,
        /// Where the app gets its webhooks.
        #[arg(long, env = "PAYMENTS_WEBHOOK_URL", value_name = "U")]
        webhook_url: Option<String>,
        #[command(flatten)]
        admin: AdminArgs,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum RefundsCommand {
    /// List the refunds that wait to be sent: payment, amount, currency, gateway transaction, phone, refunded.
    List {
        #[command(flatten)]
        admin: AdminArgs,
    },
    /// Record that a refund was sent to its customer.
    Settle {
        /// The payment's id.
        payment: String,
        /// What the movement of money is called where it was made.
        #[arg(long, env = "PAYMENTS_REFERENCE", value_name = "R")]
        reference: String,
        #[command(flatten)]
        admin: AdminArgs,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum ReconcileCommand {
    /// List what must be decided: payment, state, amount, currency, found, and what the gateway says.
    List {
        #[command(flatten)]
        admin: AdminArgs,
    },
    /// Record what was decided about a payment, after looking at the gateway's own books.
    Resolve {
        /// The payment's id.
        payment: String,
        /// Why; kept with the payment.
        #[arg(long, env = "PAYMENTS_NOTE", value_name = "N")]
        note: String,
        /// How the payment ended. Needed while it is still open.
        #[arg(long = "as", env = "PAYMENTS_RESOLVE_AS", value_name = "ENDING")]
        ending: Option<ResolveAs>,
        #[command(flatten)]
        admin: AdminArgs,
    },
}

/// An environment, as it is typed.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum World {
    Live,
    Test,
}

/// How a person says that a payment ended.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum ResolveAs {
    /// Its money was received.
    Paid,
    /// It came to nothing.
    Failed,
}

impl From<World> for Environment {
    fn from(world: World) -> Self {
        match world {
            World::Live => Self::Live,
            World::Test => Self::Test,
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn no_command_means_serve() {
        let cli = Cli::try_parse_from(["payments-server", "--listen", "127.0.0.1:0"]).unwrap();
        assert_eq!(cli.into_command().serve_args().unwrap().listen.port(), 0);
    }
}
