//! Mobile money: bKash tokenized checkout in its versions 1.2.0-beta (mode 0011) and 2.
//!
//! The customer approves on bKash's page, and `execute` captures the money. The parameters that the browser brings back are
//! unsigned, so they are only a hint. Unless `execute` answers that the money moved, the server queries the payment's status.
//! bKash executes a `paymentID` once, however often `execute` is called.

mod declared;
mod dialect;
mod errors;
mod notice;
mod refund;
mod reply;
mod token;

use std::sync::Arc;

use async_trait::async_trait;
use payments_core::{Payment, Timestamp};
use reqwest::{StatusCode, header::HeaderMap};
use secrecy::SecretString;
use serde_json::{Value, json};

use super::{
    answer::{About, Names, Rejection},
    call::{GatewayClient, Response, sensitive},
    contract::{
        AttemptRequest, AttemptState, BeginOutcome, CaptureOutcome, Gateway, KnownRefund, RefundOutcome, RefundRequest,
    },
    decimal::with_two_decimals,
    declaration::{Declaration, RefundWay},
    error::GatewayError,
    notice::{Notice, NoticeError},
    parts::Parts,
    settings::Settings,
};
use crate::{
    ambient::Ambient,
    domain::{GatewayAttempt, GatewayRefund},
};
use dialect::Dialect;
use notice::Certificates;
use reply::{Reply, read};
use token::Tokens;

pub(super) use declared::DECLARED;

pub(super) struct Bkash {
    client: Arc<GatewayClient>,
    settings: Arc<Settings>,
    tokens: Arc<Tokens>,
    dialect: &'static Dialect,
    ambient: Arc<dyn Ambient>,
    certificates: Certificates,
}

/// Whether an `execute` with this code took no money and never will: the customer's wallet, OTP or PIN, a balance that is too
/// small, an account that may not pay, a payment that the customer cancelled. After any other code the outcome is unknown.
fn is_certain(code: &str) -> bool {
    let number = code.parse::<u16>().unwrap_or_default();
    code == CANCELLED || matches!(number, 2009..=2019 | 2023 | 2037..=2041 | 2043..=2046 | 2057..=2059)
}

const CANCELLED: &str = "2069";
const INVALID_STATE: &str = "2056";
/// How long bKash may work on a call.
const CALL_MILLIS: i64 = 30_000;
/// The time between two of v1, which does no harm twice.
const V1_CAPTURE_MILLIS: i64 = 5_000;

/// An error of `execute`. It does not name the payment, so its code tells whether it is about the payment.
struct NotExecuted {
    rejection: Rejection,
    /// Whether an earlier `execute`, which has ended, used the payment up.
    is_used_up: bool,
}

impl Names for NotExecuted {
    fn names(&self, _payment: &str) -> bool {
        is_certain(&self.rejection.code) || self.is_used_up
    }
}

impl Bkash {
    pub(super) fn new(Parts { settings, client, store, ambient, tasks }: Parts) -> Self {
        let (client, settings) = (Arc::new(client), Arc::new(settings));
        let dialect = Dialect::of(&settings);
        let tokens = Tokens::new(Arc::clone(&client), Arc::clone(&settings), store, Arc::clone(&ambient), tasks);
        Self { client, settings, tokens: Arc::new(tokens), dialect, ambient, certificates: Certificates::default() }
    }

    /// Calls bKash. The inner error is bKash's own.
    async fn call(
        &self,
        what: &'static str,
        path: &str,
        body: &Value,
    ) -> Result<Result<Reply, Rejection>, GatewayError> {
        let token = self.tokens.get().await?;
        // The token has no prefix: bKash uses no authorization scheme.
        let headers = [("authorization", &token), ("x-app-key", &self.settings.secret("app_key"))];
        let url = self.dialect.url(&self.settings, path);
        let response = post(&self.client, url, what, headers, body).await?;
        if response.status == StatusCode::UNAUTHORIZED {
            self.tokens.refuse(&token);
        }
        read(&self.client, self.dialect, &response)
    }

    /// The state that a reply reports. A reply that does not name the attempt says nothing about it.
    fn state(&self, reply: Reply, payment: &Payment, attempt: &GatewayAttempt) -> Result<AttemptState, GatewayError> {
        let reply = About::new(reply, &attempt.external_id);
        let reply = reply.ok_or_else(|| self.client.unanswered("the response is about another payment"))?;
        Ok(reply.state(payment, attempt))
    }
}

async fn post(
    client: &GatewayClient,
    url: String,
    what: &'static str,
    headers: [(&str, &SecretString); 2],
    body: &Value,
) -> Result<Response, GatewayError> {
    let mut request = client.http.post(url).header("accept", "application/json");
    for (name, value) in headers {
        request = request.header(name, sensitive(value));
    }
    client.call(what, request.json(body)).await
}

