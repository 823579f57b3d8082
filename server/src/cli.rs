//! The command line.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, Parser, Subcommand, ValueEnum};
use payments_core::{Environment, Timestamp};
use secrecy::SecretString;

use crate::service::Ending;

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
    /// The arguments of `serve`, if that was asked for.
    pub(crate) fn serve_args(&self) -> Option<&ServeArgs> {
        match &self.command {
            None => Some(&self.serve),
            Some(Command::Serve(serve)) => Some(serve),
            Some(_) => None,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Serve the API and the checkout page.
    Serve(ServeArgs),
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
    /// Payments whose gateway says what does not fit, and that a person must decide.
    #[command(subcommand)]
    Reconcile(ReconcileCommand),
    /// Read the whole store and prove every invariant; exit 1 and one finding a line otherwise.
    Check(AdminArgs),
    /// Write the books to the standard output, for a bookkeeper. The server may go on running.
    Export(ExportArgs),
    /// Copy the store, as it is at one moment, into a directory that is missing or empty. The server may go on running.
    Backup {
        /// Where to.
        directory: PathBuf,
        #[command(flatten)]
        admin: AdminArgs,
    },
    /// Make a store of a backup, of a journal, or of both. The data directory must be missing or empty.
    Restore(RestoreArgs),
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
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Address to listen on; port 0 picks a free one.
    #[arg(long, env = "PAYMENTS_LISTEN", default_value = "127.0.0.1:8080", value_name = "ADDR")]
    pub(crate) listen: SocketAddr,
    /// Where customers reach this server; the listening address unless given.
    #[arg(long, env = "PAYMENTS_BASE_URL", value_name = "URL")]
    pub(crate) base_url: Option<String>,
    /// Open the sandbox, its public key and demo sessions, to whoever reaches this server. It is open anyway where both
    /// the listening address and the base URL are this machine's own.
    #[arg(long, env = "PAYMENTS_SANDBOX")]
    pub(crate) sandbox: bool,
    /// How large the sandbox of a server that others reach may become, in MiB, before it begins anew, empty. It does so once
    /// a day anyway.
    #[arg(long, env = "PAYMENTS_SANDBOX_MIB", default_value_t = 512, value_name = "MIB",
        value_parser = clap::value_parser!(u32).range(64..))]
    pub(crate) sandbox_mib: u32,
    /// The word in the webhooks' header names, X-WORD-Signature.
    #[arg(long, env = "PAYMENTS_HEADER_WORD", default_value = "Service", value_name = "WORD", value_parser = header_word)]
    pub(crate) header_word: String,
    /// How long a checkout session lives, in seconds.
    #[arg(long, env = "PAYMENTS_SESSION_TTL", default_value_t = 3600, value_name = "SECONDS",
        value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) session_ttl: u32,
    /// After how many days a delivery that has ended is redacted: what was sent and what was answered; 0 keeps them.
    #[arg(long, env = "PAYMENTS_DELIVERY_BODY_DAYS", value_name = "DAYS", default_value_t = 30)]
    pub(crate) delivery_body_days: u16,
    /// The platform's fee in basis points: 500 are 5 %.
    #[arg(long, env = "PAYMENTS_FEE_BPS", default_value_t = 500, value_name = "N",
        value_parser = clap::value_parser!(u16).range(0..=10_000))]
    pub(crate) fee_bps: u16,
    /// Requests a minute for each API key; 0 is no limit.
    #[arg(long, env = "PAYMENTS_RATE_LIMIT", default_value_t = 120, value_name = "N")]
    pub(crate) rate_limit: u32,
    /// Requests a minute for each address, on routes without a key; 0 is no limit.
    #[arg(long, env = "PAYMENTS_KEYLESS_RATE_LIMIT", default_value_t = 300, value_name = "N")]
    pub(crate) keyless_rate_limit: u32,
    /// A network of proxies whose X-Forwarded-For is believed, such as 10.0.0.0/8; may be given several times.
    #[arg(long = "trusted-proxy", env = "PAYMENTS_TRUSTED_PROXIES", value_delimiter = ',', value_name = "NETWORK")]
    pub(crate) trusted_proxies: Vec<ipnet::IpNet>,
    /// Allow webhooks to http:// and to this machine. A server whose base URL and listener are both loopback does anyway.
    #[arg(long, env = "PAYMENTS_ALLOW_LOCAL_TARGETS")]
    pub(crate) allow_local_targets: bool,
    /// How many webhook endpoints a developer may have in each environment; a new one beyond that is refused with 409.
    #[arg(long, env = "PAYMENTS_MAX_WEBHOOK_ENDPOINTS", default_value_t = 100, value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) max_webhook_endpoints: u16,
    /// How long one call to a payment gateway may take, in seconds.
    #[arg(long, env = "PAYMENTS_GATEWAY_TIMEOUT", default_value_t = 30, value_name = "SECONDS",
        value_parser = clap::value_parser!(u8).range(1..=120))]
    pub(crate) gateway_timeout: u8,
    /// An HTTP proxy to the payment gateways, such as `http://proxy.internal:3128`; without it they are called directly,
    /// whatever HTTPS_PROXY and its like say. Webhooks never go through a proxy.
    #[arg(long, env = "PAYMENTS_GATEWAY_PROXY", hide_env_values = true, value_name = "URL")]
    pub(crate) gateway_proxy: Option<SecretString>,
    /// Where backups go. From the last one on the journal is kept too, so that `restore` loses nothing acknowledged.
    #[arg(long, env = "PAYMENTS_BACKUP_DIR", value_name = "DIR")]
    pub(crate) backup_dir: Option<PathBuf>,
    /// How often a backup is made, in seconds.
    #[arg(long, env = "PAYMENTS_BACKUP_EVERY", default_value_t = 3600, value_name = "SECONDS",
        value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) backup_every: u32,
    /// How many backups are kept.
    #[arg(long, env = "PAYMENTS_BACKUP_KEEP", default_value_t = 3, value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) backup_keep: u16,
    /// Connections open at once; the next one waits. 4096 unless given, or fewer where the limit of open files is low.
    #[arg(long, env = "PAYMENTS_MAX_CONNECTIONS", value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) max_connections: Option<u32>,
    /// Connections open at once from one address (of IPv6, from one /64); the next one is closed, and 0 is no limit. 256
    /// unless given, or a quarter of all where that is less. Trusted proxies are not counted.
    #[arg(long, env = "PAYMENTS_MAX_CONNECTIONS_PER_ADDRESS", value_name = "N")]
    pub(crate) max_connections_per_address: Option<u32>,
    /// How long requests under way may take to end when the server is told to stop, in seconds.
    #[arg(long, env = "PAYMENTS_DRAIN", default_value_t = 10, value_name = "SECONDS")]
    pub(crate) drain: u16,
    /// An address of its own for /metrics. Without one /metrics is on --listen where base URL and listener are both local,
    /// and nowhere else.
    #[arg(long, env = "PAYMENTS_METRICS_LISTEN", value_name = "ADDR")]
    pub(crate) metrics_listen: Option<SocketAddr>,
    /// A network that may read /metrics; may be given several times. Requests that came through a proxy may not.
    #[arg(long = "metrics-from", env = "PAYMENTS_METRICS_FROM", value_delimiter = ',', value_name = "NETWORK",
        default_values = ["127.0.0.0/8", "::1/128"])]
    pub(crate) metrics_from: Vec<ipnet::IpNet>,
    /// How the log is written.
    #[arg(long, env = "PAYMENTS_LOG_FORMAT", value_name = "FORMAT", default_value = "text")]
    pub(crate) log_format: LogFormat,
    /// A TOML file of these flags, and of the gateways' credentials in its sections bkash and stripe.
    #[arg(long, env = "PAYMENTS_CONFIG", value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
}

/// How the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum LogFormat {
    /// Lines for people.
    #[default]
    Text,
    /// A JSON object a line.
    Json,
}

#[derive(Debug, Args)]
pub(crate) struct DataArgs {
    /// Directory of the store.
    #[arg(long, env = "PAYMENTS_DATA_DIR", default_value = "./payments-data", value_name = "DIR")]
    pub(crate) data_dir: PathBuf,
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
        ending: Option<Ending>,
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

impl From<World> for Environment {
    fn from(world: World) -> Self {
        match world {
            World::Live => Self::Live,
            World::Test => Self::Test,
        }
    }
}

/// One word that can stand in a header's name.
fn header_word(text: &str) -> Result<String, String> {
    let fits = (1..=32).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if fits { Ok(text.to_owned()) } else { Err("must be 1 to 32 ASCII letters, digits and hyphens".into()) }
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
        assert!(cli.command.is_none());
        assert_eq!(cli.serve.listen.port(), 0);
    }
}
