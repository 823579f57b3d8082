//! The admin socket: the administration API on a Unix socket in the data directory, for the command line on the same machine.
//!
//! Only one process can open the store. While the server runs, the command line sends it requests; otherwise the command line
//! opens the store itself. The socket's mode is 0600, so only its owner may use it, and may do everything. An answer that takes
//! long begins with spaces, which say that the server still works on it.

use std::{
    convert::Infallible,
    fs,
    io::{self, ErrorKind},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use futures_util::stream;
use http_body_util::{BodyExt as _, Full, Limited, StreamBody, combinators::BoxBody};
use hyper::{
    Request, Response,
    body::{Frame, Incoming},
    header,
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use payments_core::ErrorCode;
use tokio::{
    net::{UnixListener, UnixStream},
    task::JoinHandle,
    time::timeout,
};

use super::{
    answer::{Answered, answer, answered},
    who::Who,
};
use crate::service::{AdminReply, Services};

/// Maximum length of a body: a request has at most 500 rows of a statement.
pub const MAX_BODY_BYTES: usize = 1024 * 1024;
/// How often the server sends a space while it works on a request. A backup may take hours.
const SIGN_OF_LIFE: Duration = Duration::from_secs(2);
/// How long each side waits for the other.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

type Body = BoxBody<Bytes, Infallible>;

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
                    if let Err(error) = connection(stream, services).await {
                        tracing::debug!(%error, "an admin connection ended");
                    }
                });
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept an admin connection");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// Answers one request.
async fn connection(stream: UnixStream, services: Arc<Services>) -> hyper::Result<()> {
    let respond = service_fn(move |request| respond(request, Arc::clone(&services)));
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(PATIENCE).keep_alive(false);
    http.serve_connection(TokioIo::new(stream), respond).await
}

async fn respond(request: Request<Incoming>, services: Arc<Services>) -> Result<Response<Body>, Infallible> {
    let (parts, body) = request.into_parts();
    let body = match timeout(PATIENCE, Limited::new(body, MAX_BODY_BYTES).collect()).await {
        Ok(Ok(body)) => body.to_bytes(),
        _ => {
            let sentence = format!("the body did not arrive, or is longer than {MAX_BODY_BYTES} bytes");
            return Ok(response(answered(&AdminReply::error(ErrorCode::BodyIncomplete, sentence))));
        }
    };
    let target = parts.uri.path_and_query().map_or_else(String::new, ToString::to_string);
    // The server does the work even if the client is gone.
    let mut work = services
        .lasting
        .tasks
        .clone()
        .spawn(async move { answer(&services, Who::command(), parts.method.as_str(), &target, &body).await });
    Ok(match timeout(SIGN_OF_LIFE, &mut work).await {
        Ok(done) => response(done.unwrap_or_else(|_| stopped())),
        Err(_) => {
            let frames = StreamBody::new(stream::unfold(Some(work), next_frame));
            Response::new(frames.boxed())
        }
    })
}

/// A space while the server works, then the answer.
async fn next_frame(
    work: Option<JoinHandle<Answered>>,
) -> Option<(Result<Frame<Bytes>, Infallible>, Option<JoinHandle<Answered>>)> {
    let mut work = work?;
    Some(match timeout(SIGN_OF_LIFE, &mut work).await {
        Ok(done) => (Ok(Frame::data(done.unwrap_or_else(|_| stopped()).body.into())), None),
        Err(_) => (Ok(Frame::data(Bytes::from_static(b" "))), Some(work)),
    })
}

fn stopped() -> Answered {
    answered(&AdminReply::error(ErrorCode::InternalError, "the server stopped the command; look at its log"))
}

fn response(answered: Answered) -> Response<Body> {
    let Answered { status, body, allow, .. } = answered;
    let mut response = Response::new(Full::new(Bytes::from(body)).boxed());
    *response.status_mut() = hyper::StatusCode::from_u16(status).unwrap_or(hyper::StatusCode::INTERNAL_SERVER_ERROR);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    if let Some(allow) = allow.and_then(|allow| allow.parse().ok()) {
        headers.insert(header::ALLOW, allow);
    }
    response
}