#[async_trait]
impl Gateway for Bkash {
    fn declared(&self) -> &'static Declaration {
        &DECLARED
    }

    async fn token_valid_until(&self) -> Option<Result<Timestamp, GatewayError>> {
        Some(self.tokens.valid_until().await)
    }

    /// An early `execute` of v1 changes nothing; one of v2 would end the payment.
    fn may_capture_unasked(&self) -> bool {
        !self.dialect.execute_uses_up
    }

    /// An `execute` of v2 uses the payment up even if it fails. So the next one comes after its end, and tells that.
    fn capture_millis(&self) -> i64 {
        if self.dialect.execute_uses_up { CALL_MILLIS } else { V1_CAPTURE_MILLIS }
    }

    fn refund_way(&self) -> RefundWay {
        match self.settings.text("refunds") {
            "by_api" => RefundWay::Gateway,
            _ => RefundWay::Manual,
        }
    }

    fn knows_repeated_refunds(&self) -> bool {
        false
    }

    async fn refund(
        &self,
        payment: &Payment,
        attempt: &GatewayAttempt,
        refund: &RefundRequest<'_>,
    ) -> Result<RefundOutcome, GatewayError> {
        self.send_back(payment, attempt, refund).await
    }

    async fn refunds(
        &self,
        attempt: &GatewayAttempt,
        known: &[KnownRefund<'_>],
    ) -> Result<Vec<GatewayRefund>, GatewayError> {
        let Some(transaction) = &attempt.transaction else { return Ok(Vec::new()) };
        // What a person sends back by hand is recorded without bKash's id.
        if known.is_empty() && self.refund_way() == RefundWay::Manual {
            return Ok(Vec::new());
        }
        let mut listed = self.listed(attempt, transaction).await?;
        for refund in &mut listed {
            let known = known.iter().find(|known| known.reference == refund.reference);
            refund.id = known.map(|known| known.id.clone());
        }
        Ok(listed)
    }

    async fn begin(&self, request: &AttemptRequest<'_>) -> Result<BeginOutcome, GatewayError> {
        let mut body = json!({
            "payerReference": request.customer.phone.as_deref().unwrap_or(request.payment.id.as_str()),
            "callbackURL": request.return_url,
            "amount": with_two_decimals(request.payment.amount),
            "currency": request.payment.currency.code(),
            "intent": "sale",
            "merchantInvoiceNumber": request.invoice,
        });
        if let Some(mode) = self.dialect.mode {
            body["mode"] = mode.into();
        }
        let reply = match self.call("create", self.dialect.create, &body).await? {
            Ok(reply) => reply,
            Err(rejection) => return Ok(BeginOutcome::Rejected(rejection)),
        };
        match (reply.payment_id, reply.bkash_url) {
            (Some(external_id), Some(customer_url)) => Ok(BeginOutcome::SendTo { external_id, customer_url }),
            _ => Err(self.client.unanswered("the new payment has no paymentID or no bkashURL")),
        }
    }

    async fn query(&self, payment: &Payment, attempt: &GatewayAttempt) -> Result<AttemptState, GatewayError> {
        let body = self.dialect.about(&attempt.external_id);
        match self.call("payment status", self.dialect.query, &body).await? {
            Ok(reply) => self.state(reply, payment, attempt),
            Err(rejection) if rejection.code == CANCELLED => Ok(AttemptState::Cancelled),
            Err(rejection) => Err(self.client.unanswered(&rejection.to_string())),
        }
    }

    async fn capture(&self, payment: &Payment, attempt: &GatewayAttempt) -> Result<CaptureOutcome, GatewayError> {
        let body = self.dialect.about(&attempt.external_id);
        let rejection = match self.call("execute", self.dialect.execute, &body).await? {
            Ok(reply) => return Ok(CaptureOutcome::State(self.state(reply, payment, attempt)?)),
            Err(rejection) => rejection,
        };
        tracing::info!(payment = %payment.id, code = rejection.code, message = rejection.message, "bKash did not execute");
        let ended = match rejection.code.as_str() {
            CANCELLED => AttemptState::Cancelled,
            code => AttemptState::Failed {
                why: Some(format!("{} ({code})", rejection.message)),
                code: Some(code.to_owned()),
            },
        };
        let is_over = |at: Timestamp| self.ambient.now().as_millis() - at.as_millis() >= CALL_MILLIS;
        let is_used_up = self.dialect.execute_uses_up
            && rejection.code == INVALID_STATE
            && attempt.capture_sent_at.is_some_and(is_over);
        Ok(match About::new(NotExecuted { rejection, is_used_up }, &attempt.external_id) {
            Some(no) => CaptureOutcome::Rejected { ended, rejection: no.final_rejection(no.rejection.clone()) },
            None => CaptureOutcome::Unknown,
        })
    }

    /// Only queries the payment: without an `execute` no money moves, and the caller sends none from here on.
    async fn cancel(&self, payment: &Payment, attempt: &GatewayAttempt) -> Result<AttemptState, GatewayError> {
        match self.query(payment, attempt).await? {
            AttemptState::Open | AttemptState::Approved => Ok(AttemptState::Cancelled),
            state => Ok(state),
        }
    }

    async fn notice(
        &self,
        _headers: &HeaderMap,
        body: &[u8],
        now: Timestamp,
    ) -> Result<Option<Notice<'_>>, NoticeError> {
        self.told(body, now).await
    }
}

#[cfg(test)]
mod tests;
