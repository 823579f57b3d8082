//! The way to the gateways. The gateways are the strict fakes of the tests, without sockets.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use gateway_fakes::{Answer, Call, Fault, Instead, Program};
use payments_server::parts::{NoResponse, Response, Transport};
use reqwest::Request;
use serde_json::{Value, json};
use tokio::time::sleep;

use super::{Planted, Trouble, fate::Fate, is_planted, life::Life};

/// How long a server waits for a gateway.
pub(super) const TIMEOUT: Duration = Duration::from_secs(5);

/// Why a request was not sent.
const NOT_SENT: &str = "connection refused";

/// The way from one server to one gateway.
pub(super) struct ToGateway<P> {
    pub(super) fate: Arc<Fate>,
    pub(super) life: Arc<Life>,
    pub(super) is_closed: Arc<AtomicBool>,
    pub(super) program: Arc<P>,
}

#[async_trait]
impl<P: Program> Transport for ToGateway<P> {
    async fn send(&self, request: Request) -> Result<Response, NoResponse> {
        self.life.runs().await;
        let mut call = call(&request);
        self.fate.wait(5..=120).await;
        let operation = self.program.operation(&call).unwrap_or_default();
        let renamed =
            (operation == "refund" && is_planted(Planted::RefundUnderNewId)).then(|| self.rename_refund(&mut call));
        let is_struck = self.fate.strikes(Trouble::GatewayLink, 10);
        let is_closed = operation != "token" && self.is_closed.load(Ordering::Relaxed);
        let fault = match is_struck {
            _ if is_closed => Some(Fault::Before(Instead::Forbidden)),
            true => self.fate.choose(&Fault::ALL).map(|(_, fault)| *fault),
            false => None,
        };
        let outcome = match fault {
            Some(Fault::HangBefore) => Err("it does not answer"),
            Some(Fault::DropBefore) => Err(NOT_SENT),
            Some(Fault::ErrorBefore) => Ok(Response { status: http_status(502), body: Bytes::new() }),
            Some(Fault::Before(instead)) => {
                self.fate.note(format_args!("gateway {operation} is not reached: {instead:?}"));
                Ok(response(self.program.instead(instead)))
            }
            fault => {
                // The gateway has the request, even if this server dies before the answer.
                let answer = gateway_fakes::at(self.fate.now_seconds(), || {
                    self.program.answer(&call, &format!("https://{operation}.gateway.example"))
                });
                self.fate.note(format_args!("gateway {operation} {} {fault:?}", answer.status.as_u16()));
                match fault {
                    Some(Fault::After(instead)) => Ok(response(self.program.instead(instead))),
                    fault => answered(answer, fault),
                }
            }
        };
        self.fate.wait(5..=120).await;
        self.life.runs().await;
        let outcome = outcome.map(|response| falsified(response, operation, &call, renamed));
        match outcome {
            Err("it does not answer") => {
                sleep(TIMEOUT).await;
                Err(NoResponse { what: "the operation timed out".into(), was_sent: true })
            }
            Err(what) => Err(NoResponse { what: what.into(), was_sent: what != NOT_SENT }),
            Ok(response) => Ok(response),
        }
    }
}

impl<P> ToGateway<P> {
    /// Gives a refund another id. Returns this server's id and the other one.
    fn rename_refund(&self, call: &mut Call) -> (String, String) {
        let known = call.header("idempotency-key").to_owned();
        let other = format!("{known}-{}", self.fate.number(0..=u64::MAX));
        if let Ok(key) = other.parse() {
            call.headers.insert("idempotency-key", key);
        }
        call.body = String::from_utf8_lossy(&call.body).replace(&known, &other).into();
        (known, other)
    }
}

/// Changes a gateway's response, so that the server acts as with the planted fault.
fn falsified(response: Response, operation: &str, call: &Call, renamed: Option<(String, String)>) -> Response {
    let text = String::from_utf8_lossy(&response.body);
    let is_error = response.status.is_client_error();
    if let Some((known, other)) = renamed {
        return Response { body: text.replace(&other, &known).into(), ..response };
    }
    match operation {
        "refund" if is_error && is_planted(Planted::AnyErrorRefuses) => {
            let error = json!({"error": {"type": "invalid_request_error", "code": "charge_disputed"}});
            Response { status: http_status(400), body: error.to_string().into() }
        }
        // Otherwise the server would find the refund that the false error is about.
        "retrieve" if call.path == "/v1/refunds" && is_planted(Planted::AnyErrorRefuses) => {
            Response { body: json!({"data": [], "has_more": false}).to_string().into(), ..response }
        }
        "list" if is_planted(Planted::RefundsNotRead) && call.path == "/v1/refunds" => {
            Response { body: json!({"data": [], "has_more": false}).to_string().into(), ..response }
        }
        "execute" if is_planted(Planted::AnyCodeFails) && has_unknown_code(&text) => {
            let failure = json!({"statusCode": "2023", "statusMessage": "Insufficient Balance"});
            Response { body: failure.to_string().into(), ..response }
        }
        _ => response,
    }
}

/// Whether an answer of the mobile-money gateway to an execute call has an error code other than that of maintenance.
fn has_unknown_code(text: &str) -> bool {
    let answer = serde_json::from_str::<Value>(text).unwrap_or_default();
    let code =
        ["statusCode", "errorCode", "externalCode", "internalCode"].iter().find_map(|name| answer[name].as_str());
    code.is_some_and(|code| code != "0000" && code != "503")
}

fn answered(answer: Answer, fault: Option<Fault>) -> Result<Response, &'static str> {
    match fault {
        Some(Fault::HangAfter) => Err("it does not answer"),
        Some(Fault::DropAfter) => Err("the connection closed"),
        Some(Fault::ErrorAfter) => Ok(Response { status: http_status(502), body: Bytes::new() }),
        Some(Fault::Empty) => Ok(response(Answer { body: String::new(), ..answer })),
        Some(Fault::Truncated) => Err("the body ended early"),
        _ => Ok(response(answer)),
    }
}

fn response(answer: Answer) -> Response {
    Response { status: http_status(answer.status.as_u16()), body: answer.body.into() }
}

fn http_status(status: u16) -> reqwest::StatusCode {
    reqwest::StatusCode::from_u16(status).unwrap_or(reqwest::StatusCode::BAD_GATEWAY)
}

fn call(request: &Request) -> Call {
    let body = request.body().and_then(reqwest::Body::as_bytes).unwrap_or_default();
    Call {
        method: request.method().clone(),
        path: request.url().path().to_owned(),
        query: request.url().query_pairs().into_owned().collect(),
        headers: request.headers().clone(),
        body: Bytes::copy_from_slice(body),
    }
}
