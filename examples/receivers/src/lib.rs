//! Code that the receivers share: settings, and handling each event once.
//!
//! `WEBHOOK_SECRET` is the endpoint's secret, or several separated by commas during a rotation.
//! `RECEIVER_LISTEN` is the address to listen on. Default: 127.0.0.1:9000.
#![forbid(unsafe_code)]

use std::{env, error::Error, net::SocketAddr, process::ExitCode, sync::LazyLock};

use bytes::Bytes;
use http::StatusCode;
use payments_core::Event;
use webhook_verify::{
    Verified, Verifier,
    adapters::Receiver,
    replay::{Claim, MemoryClaims, ReplayError, ReplayGuard},
};

/// The claims of recent events. In memory to keep the example simple; a shop should store claims with its orders.
static EVENTS: LazyLock<ReplayGuard<MemoryClaims>> = LazyLock::new(|| ReplayGuard::new(MemoryClaims::new(100_000)));

/// Creates a receiver with the secrets in `WEBHOOK_SECRET`.
///
/// # Errors
/// If the variable is not set or a secret is invalid.
pub fn receiver() -> Result<Receiver, Box<dyn Error>> {
    let secrets = env::var("WEBHOOK_SECRET")
        .map_err(|error| format!("WEBHOOK_SECRET must be the secret of your webhook endpoint: {error}"))?;
    Ok(Receiver::new(Verifier::from_secrets(secrets.split(','))?))
}

/// The address to listen on.
///
/// # Errors
/// If the address is invalid.
pub fn address() -> Result<SocketAddr, Box<dyn Error>> {
    let address = env::var("RECEIVER_LISTEN").unwrap_or_else(|_| "127.0.0.1:9000".into());
    let parsed: Result<SocketAddr, _> = address.parse();
    Ok(parsed.map_err(|_| format!("RECEIVER_LISTEN must be an address such as 127.0.0.1:9000, not {address:?}"))?)
}

/// Prints an error as one line, and returns the program's exit code.
#[must_use]
pub fn exit_code(outcome: Result<(), Box<dyn Error>>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the receiver ended: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints the receiver's URL.
pub fn greet(address: SocketAddr) {
    println!("listening on http://{address}/webhooks");
}

/// Handles an event once and returns the status to respond with. A shop should queue the event here and respond
/// immediately.
pub async fn handle(verified: Verified<Bytes>) -> StatusCode {
    let claimed = match EVENTS.claim(&verified, Event::id_in).await {
        Ok(Claim::New(claimed)) => claimed,
        Ok(Claim::Done) => return StatusCode::OK,
        Ok(Claim::InProgress) => return StatusCode::CONFLICT,
        Err(ReplayError::NoId) => return StatusCode::BAD_REQUEST,
        Err(_) => return StatusCode::SERVICE_UNAVAILABLE,
    };
    let bytes = verified.body().len();
    let Ok(event) = Event::from_verified(verified) else { return StatusCode::BAD_REQUEST };
    println!("{} {} in {bytes} bytes", event.id(), event.kind());
    match claimed.commit().await {
        Ok(()) => StatusCode::OK,
        Err(_) => StatusCode::SERVICE_UNAVAILABLE,
    }
}
