//! The arguments of the commands for developers who program against a server.

use clap::Args;
use payments_core::EventKind;
use secrecy::SecretString;
use url::Url;

use super::values::{local_url, one_of};

/// A server and the key with which it is asked.
#[derive(Debug, Args)]
pub struct ApiArgs {
    /// The server's address.
    #[arg(long, env = "PAYMENTS_API_URL", default_value = "http://127.0.0.1:8080", value_name = "URL", value_parser = local_url)]
    pub api: Url,
    /// File that holds the API key. Without it, PAYMENTS_API_KEY has the key, or else it is the sandbox key of a server on
    /// this machine.
    #[arg(long, env = "PAYMENTS_API_KEY_FILE", value_name = "FILE")]
    pub key_file: Option<std::path::PathBuf>,
}

#[derive(Debug, Args)]
pub struct ListenArgs {
    /// Where to forward each event, such as localhost:3000/hook. Without it, events are only printed.
    #[arg(long, env = "PAYMENTS_FORWARD_TO", value_name = "URL", value_parser = local_url)]
    pub forward_to: Option<Url>,
    /// Only these kinds of events, separated by commas; all by default.
    #[arg(long, env = "PAYMENTS_EVENTS", value_delimiter = ',', value_parser = one_of::<EventKind>(kinds()), value_name = "KIND")]
    pub events: Vec<EventKind>,
    /// File that holds the secret with which forwarded events are signed. Without it, PAYMENTS_WEBHOOK_SECRET has the secret, or
    /// else a new one is made and printed.
    #[arg(long, env = "PAYMENTS_WEBHOOK_SECRET_FILE", value_name = "FILE")]
    pub secret_file: Option<std::path::PathBuf>,
    #[command(flatten)]
    pub api: ApiArgs,
}

#[derive(Debug, Args)]
pub struct TriggerArgs {
    /// The event to trigger. `payment.created` and `payment.completed` make a test payment. The others are sent to every endpoint
    /// of the key as test events.
    #[arg(value_parser = one_of::<EventKind>(kinds()))]
    pub event: EventKind,
    /// The payment's amount in BDT.
    #[arg(long, env = "PAYMENTS_AMOUNT", default_value = "750")]
    pub amount: payments_core::Amount,
    /// The payment's metadata, a JSON object.
    #[arg(long, env = "PAYMENTS_METADATA", value_name = "JSON")]
    pub metadata: Option<String>,
    #[command(flatten)]
    pub api: ApiArgs,
}

#[derive(Debug, Args)]
pub struct ResetArgs {
    /// Do not ask.
    #[arg(long, env = "PAYMENTS_YES")]
    pub yes: bool,
    #[command(flatten)]
    pub api: ApiArgs,
}

/// The kinds of events.
fn kinds() -> impl Iterator<Item = &'static str> {
    EventKind::KNOWN.iter().map(EventKind::as_str)
}

/// Reads a secret from a file, or from an environment variable. Returns `None` if there is neither.
pub fn secret_from(
    file: Option<&std::path::Path>,
    variable: &str,
) -> Result<Option<SecretString>, crate::cli::CommandError> {
    let Some(file) = file else {
        return Ok(std::env::var(variable).ok().filter(|value| !value.is_empty()).map(Into::into));
    };
    let text = std::fs::read_to_string(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    Ok(Some(text.trim().into()))
}
