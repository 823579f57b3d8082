//! The arguments of `serve`.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, ValueEnum};
use secrecy::SecretString;

use super::{
    DataArgs, NoticeArgs, PayoutArgs, PeopleArgs, RetentionArgs,
    values::{address, base_url, host},
};
use crate::cli::CommandError;

#[derive(Debug, Args)]
pub struct ServeArgs {
    #[command(flatten)]
    pub data: DataArgs,
    /// Address to listen on, IP:PORT; port 0 picks a free one. A port alone means 127.0.0.1.
    #[arg(long, env = "PAYMENTS_LISTEN", default_value = "127.0.0.1:8080", value_name = "ADDR", value_parser = address)]
    pub listen: SocketAddr,
    /// URL at which customers reach this server. Default: the listening address.
    #[arg(long, env = "PAYMENTS_BASE_URL", value_name = "URL", value_parser = base_url)]
    pub base_url: Option<String>,
    /// Another host, such as till.lan, that requests to a server on loopback may name; repeatable. They may always name
    /// loopback and the base URL's host. Any other host gets 421, which stops DNS rebinding.
    #[arg(long = "allowed-host", env = "PAYMENTS_ALLOWED_HOSTS", value_delimiter = ',', value_name = "HOST",
        value_parser = host)]
    pub allowed_hosts: Vec<String>,
    /// Open the sandbox, with its public key and demo sessions, to everyone who reaches this server. Always open if
    /// base URL and listener are both loopback.
    #[arg(long, env = "PAYMENTS_SANDBOX")]
    pub sandbox: bool,
    /// Size, in MiB, at which a public server replaces its sandbox with an empty one. It also does so once a day.
    #[arg(long, env = "PAYMENTS_SANDBOX_MIB", default_value_t = 512, value_name = "MIB",
        value_parser = clap::value_parser!(u32).range(64..))]
    pub sandbox_mib: u32,
    /// Directory for the sandbox of a public server. Use it for nothing else: once a day, and above --sandbox-mib, the server
    /// deletes the store in it and begins an empty one. Default: sandbox in the data directory. A server on a database has no
    /// default.
    #[arg(long, env = "PAYMENTS_SANDBOX_DIR", value_name = "DIR")]
    pub sandbox_dir: Option<PathBuf>,
    /// Word in the webhooks' header names: X-WORD-Signature.
    #[arg(long, env = "PAYMENTS_HEADER_WORD", default_value = "Service", value_name = "WORD", value_parser = header_word)]
    pub header_word: String,
    /// Lifetime of a checkout session, in seconds.
    #[arg(long, env = "PAYMENTS_SESSION_TTL", default_value_t = 3600, value_name = "SECONDS",
        value_parser = clap::value_parser!(u32).range(1..))]
    pub session_ttl: u32,
    /// Days after which the server redacts the request and response bodies of a finished delivery; 0 keeps them.
    #[arg(long, env = "PAYMENTS_DELIVERY_BODY_DAYS", value_name = "DAYS", default_value_t = 30)]
    pub delivery_body_days: u16,
    #[command(flatten)]
    pub retention: RetentionArgs,
    /// Platform fee in basis points; 500 is 5 %.
    #[arg(long, env = "PAYMENTS_FEE_BPS", default_value_t = 500, value_name = "N",
        value_parser = clap::value_parser!(u16).range(0..=10_000))]
    pub fee_bps: u16,
    /// Requests per minute per API key; 0 turns the limit off.
    #[arg(long, env = "PAYMENTS_RATE_LIMIT", default_value_t = 120, value_name = "N")]
    pub rate_limit: u32,
    /// Requests per minute per client address, on routes without a key or with a key that fails; 0 turns the limit off.
    #[arg(long, env = "PAYMENTS_KEYLESS_RATE_LIMIT", default_value_t = 300, value_name = "N")]
    pub keyless_rate_limit: u32,
    /// Network of proxies whose X-Forwarded-For the server trusts, such as 10.0.0.0/8; repeatable.
    #[arg(long = "trusted-proxy", env = "PAYMENTS_TRUSTED_PROXIES", value_delimiter = ',', value_name = "NETWORK")]
    pub trusted_proxies: Vec<ipnet::IpNet>,
    /// Allow webhooks to http:// and to this machine. Always allowed if base URL and listener are both loopback.
    #[arg(long, env = "PAYMENTS_ALLOW_LOCAL_TARGETS")]
    pub allow_local_targets: bool,
    /// Maximum number of webhook endpoints per developer and environment; beyond it, creating one fails with 409.
    #[arg(long, env = "PAYMENTS_MAX_WEBHOOK_ENDPOINTS", default_value_t = 100, value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..))]
    pub max_webhook_endpoints: u16,
    /// Timeout of one call to a payment gateway, in seconds.
    #[arg(long, env = "PAYMENTS_GATEWAY_TIMEOUT", default_value_t = 30, value_name = "SECONDS",
        value_parser = clap::value_parser!(u8).range(1..=120))]
    pub gateway_timeout: u8,
    /// Take what gateways keep from the merchants' balances. By default the platform bears it, and merchants do not see it.
    #[arg(long, env = "PAYMENTS_MERCHANTS_BEAR_GATEWAY_COSTS")]
    pub merchants_bear_gateway_costs: bool,
    /// Return the fee on what the gateway withdraws for a dispute to the merchant. By default the platform keeps it.
    #[arg(long, env = "PAYMENTS_DISPUTES_RETURN_FEE")]
    pub disputes_return_fee: bool,
    #[command(flatten)]
    pub payouts: PayoutArgs,
    #[command(flatten)]
    pub notices: NoticeArgs,
    #[command(flatten)]
    pub people: PeopleArgs,
    /// HTTP proxy for calls to payment gateways, such as `http://proxy.internal:3128`. The server ignores HTTPS_PROXY
    /// and similar variables. Webhooks never go through a proxy. A URL with a password belongs in the variable or the file.
    #[arg(long, env = "PAYMENTS_GATEWAY_PROXY", hide_env_values = true, value_name = "URL")]
    pub gateway_proxy: Option<SecretString>,
    /// Directory for scheduled backups. The journal since the oldest one is kept too, so `restore` loses no change.
    #[arg(long, env = "PAYMENTS_BACKUP_DIR", value_name = "DIR")]
    pub backup_dir: Option<PathBuf>,
    /// Interval between backups, in seconds.
    #[arg(long, env = "PAYMENTS_BACKUP_EVERY", default_value_t = 3600, value_name = "SECONDS",
        value_parser = clap::value_parser!(u32).range(1..))]
    pub backup_every: u32,
    /// Number of backups to keep.
    #[arg(long, env = "PAYMENTS_BACKUP_KEEP", default_value_t = 3, value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..))]
    pub backup_keep: u16,
    /// Maximum number of open connections; the next waits. Default: 4096, or fewer if the limit of open files is low.
    #[arg(long, env = "PAYMENTS_MAX_CONNECTIONS", value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..))]
    pub max_connections: Option<u32>,
    /// Maximum number of open connections per client address (per /64 of IPv6); the next one is closed; 0 turns the
    /// limit off. Default: 256, or a quarter of --max-connections if that is less. Trusted proxies are not limited.
    #[arg(long, env = "PAYMENTS_MAX_CONNECTIONS_PER_ADDRESS", value_name = "N")]
    pub max_connections_per_address: Option<u32>,
    /// Time that requests in flight get to finish on shutdown, in seconds.
    #[arg(long, env = "PAYMENTS_DRAIN", default_value_t = 10, value_name = "SECONDS")]
    pub drain: u16,
    /// Separate address for /metrics. Without it, /metrics is on --listen if base URL and listener are both loopback,
    /// and off otherwise.
    #[arg(long, env = "PAYMENTS_METRICS_LISTEN", value_name = "ADDR", value_parser = address)]
    pub metrics_listen: Option<SocketAddr>,
    /// For how many days entries of the audit log are kept; 0 for good.
    #[arg(long, env = "PAYMENTS_AUDIT_DAYS", value_name = "DAYS", default_value_t = 0)]
    pub audit_days: u16,
    /// Address for the administration API, `/admin/v1`, which takes platform keys. Without it, only the command line on this
    /// machine administers the server. Put a proxy with TLS in front of it.
    #[arg(long, env = "PAYMENTS_ADMIN_LISTEN", value_name = "ADDR", value_parser = address)]
    pub admin_listen: Option<SocketAddr>,
    /// Network that may read /metrics; repeatable. Requests through a proxy may not.
    #[arg(long = "metrics-from", env = "PAYMENTS_METRICS_FROM", value_delimiter = ',', value_name = "NETWORK",
        default_values = ["127.0.0.0/8", "::1/128"])]
    pub metrics_from: Vec<ipnet::IpNet>,
    /// Format of the log.
    #[arg(long, env = "PAYMENTS_LOG_FORMAT", value_name = "FORMAT", default_value = "text")]
    pub log_format: LogFormat,
}

impl ServeArgs {
    /// The directory for the sandbox of a public server.
    pub fn sandbox_directory(&self) -> Result<PathBuf, CommandError> {
        match (&self.sandbox_dir, &self.data.database_url) {
            (Some(directory), _) => Ok(directory.clone()),
            (None, None) => Ok(self.data.data_dir.join("sandbox")),
            (None, Some(_)) => {
                Err("the sandbox of a public server keeps its records out of the database; name a directory for \
                                    them with --sandbox-dir"
                    .into())
            }
        }
    }
}

/// Format of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum LogFormat {
    /// Human-readable lines.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Parses a word that fits into a header name.
fn header_word(text: &str) -> Result<String, String> {
    let fits = (1..=32).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if fits { Ok(text.to_owned()) } else { Err("must be 1 to 32 ASCII letters, digits and hyphens".into()) }
}
