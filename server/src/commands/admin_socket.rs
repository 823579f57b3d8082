//! The admin socket: a Unix socket in the data directory, for the command line on the same machine.
//!
//! Only one process can open the store. While the server runs, the command line sends it requests; otherwise the command line
//! opens the store itself. Requests and replies are lines of JSON. Spaces before a reply say that the server still works on
//! it. The socket's mode is 0600, so only its owner may use it.

use std::{
    fs,
    io::{self, ErrorKind},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    pin::pin,
    sync::Arc,
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{UnixListener, UnixStream},
    time::timeout,
};

use crate::{
    cli::CommandError,
    service::{AdminReply, AdminRequest, Services},
};

/// A request has at most 500 rows of a statement.
const MAX_REQUEST_BYTES: u64 = 1024 * 1024;
/// How often the server sends a space while it works on a request. A backup may take hours.
const SIGN_OF_LIFE: Duration = Duration::from_secs(2);
/// How long each side waits for a byte from the other.
const PATIENCE: Duration = Duration::from_secs(10);
/// The errors of a connection to the socket if no server runs on the directory.
const NO_SERVER: [ErrorKind; 3] = [ErrorKind::NotFound, ErrorKind::ConnectionRefused, ErrorKind::NotADirectory];

pub fn socket_in(data_directory: &Path) -> PathBuf {
    data_directory.join("admin.sock")
}

/// Binds the socket. The caller holds the store, so an existing socket is left over from a crash.
pub fn bind(data_directory: &Path) -> io::Result<UnixListener> {
    let path = socket_in(data_directory);
    match fs::remove_file(&path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(&path)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

pub async fn serve(listener: UnixListener, services: Arc<Services>) {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                let services = Arc::clone(&services);
                services.lasting.tasks.clone().spawn(async move {
                    if let Err(error) = handle(stream, &services).await {
                        tracing::warn!(%error, "an admin request failed");
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept an admin connection");
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
        }
    }
}

async fn handle(stream: UnixStream, services: &Services) -> io::Result<()> {
    let (mut stream, mut line) = (BufReader::new(stream), String::new());
    timeout(PATIENCE, (&mut stream).take(MAX_REQUEST_BYTES).read_line(&mut line)).await??;
    let reply = match serde_json::from_str(&line) {
        Ok(request) => {
            let mut reply = pin!(services.administer(request));
            loop {
                match timeout(SIGN_OF_LIFE, &mut reply).await {
                    Ok(reply) => break reply,
                    // The server does the work even if the client is gone.
                    Err(_) => drop(stream.write_all(b" ").await),
                }
            }
        }
        Err(error) => AdminReply::Error {
            error: format!("the running server has another version; use the command line of that version ({error})"),
        },
    };
    stream.write_all((serde_json::to_string(&reply)? + "\n").as_bytes()).await
}

/// Sends a request to the server that runs on this data directory. `None` if none runs.
pub async fn ask(data_directory: &Path, request: &AdminRequest) -> Result<Option<AdminReply>, CommandError> {
    let socket = socket_in(data_directory);
    let name = socket.display();
    let stream = match UnixStream::connect(&socket).await {
        Ok(stream) => stream,
        Err(error) if NO_SERVER.contains(&error.kind()) => return Ok(None),
        Err(error) => return Err(format!("cannot reach the running server: {name}: {error}").into()),
    };
    match exchange(stream, &(serde_json::to_string(request)? + "\n")).await {
        Ok(reply) if reply.ends_with(b"\n") => Ok(Some(serde_json::from_slice(&reply)?)),
        Ok(_) => Err(format!("the running server ended before it answered at {name}; run this again").into()),
        Err(error) if error.kind() == ErrorKind::TimedOut => Err(format!(
            "the running server has said nothing at {name} for {} s, and may still do this; look whether it is stopped (state T \
             in ps) or overloaded",
            PATIENCE.as_secs()
        )
        .into()),
        Err(error) => Err(format!("the running server cannot be asked: {name}: {error}").into()),
    }
}

/// Sends a request and reads the whole reply.
async fn exchange(mut stream: UnixStream, request: &str) -> io::Result<Vec<u8>> {
    timeout(PATIENCE, stream.write_all(request.as_bytes())).await??;
    let mut reply = Vec::new();
    while timeout(PATIENCE, stream.read_buf(&mut reply)).await?? > 0 && !reply.ends_with(b"\n") {}
    Ok(reply)
}
