//! Commands for developers who program against a server. They use its API with a key, as any program does.

mod listen;
mod reset;
mod trigger;

use payments_client::Client;
use secrecy::ExposeSecret;
use url::{Host, Url};

use crate::{
    cli::{ApiArgs, CommandError, secret_from},
    service::SANDBOX_KEY,
};
pub use listen::listen;
pub use reset::reset;
pub use trigger::trigger;

/// A client of the server that the arguments name.
fn client(args: &ApiArgs) -> Result<Client, CommandError> {
    let key = secret_from(args.key_file.as_deref(), "PAYMENTS_API_KEY")?;
    let key = key.as_ref().map_or(SANDBOX_KEY, |key| key.expose_secret());
    if key == SANDBOX_KEY && !is_local(&args.api) {
        let server = &args.api;
        return Err(format!(
            "the public sandbox key works only with a server on this machine, and {server} is not; put your own test key \
             into PAYMENTS_API_KEY"
        )
        .into());
    }
    Ok(Client::builder(key).base_url(args.api.as_str().trim_end_matches('/')).build()?)
}

fn is_local(url: &Url) -> bool {
    match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.to_canonical().is_loopback(),
        None => false,
    }
}

/// Turns an error of a server's API into one that names the server's address.
fn said_by(server: &Url) -> impl Fn(payments_client::Error) -> CommandError {
    move |error| format!("{server}: {error}").into()
}
