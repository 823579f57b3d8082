//! Sends requests to a server: by its socket, or from elsewhere with a platform key.

use std::{
    error::Error as _,
    io::{self, ErrorKind},
    path::Path,
};

use reqwest::{Client, ClientBuilder, redirect};
use secrecy::{ExposeSecret as _, SecretString};
use tokio::net::UnixStream;
use url::Url;

use super::{
    message::Call,
    socket::{PATIENCE, socket_in},
};
use crate::{
    cli::CommandError,
    service::{AdminReply, AdminRequest},
};

/// The errors of a connection to the socket if no server runs on the directory.
const NO_SERVER: [ErrorKind; 3] = [ErrorKind::NotFound, ErrorKind::ConnectionRefused, ErrorKind::NotADirectory];

/// A server elsewhere, and the platform key with which it is asked.
#[derive(Debug, Clone)]
pub struct Remote {
    pub server: Url,
    pub key: SecretString,
}

/// Sends a request to the server that runs on this data directory. `None` if none runs.
pub async fn ask_socket(directory: &Path, request: &AdminRequest) -> Result<Option<AdminReply>, CommandError> {
    let socket = socket_in(directory);
    let name = socket.display().to_string();
    match UnixStream::connect(&socket).await {
        Ok(_) => {}
        Err(error) if NO_SERVER.contains(&error.kind()) => return Ok(None),
        Err(error) => return Err(format!("cannot reach the running server: {name}: {error}").into()),
    }
    // The host means nothing here.
    let at = Url::parse("http://localhost")?;
    send(Client::builder().unix_socket(socket), &at, None, &name, request).await.map(Some)
}

/// Sends a request to a server elsewhere.
pub async fn ask(remote: &Remote, request: &AdminRequest) -> Result<AdminReply, CommandError> {
    let Remote { server, key } = remote;
    let name = server.host_str().unwrap_or_default().to_owned();
    send(Client::builder(), server, Some(key), &name, request).await
}

async fn send(
    builder: ClientBuilder,
    at: &Url,
    key: Option<&SecretString>,
    name: &str,
    request: &AdminRequest,
) -> Result<AdminReply, CommandError> {
    let Call { method, target, body } =
        Call::of(request).ok_or("this command has no route; it is a fault of this program")?;
    let client = builder.read_timeout(PATIENCE).redirect(redirect::Policy::none()).build()?;
    let mut sent = client.request(method.parse()?, at.join(&target)?);
    if let Some(key) = key {
        sent = sent.bearer_auth(key.expose_secret());
    }
    if let Some(body) = body {
        sent = sent.header("content-type", "application/json").body(body);
    }
    let failed = |error: reqwest::Error| why(&error, name);
    let response = sent.send().await.map_err(failed)?;
    let reply = response.bytes().await.map_err(failed)?;
    serde_json::from_slice(&reply).map_err(|_| {
        "the server has another version, or is no payments server; use the command line of its version".into()
    })
}

fn why(error: &reqwest::Error, name: &str) -> CommandError {
    if error.is_timeout() {
        let seconds = PATIENCE.as_secs();
        return format!(
            "the running server has said nothing at {name} for {seconds} s, and may still do this; look whether it is stopped \
             (state T in ps) or overloaded"
        )
        .into();
    }
    if error.is_connect() {
        return format!("cannot reach the running server: {name}: {}", cause(error)).into();
    }
    match is_cut_off(error) {
        true => format!("the running server ended before it answered at {name}; run this again").into(),
        false => format!("the running server cannot be asked: {name}: {}", cause(error)).into(),
    }
}

fn cause(error: &reqwest::Error) -> String {
    let mut last: &dyn std::error::Error = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

/// Whether the connection ended before the answer did.
fn is_cut_off(error: &reqwest::Error) -> bool {
    let mut source = error.source();
    while let Some(error) = source {
        let is_cut = error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_incomplete_message)
            || error.downcast_ref::<io::Error>().is_some_and(|error| {
                matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe)
            });
        if is_cut {
            return true;
        }
        source = error.source();
    }
    false
}
