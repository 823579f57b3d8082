//! Coinpost, a gateway that does not exist. Only tests have it. It shows that the code of a gateway is only its folder
//! and one line of the registry. CONTRIBUTING.md uses it as the example.
//!
//! An order is paid if Coinpost, asked for our reference, calls it `taken` in the payment's amount and currency. Its signed
//! notices are only a reason to ask. A refund is accepted at once and ends later.

mod declared;
mod refund;
mod side;
mod tests;

use async_trait::async_trait;
use aws_lc_rs::hmac;
use payments_core::{Amount, Payment, Timestamp};
use reqwest::Method;
use serde::{Deserialize, de::DeserializeOwned};
use serde_json::{Value, json};
use warp::http::HeaderMap;

pub(super) use self::declared::DECLARED;
use super::{
    answer::{About, Names},
    call::{GatewayClient, Response, sensitive},
    contract::{
        AttemptRequest, AttemptState, BeginOutcome, Gateway, KnownRefund, Receipt, RefundOutcome, RefundRequest,
        is_amount,
    },
    declaration::Declaration,
    error::GatewayError,
    notice::{Notice, NoticeError, NoticeSubject, PaymentOf},
    parts::Parts,
    settings::Settings,
};
use crate::domain::{GatewayAttempt, GatewayRefund};

pub(super) struct Invented {
    client: GatewayClient,
    settings: Settings,
}

#[derive(Debug, Deserialize)]
struct Order {
    reference: String,
    state: String,
    minor: u64,
    currency: String,
    page: Option<String>,
    transaction: Option<String>,
    why: Option<String>,
}

impl Names for Order {
    fn names(&self, reference: &str) -> bool {
        self.reference == reference
    }
}

impl Invented {
    pub(super) fn new(Parts { settings, client, .. }: Parts) -> Self {
        Self { client, settings }
    }

    async fn call<T: DeserializeOwned>(
        &self,
        what: &'static str,
        method: Method,
        path: &str,
        body: &Value,
    ) -> Result<T, GatewayError> {
        let request = self.client.http.request(method, format!("{}{path}", self.settings.text("base_url")));
        let request = request.header("authorization", sensitive(&self.settings.secret("api_key")));
        let Response { status, body } = self.client.call(what, request.body(body.to_string())).await?;
        if !status.is_success() {
            return Err(self.client.unanswered(&format!("status {}", status.as_u16())));
        }
        serde_json::from_slice(&body).map_err(|_| self.client.unanswered("the response is not the expected JSON"))
    }

    /// A response about what was asked. A response about something else is no answer.
    fn about<T: Names>(&self, response: T, reference: &str) -> Result<About<T>, GatewayError> {
        About::new(response, reference).ok_or_else(|| self.client.unanswered("the response is about something else"))
    }

    fn state(&self, order: Order, payment: &Payment, attempt: &GatewayAttempt) -> Result<AttemptState, GatewayError> {
        let order = self.about(order, &attempt.invoice)?;
        let fits = is_amount(payment, &order.currency, Some(Amount::from_minor(order.minor)));
        Ok(match (&*order.state, &order.transaction) {
            ("open", _) => AttemptState::Open,
            ("taken", Some(transaction)) if fits => {
                AttemptState::Paid(Receipt { transaction: transaction.clone(), ..Receipt::default() })
            }
            ("taken", transaction) => AttemptState::Discrepancy {
                what: format!(
                    "Coinpost took {} {} in {transaction:?}",
                    Amount::from_minor(order.minor),
                    order.currency
                ),
                transaction: transaction.clone(),
            },
            ("declined", _) => AttemptState::Failed { why: None, code: order.why.clone() },
            ("closed", _) => AttemptState::Cancelled,
            _ => return Err(self.client.unanswered("the order has no known state")),
        })
    }
}

#[async_trait]
impl Gateway for Invented {
    fn declared(&self) -> &'static Declaration {
        &DECLARED
    }

    async fn begin(&self, request: &AttemptRequest<'_>) -> Result<BeginOutcome, GatewayError> {
        let AttemptRequest { payment, invoice, customer, return_url, .. } = request;
        let body = json!({"reference": invoice, "minor": payment.amount.as_minor(), "currency": payment.currency.code(),
            "email": customer.email, "back": return_url});
        let order: Order = self.call("create order", Method::POST, "/orders", &body).await?;
        let order = self.about(order, invoice)?;
        Ok(match &order.page {
            Some(page) => BeginOutcome::SendTo { external_id: order.reference.clone(), customer_url: page.clone() },
            None => {
                BeginOutcome::Rejected(self.client.rejection(&*order.state, order.why.as_deref().unwrap_or_default()))
            }
        })
    }

    async fn query(&self, payment: &Payment, attempt: &GatewayAttempt) -> Result<AttemptState, GatewayError> {
        let path = format!("/orders/{}", attempt.invoice);
        self.state(self.call("query order", Method::GET, &path, &Value::Null).await?, payment, attempt)
    }

    async fn cancel(&self, payment: &Payment, attempt: &GatewayAttempt) -> Result<AttemptState, GatewayError> {
        let path = format!("/orders/{}/close", attempt.invoice);
        self.state(self.call("close order", Method::POST, &path, &Value::Null).await?, payment, attempt)
    }

    async fn refund(
        &self,
        payment: &Payment,
        attempt: &GatewayAttempt,
        refund: &RefundRequest<'_>,
    ) -> Result<RefundOutcome, GatewayError> {
        self.send_refund(payment, attempt, refund).await
    }

    async fn refunds(
        &self,
        attempt: &GatewayAttempt,
        known: &[KnownRefund<'_>],
    ) -> Result<Vec<GatewayRefund>, GatewayError> {
        self.all_refunds(attempt, known).await
    }

    async fn notice(
        &self,
        _headers: &HeaderMap,
        body: &[u8],
        _now: Timestamp,
    ) -> Result<Option<Notice<'_>>, NoticeError> {
        let find = |name: &str| url::form_urlencoded::parse(body).find(|(it, _)| it == name).map(|(_, it)| it);
        let [about, order, sign] = ["about", "order", "sign"].map(|name| find(name).unwrap_or_default());
        let key = hmac::Key::new(hmac::HMAC_SHA256, self.settings.text("notice_key").as_bytes());
        let sign = hex::decode(&*sign).map_err(|_| NoticeError::Unsigned("sign is not hexadecimal"))?;
        hmac::verify(&key, format!("{about}.{order}").as_bytes(), &sign)
            .map_err(|_| NoticeError::Unsigned("the sign does not fit"))?;
        let of = PaymentOf::Reference(order.into_owned());
        let subject = match &*about {
            "order" => NoticeSubject::Attempt(of),
            "refund" => NoticeSubject::Refunds { of, has_failed: false },
            _ => return Ok(None),
        };
        Ok(Some(Notice { subject, claimed: None }))
    }
}
