//! Where the data is, and whether a server uses it.

use std::{
    io::ErrorKind,
    net::TcpListener,
    path::{Path, absolute},
};

use tokio::net::UnixStream;

use super::diagnosis::{Diagnosis, failed, in_order, warning};
use crate::{
    administration::socket,
    cli::ServeArgs,
    commands::no_store::no_store_in,
    store::{Location, embedded},
};

/// Checks that the store exists, or that `serve` may create one. Creates none.
pub(super) async fn check(location: &Location) -> Diagnosis {
    match location {
        Location::Directory(directory) if embedded::is_there(directory) => {
            let name = absolute(directory).unwrap_or_else(|_| directory.clone());
            let served = if is_served(directory).await { "a server runs on it" } else { "no server runs on it" };
            in_order(format!("{}; {served}", name.display()))
        }
        Location::Directory(directory) => {
            let missing = no_store_in(directory, "--data-dir");
            warning(format!("{missing}; `serve` makes a new store there"))
        }
        Location::Database(target) => match target.has_tables().await {
            Ok(true) => match target.prove().await {
                Ok(()) => in_order(format!("{target}; its role has the privileges that a server needs")),
                Err(error) => failed(format!("{target}: {error}")),
            },
            Ok(false) => warning(format!("there is no store in {target}; `serve` makes a new one there")),
            Err(error) => failed(format!("{target}: {error}")),
        },
    }
}

/// Checks that `serve` can listen. A server that already runs on the data uses the address itself.
pub(super) async fn check_listen(args: &ServeArgs, location: &Location) -> Diagnosis {
    let address = args.listen;
    let is_served = matches!(location, Location::Directory(directory) if is_served(directory).await);
    match TcpListener::bind(address) {
        Ok(_) => in_order(format!("{address} is free")),
        Err(error) if error.kind() == ErrorKind::AddrInUse && is_served => {
            in_order(format!("{address} is in use, by the server that runs on this store"))
        }
        Err(error) => failed(format!("cannot listen on {address}: {error}; choose another with --listen")),
    }
}

async fn is_served(directory: &Path) -> bool {
    let connected = UnixStream::connect(socket::socket_in(directory)).await;
    // A server that does not accept has a full queue: it runs, but hangs.
    connected.map_or_else(|error| error.kind() == ErrorKind::WouldBlock, |_| true)
}
