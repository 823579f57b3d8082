//! Serves a fake over HTTP and injects its faults.

use std::{fmt, io, net::SocketAddr, pin::Pin, process::ExitCode, sync::Arc, vec};

use bytes::Bytes;
use futures_util::stream;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, StreamBody};
use hyper::{
    body::{Frame, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use serde_json::{Value, json};
use tokio::{net::TcpListener, task::JoinHandle};

use crate::{Fault, Faults, Form, Instead};

/// A complete request.
#[derive(Debug)]
pub struct Call {
    /// The method.
    pub method: Method,
    /// The path without the query.
    pub path: String,
    /// The query.
    pub query: Form,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

impl Call {
    /// A header's text, or an empty text.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// Decodes a form body.
    pub fn form(&self) -> Form {
        url::form_urlencoded::parse(&self.body).into_owned().collect()
    }
}

/// A response.
#[derive(Debug, Clone)]
pub struct Answer {
    /// The status code.
    pub status: StatusCode,
    /// The headers.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: String,
}

impl Answer {
    /// A JSON response.
    pub fn json(status: StatusCode, body: &Value) -> Self {
        Self { status, headers: vec![("content-type", "application/json".into())], body: body.to_string() }
    }

    /// A JSON response with status 200, or the refusal.
    pub fn of(result: Result<Value, Self>) -> Self {
        result.map_or_else(|refusal| refusal, |body| Self::ok(&body))
    }

    /// A JSON response with status 200.
    pub fn ok(body: &Value) -> Self {
        Self::json(StatusCode::OK, body)
    }

    /// An HTML page.
    pub fn html(body: String) -> Self {
        Self { status: StatusCode::OK, headers: vec![("content-type", "text/html; charset=utf-8".into())], body }
    }

    /// A page of a proxy between a server and the gateway.
    pub fn proxy_page() -> Self {
        Self::html("<!doctype html><title>Access denied</title><p>Sign in to go on.</p>".into())
    }

    /// A redirect with status 303.
    pub fn see_other(target: String) -> Self {
        Self { status: StatusCode::SEE_OTHER, headers: vec![("location", target)], body: String::new() }
    }
}

/// A fake gateway.
pub trait Program: Send + Sync + 'static {
    /// Answers a request.
    fn answer(&self, call: &Call, base_url: &str) -> Answer;
    /// Ends when the answer may be sent: once the merchant has the notices of a customer's step.
    fn before_sent(&self, _call: &Call) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::ready(()))
    }
    /// The name of the gateway call; `None` for other requests, such as a customer's page.
    fn operation(&self, call: &Call) -> Option<&'static str>;
    /// This answer in the gateway's own form.
    fn instead(&self, instead: Instead) -> Answer;
    /// The section of `payments.toml` with which a server uses this fake.
    fn settings(&self, base_url: &str) -> String;
}

/// A running fake. It stops when dropped.
#[derive(Debug)]
pub struct Running<P: ?Sized> {
    program: Arc<P>,
    faults: Arc<Faults>,
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl<P: Program> Running<P> {
    /// Starts a fake. Port 0 picks a free port.
    ///
    /// # Errors
    /// If it cannot listen on the address.
    pub async fn start(program: P, address: &str) -> io::Result<Self> {
        Self::share(Arc::new(program), address).await
    }
}

impl<P: Program + ?Sized> Running<P> {
    /// Starts a fake that the caller has too, such as an `Arc<dyn Fake>`. Port 0 picks a free port.
    ///
    /// # Errors
    /// If it cannot listen on the address.
    pub async fn share(program: Arc<P>, address: &str) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let faults = Arc::new(Faults::default());
        let task =
            tokio::spawn(accept(listener, Arc::clone(&program), Arc::clone(&faults), format!("http://{address}")));
        Ok(Self { program, faults, address, task })
    }

    /// The URL of the fake.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The section of `payments.toml` with which a server uses this fake.
    pub fn settings(&self) -> String {
        self.program.settings(&self.url())
    }

