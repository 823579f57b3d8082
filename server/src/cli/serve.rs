//! The arguments of `serve`.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Args, ValueEnum};
use secrecy::SecretString;

use super::data::DataArgs;

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

/// One word that can stand in a header's name.
fn header_word(text: &str) -> Result<String, String> {
    let fits = (1..=32).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if fits { Ok(text.to_owned()) } else { Err("must be 1 to 32 ASCII letters, digits and hyphens".into()) }
}
