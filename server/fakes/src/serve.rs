//! HTTP around a fake: one function from request to answer, and the faults between it and the wire.

use std::{convert::Infallible, fmt, io, net::SocketAddr, pin::Pin, sync::Arc, task};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::{Body, Frame, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};

use crate::{Fault, Faults};

/// A request, whole.
#[derive(Debug)]
pub struct Ask {
    /// Its method.
    pub method: Method,
    /// Its path, without the query.
    pub path: String,
    /// Its query, undecoded.
    pub query: String,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Bytes,
}

impl Ask {
    /// A header's text, or an empty one.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The pairs of a form body, decoded.
    pub fn form(&self) -> Vec<(String, String)> {
        url::form_urlencoded::parse(&self.body).into_owned().collect()
    }
}

/// An answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// Its status code.
    pub status: StatusCode,
    /// Its headers.
    pub headers: Vec<(&'static str, String)>,
    /// Its body.
    pub body: String,
}

impl Answer {
    /// JSON.
    pub fn json(status: StatusCode, body: &Value) -> Self {
        Self { status, headers: vec![("content-type", "application/json".into())], body: body.to_string() }
    }

    /// A page.
    pub fn html(body: String) -> Self {
        Self { status: StatusCode::OK, headers: vec![("content-type", "text/html; charset=utf-8".into())], body }
    }

    /// To another address.
    pub fn see_other(target: String) -> Self {
        Self { status: StatusCode::SEE_OTHER, headers: vec![("location", target)], body: String::new() }
    }
}

/// A fake: what it answers.
pub trait Program: Send + Sync + 'static {
    /// Answers a request.
    fn answer(self: &Arc<Self>, ask: &Ask, base_url: &str) -> Answer;
    /// The name of the gateway call that a request is; `None` for what is not one, such as a customer's page.
    fn operation(&self, ask: &Ask) -> Option<&'static str>;
}

/// A fake that is listening, until it is dropped.
#[derive(Debug)]
pub struct Running<P> {
    program: Arc<P>,
    faults: Arc<Faults>,
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl<P: Program> Running<P> {
    /// Starts a fake; port 0 picks a free one.
    ///
    /// # Errors
    /// If the address cannot be listened on.
    pub async fn start(program: P, address: &str) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let (program, faults) = (Arc::new(program), Arc::new(Faults::default()));
        let task =
            tokio::spawn(accept(listener, Arc::clone(&program), Arc::clone(&faults), format!("http://{address}")));
        Ok(Self { program, faults, address, task })
    }

    /// Where it listens.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The fake itself, for its books.
    pub fn program(&self) -> &Arc<P> {
        &self.program
    }

    /// What goes wrong with it.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }

    /// Listens until the process ends.
    pub async fn forever(mut self) {
        let _ = (&mut self.task).await;
    }
}

impl<P> Drop for Running<P> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept<P: Program>(listener: TcpListener, program: Arc<P>, faults: Arc<Faults>, base_url: String) {
    while let Ok((stream, _)) = listener.accept().await {
        let (program, faults, base_url) = (Arc::clone(&program), Arc::clone(&faults), base_url.clone());
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let (program, faults, base_url) = (Arc::clone(&program), Arc::clone(&faults), base_url.clone());
                async move { handle(&program, &faults, &base_url, request).await }
            });
            // A connection that was cut on purpose ends with an error here.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// The connection ends here, without an answer.
#[derive(Debug)]
pub(crate) struct Cut;

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cut on purpose")
    }
}

impl std::error::Error for Cut {}

async fn handle<P: Program>(
    program: &Arc<P>,
    faults: &Faults,
    base_url: &str,
    request: Request<Incoming>,
) -> Result<Response<Sent>, Cut> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| Cut)?.to_bytes();
    let ask = Ask {
        method: parts.method,
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        headers: parts.headers,
        body,
    };
    if ask.path == "/_control/faults" {
        return sent(order(faults, &ask), None);
    }
    let fault = program.operation(&ask).and_then(|operation| faults.draw(operation));
    match fault {
        Some(Fault::DropBefore) => return Err(Cut),
        Some(Fault::HangBefore) => return std::future::pending().await,
        Some(Fault::ErrorBefore) => return sent(server_error(), None),
        _ => {}
    }
    let answer = program.answer(&ask, base_url);
    match fault {
        Some(Fault::DropAfter) => Err(Cut),
        Some(Fault::HangAfter) => std::future::pending().await,
        Some(Fault::ErrorAfter) => sent(server_error(), None),
        Some(Fault::Empty) => sent(Answer { body: String::new(), ..answer }, None),
        Some(Fault::Truncated) => {
            let half = answer.body.len() / 2;
            sent(answer, Some(half))
        }
        _ => sent(answer, None),
    }
}

fn server_error() -> Answer {
    Answer::json(StatusCode::BAD_GATEWAY, &json!({"message": "Internal server error"}))
}

/// `{"seed": 7, "rate": 0.33, "kinds": ["drop_after"], "spared": ["token"]}`, or `{"next": "execute", "kind": "empty"}`,
/// or `{}` for no faults.
fn order(faults: &Faults, ask: &Ask) -> Answer {
    let order: Value = serde_json::from_slice(&ask.body).unwrap_or_default();
    let named = |name: &str| Fault::ALL.iter().find(|(known, _)| *known == name).map(|(_, fault)| *fault);
    let words = |key: &str| -> Vec<String> {
        let list = order.get(key).and_then(Value::as_array);
        list.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
    };
    if let (Some(operation), Some(kind)) =
        (order.get("next").and_then(Value::as_str), order.get("kind").and_then(Value::as_str).and_then(named))
    {
        faults.next(operation, kind);
    } else if let Some(rate) = order.get("rate").and_then(Value::as_f64) {
        let mut kinds: Vec<Fault> = words("kinds").iter().filter_map(|word| named(word)).collect();
        if kinds.is_empty() {
            kinds = Fault::ALL.iter().map(|(_, fault)| *fault).collect();
        }
        let spared = words("spared");
        let spared: Vec<&str> = spared.iter().map(String::as_str).collect();
        faults.at_random(order.get("seed").and_then(Value::as_u64).unwrap_or(1), rate, &kinds, &spared);
    } else {
        faults.none();
    }
    let (calls, faulty) = faults.calls();
    Answer::json(StatusCode::OK, &json!({"calls": calls, "faulty": faulty}))
}

fn sent(answer: Answer, break_at: Option<usize>) -> Result<Response<Sent>, Cut> {
    let mut response = Response::builder().status(answer.status);
    for (name, value) in &answer.headers {
        response = response.header(*name, value);
    }
    let body = Bytes::from(answer.body);
    let whole = body.len();
    let body = break_at.map_or_else(|| body.clone(), |at| body.slice(..at));
    let is_broken = body.len() < whole;
    if is_broken {
        response = response.header("content-length", whole);
    }
    response.body(Sent { body: Full::new(body), is_broken }).map_err(|_| Cut)
}

/// A body that may end before its time.
#[derive(Debug)]
pub(crate) struct Sent {
    body: Full<Bytes>,
    is_broken: bool,
}

impl Body for Sent {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut task::Context<'_>,
    ) -> task::Poll<Option<Result<Frame<Bytes>, Cut>>> {
        match Pin::new(&mut self.body).poll_frame(context) {
            task::Poll::Ready(None) if self.is_broken => task::Poll::Ready(Some(Err(Cut))),
            task::Poll::Ready(frame) => {
                task::Poll::Ready(frame.map(|frame| frame.map_err(|never: Infallible| match never {})))
            }
            task::Poll::Pending => task::Poll::Pending,
        }
    }
}
