//! `payments-server health`: asks the server on this machine whether it is ready. A container's health check uses it, because
//! the image has no other program.

use std::{
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    time::Duration,
};

use reqwest::Client;

use crate::{
    cli::{CommandError, HealthArgs},
    log::terminal::Output,
};

const TIMEOUT: Duration = Duration::from_secs(4);

/// Prints `ready`, or returns what the server lacks.
pub async fn health(args: &HealthArgs) -> Result<(), CommandError> {
    let url = format!("http://{}/readyz", reachable(args.listen));
    let client = Client::builder().no_proxy().timeout(TIMEOUT).build()?;
    let response = client.get(&url).send().await.map_err(|error| {
        let error = error.without_url();
        format!("{url} does not answer ({error}); start the server, or name its address with --listen")
    })?;
    let status = response.status();
    if !status.is_success() {
        return Err(format!("{url} answers {status}: {}", response.text().await?).into());
    }
    Output::new().line(format_args!("ready"))?;
    Ok(())
}

/// The address at which this machine reaches a listener. A listener on all addresses is also on loopback.
fn reachable(mut listen: SocketAddr) -> SocketAddr {
    match listen {
        SocketAddr::V4(address) if address.ip().is_unspecified() => listen.set_ip(Ipv4Addr::LOCALHOST.into()),
        SocketAddr::V6(address) if address.ip().is_unspecified() => listen.set_ip(Ipv6Addr::LOCALHOST.into()),
        _ => {}
    }
    listen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_on_all_addresses_is_reached_through_loopback() {
        for (listen, reached) in [
            ("0.0.0.0:8080", "127.0.0.1:8080"),
            ("[::]:8080", "[::1]:8080"),
            ("192.0.2.1:80", "192.0.2.1:80"),
            ("[2001:db8::1]:80", "[2001:db8::1]:80"),
        ] {
            assert_eq!(reachable(listen.parse().unwrap()), reached.parse().unwrap(), "{listen}");
        }
    }
}
