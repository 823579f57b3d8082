//! What the receivers on all frameworks share: where their settings come from, and how they handle each event once.
//!
//! `WEBHOOK_SECRET` is the endpoint's secret; several, parted by commas, while one replaces the other.
//! `RECEIVER_LISTEN` is where to listen, 127.0.0.1:9000 unless it is set.
#![forbid(unsafe_code)]

use std::{env, error::Error, net::SocketAddr, sync::LazyLock};

use bytes::Bytes;
use http::StatusCode;
use payments_core::Event;
use webhook_verify::{
    Verified, Verifier,
    adapters::Receiver,
    replay::{Claim, MemoryClaims, ReplayError, ReplayGuard},
};

/// What was handled lately. In memory, so that this example stands alone; a shop claims events where its orders are.
static EVENTS: LazyLock<ReplayGuard<MemoryClaims>> = LazyLock::new(|| ReplayGuard::new(MemoryClaims::new(100_000)));

/// A receiver by the environment. Without a secret there is none: an unset variable must not mean "anyone may call".
///
/// # Errors
/// A secret that is missing or cannot be one.
pub fn receiver() -> Result<Receiver, Box<dyn Error>> {
    let secrets = env::var("WEBHOOK_SECRET")?;
    Ok(Receiver::new(Verifier::from_secrets(secrets.split(','))?))
}

/// Where to listen.
///
/// # Errors
/// A text that is no address.
pub fn address() -> Result<SocketAddr, Box<dyn Error>> {
    Ok(env::var("RECEIVER_LISTEN").unwrap_or_else(|_| "127.0.0.1:9000".into()).parse()?)
}

/// Tells where the receiver listens.
pub fn greet(address: SocketAddr) {
    println!("listening on http://{address}/webhooks");
}

/// Handles an event, unless it was handled before, and tells what to answer. A shop would put it into its own queue here
/// and answer at once.
#[must_use]
pub fn handle(verified: Verified<Bytes>) -> StatusCode {
    let claimed = match EVENTS.claim(&verified, Event::id_in) {
        Ok(Claim::New(claimed)) => claimed,
        Ok(Claim::Done) => return StatusCode::OK,
        Ok(Claim::InProgress) => return StatusCode::CONFLICT,
        Err(ReplayError::NoId) => return StatusCode::BAD_REQUEST,
        Err(_) => return StatusCode::SERVICE_UNAVAILABLE,
    };
    let bytes = verified.body().len();
    let Ok(event) = Event::from_verified(verified) else { return StatusCode::BAD_REQUEST };
    println!("{} {} in {bytes} bytes", event.id(), event.kind());
    match claimed.commit() {
        Ok(()) => StatusCode::OK,
        Err(_) => StatusCode::SERVICE_UNAVAILABLE,
    }
}