    /// The fake, for its books and customers.
    pub fn program(&self) -> &Arc<P> {
        &self.program
    }

    /// The faults that it injects.
    pub fn faults(&self) -> &Faults {
        &self.faults
    }
}

impl<P: ?Sized> Drop for Running<P> {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Runs a fake on the address in the first argument until the process ends. Says in one line why it cannot.
pub async fn run(program: impl Program) -> ExitCode {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".into());
    let ended = match Running::start(program, &address).await {
        Ok(mut fake) => {
            println!("listening on {}\n\nA server uses it with these settings:\n\n{}", fake.url(), fake.settings());
            (&mut fake.task).await.map_err(io::Error::other)
        }
        Err(error) => Err(error),
    };
    match ended {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the fake on {address} ended: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn accept<P: Program + ?Sized>(listener: TcpListener, program: Arc<P>, faults: Arc<Faults>, base_url: String) {
    while let Ok((stream, _)) = listener.accept().await {
        let (program, faults, base_url) = (Arc::clone(&program), Arc::clone(&faults), base_url.clone());
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let (program, faults, base_url) = (Arc::clone(&program), Arc::clone(&faults), base_url.clone());
                async move { handle(&program, &faults, &base_url, request).await }
            });
            // An injected fault ends with an error here.
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

/// Closes the connection without a response.
#[derive(Debug)]
pub(crate) struct Cut;

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("injected fault")
    }
}

impl std::error::Error for Cut {}

async fn handle<P: Program + ?Sized>(
    program: &Arc<P>,
    faults: &Faults,
    base_url: &str,
    request: Request<Incoming>,
) -> Result<Response<Sent>, Cut> {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.map_err(|_| Cut)?.to_bytes();
    let query = url::form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes()).into_owned().collect();
    let call = Call { method: parts.method, path: parts.uri.path().to_owned(), query, headers: parts.headers, body };
    if call.path == "/_control/faults" {
        return sent(order(faults, &call), None);
    }
    let fault = program.operation(&call).and_then(|operation| faults.draw(operation));
    match fault {
        Some(Fault::DropBefore) => return Err(Cut),
        Some(Fault::HangBefore) => return std::future::pending().await,
        Some(Fault::ErrorBefore) => return sent(server_error(), None),
        Some(Fault::Before(instead)) => return sent(program.instead(instead), None),
        _ => {}
    }
    let answer = program.answer(&call, base_url);
    program.before_sent(&call).await;
    match fault {
        Some(Fault::DropAfter) => Err(Cut),
        Some(Fault::HangAfter) => std::future::pending().await,
        Some(Fault::ErrorAfter) => sent(server_error(), None),
        Some(Fault::After(instead)) => sent(program.instead(instead), None),
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

/// Sets the faults: `{"seed": 7, "rate": 0.33, "kinds": ["drop_after"], "spared": ["token"]}`,
/// `{"next": "execute", "kind": "empty"}`, or `{}` for none.
fn order(faults: &Faults, call: &Call) -> Answer {
    let order: Value = serde_json::from_slice(&call.body).unwrap_or_default();
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
    Answer::ok(&json!({"calls": calls, "faulty": faulty}))
}

/// A body that may end early.
type Sent = StreamBody<stream::Iter<vec::IntoIter<Result<Frame<Bytes>, Cut>>>>;

fn sent(answer: Answer, break_at: Option<usize>) -> Result<Response<Sent>, Cut> {
    let mut response = Response::builder().status(answer.status).header("content-length", answer.body.len());
    for (name, value) in &answer.headers {
        response = response.header(*name, value);
    }
    let body = Bytes::from(answer.body);
    let frames = match break_at {
        Some(at) => vec![Ok(Frame::data(body.slice(..at))), Err(Cut)],
        None => vec![Ok(Frame::data(body))],
    };
    response.body(StreamBody::new(stream::iter(frames))).map_err(|_| Cut)
}
