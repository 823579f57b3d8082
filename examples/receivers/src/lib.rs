//! What the receivers on all frameworks share: where their settings come from, and what they do with an event.
//!
//! `WEBHOOK_SECRET` is the endpoint's secret; several, parted by commas, while one replaces the other.
//! `RECEIVER_LISTEN` is where to listen, 127.0.0.1:9000 unless it is set.
#![forbid(unsafe_code)]
#![warn(missing_docs)]

use std::{env, error::Error, net::SocketAddr};

use bytes::Bytes;
use payments_core::Event;
use webhook_verify::{Verified, Verifier, adapters::Receiver};

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

/// Takes note of an event. A shop would put it into its own queue here and answer at once.
pub fn handle(verified: Verified<Bytes>) {
    let bytes = verified.body().len();
    match Event::from_verified(verified) {
        Ok(event) => println!("{} {} in {bytes} bytes", event.id(), event.kind()),
        Err(_) => println!("not an event, in {bytes} bytes"),
    }
}
