//! Cards: Stripe Checkout Sessions.
//!
//! A session is paid if Stripe's API reports `payment_status: paid` with the payment's amount and currency. Stripe's signed
//! events are only a reason to query the session.

mod balance;
mod declared;
mod dispute;
mod error;
mod errors;
mod event;
mod list;
mod payout;
mod refund;
mod session;

use async_trait::async_trait;
use payments_core::{Payment, PaymentId, Timestamp};
use reqwest::{RequestBuilder, StatusCode};
use serde::de::DeserializeOwned;
use warp::http::HeaderMap;
use webhook_verify::{
    Failure, Secret, Verifier,
    replay::{Claim, MemoryClaims, ReplayGuard},
};

pub(super) use self::declared::DECLARED;
use self::{
    balance::BalanceTransaction,
    dispute::StripeDispute,
    error::{ErrorResponse, StripeError},
    refund::StripeRefund,
    session::{PaymentIntent, Session},
};
use super::{
    answer::{About, Names, Rejection},
    call::{GatewayClient, Response},
    contract::{
        AttemptRequest, AttemptState, BeginOutcome, Gateway, KnownRefund, ListPart, RefundOutcome, RefundRequest,
        StatementPart,
    },
    declaration::{Declaration, GatewayList},
    error::{GatewayError, GatewaySetupError},
    notice::{Notice, NoticeError},
    parts::Parts,
    settings::{Settings, variable},
};
use crate::domain::{GatewayAttempt, GatewayDispute, GatewayRefund};

const VERSION: &str = "2025-03-31.basil";
/// How many event ids are remembered to detect duplicates.
const REMEMBERED_EVENTS: usize = 10_000;

pub(super) struct Stripe {
    client: GatewayClient,
    settings: Settings,
    events: Verifier,
    seen: ReplayGuard<MemoryClaims>,
}

impl Stripe {
    pub(super) fn new(Parts { settings, client, .. }: Parts) -> Result<Self, GatewaySetupError> {
        let secret = Secret::new(settings.text("webhook_secret")).map_err(|error| GatewaySetupError::NoticeSecret {
            variable: variable(DECLARED.name.as_str(), "webhook_secret"),
            error,
        })?;
        Ok(Self {
            client,
            settings,
            events: Verifier::new(secret),
            seen: ReplayGuard::new(MemoryClaims::new(REMEMBERED_EVENTS)),
        })
    }

    fn url(&self, path: &str) -> String {
        format!("{}/v1/{path}", self.settings.text("base_url"))
    }

    fn post(&self, path: &str, idempotency_key: &str, form: &[(&str, &str)]) -> RequestBuilder {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        self.client
            .http
            .post(self.url(path))
            .header("content-type", "application/x-www-form-urlencoded")
            .header("idempotency-key", idempotency_key)
            .body(body)
    }

    /// Calls Stripe. The inner error is Stripe's own: Stripe read the request and did not carry it out under this key.
    async fn call<T: DeserializeOwned>(
        &self,
        what: &'static str,
        request: RequestBuilder,
    ) -> Result<Result<T, StripeError>, GatewayError> {
        let request = request.bearer_auth(self.settings.text("secret_key")).header("stripe-version", VERSION);
        let Response { status, body } = self.client.call(what, request).await?;
        if status.is_success() {
            let done = serde_json::from_slice(&body);
            return done.map(Ok).map_err(|_| self.client.unanswered("the response is not the expected JSON"));
        }
        let is_of_request = !matches!(
            status,
            // The key is wrong or lacks a permission.
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN
            // Too many requests, or the same request is in progress: the caller may retry.
            | StatusCode::TOO_MANY_REQUESTS | StatusCode::CONFLICT
        );
        match serde_json::from_slice(&body) {
            Ok(ErrorResponse { error }) if is_of_request => Ok(Err(error)),
            Ok(ErrorResponse { error }) => Err(self.client.unanswered(&format!("status {}: {error}", status.as_u16()))),
            Err(_) => Err(self.client.unanswered(&format!("status {}", status.as_u16()))),
        }
    }

    /// Retrieves an object of a kind, such as `refunds`.
    async fn retrieve<T: DeserializeOwned + Names>(
        &self,
        what: &'static str,
        kind: &str,
        id: &str,
    ) -> Result<About<T>, GatewayError> {
        let request = self.client.http.get(self.url(&format!("{kind}/{}", path_segment(id))));
        let object = self.call(what, request).await?.map_err(|error| self.client.unanswered(&error.to_string()))?;
        self.about(object, id)
    }

    fn rejection(&self, error: &StripeError) -> Rejection {
        self.client.rejection(error.code(), error.message.as_deref().unwrap_or_default())
    }

    /// A response about this object. A response about another object is no answer.
    fn about<T: Names>(&self, response: T, id: &str) -> Result<About<T>, GatewayError> {
        About::new(response, id).ok_or_else(|| self.client.unanswered("the response is about something else"))
    }

    async fn state(&self, session: About<Session>, payment: &Payment) -> Result<AttemptState, GatewayError> {
        match (session.status.as_deref(), session.payment_status.as_deref()) {
            (_, Some("paid")) => Ok(session.paid(payment)),
            (Some("open"), _) => Ok(AttemptState::Open),
            (Some("expired"), _) => Ok(AttemptState::Expired),
            // The customer has finished, but the money has not arrived: some payment methods take days.
            _ => {
                let Some(intent) = &session.payment_intent else { return Ok(AttemptState::Pending) };
                let intent =
                    self.retrieve::<PaymentIntent>("retrieve payment intent", "payment_intents", intent).await?;
                Ok(match intent.status.as_str() {
                    "requires_payment_method" | "canceled" => {
                        let error = intent.last_payment_error.as_ref();
                        AttemptState::Failed {
                            why: error.and_then(|error| error.message.clone()),
                            code: error.map(|error| error.reason().to_owned()),
                        }
                    }
                    _ => AttemptState::Pending,
                })
            }
        }
    }
}

/// The header with the signature of an event.
fn signature(headers: &HeaderMap) -> &[u8] {
    headers.get("stripe-signature").map_or(&b""[..], |value| value.as_bytes())
}

#[async_trait]
impl Gateway for Stripe {
    fn declared(&self) -> &'static Declaration {
        &DECLARED
    }

    /// Refuses a signature header that is malformed or whose time is not now: it fits no body.
    fn check_notice(&self, headers: &HeaderMap, now: Timestamp) -> Result<(), NoticeError> {
        match self.events.verify_at(signature(headers), b"", now.as_unix_seconds()) {
            Ok(_) | Err(Failure::SignatureMismatch) => Ok(()),
            Err(failure) => Err(failure.into()),
        }
    }

    async fn notice(
        &self,
        headers: &HeaderMap,
        body: &[u8],
        now: Timestamp,
    ) -> Result<Option<Notice<'_>>, NoticeError> {
        let verified = self.events.verify_at(signature(headers), body, now.as_unix_seconds())?;
        let Some(subject) = event::subject_of(verified.body()) else {
            tracing::debug!("a Stripe event is about nothing of this server");
            return Ok(None);
        };
        Ok(match self.seen.claim_at(&mut (), &verified, event::id_of, now.as_unix_seconds()).await {
            Ok(Claim::New(claimed)) => Some(Notice { subject, claimed: Some(claimed) }),
            Ok(Claim::Done | Claim::InProgress) => None,
            // With too many remembered events, accept a duplicate: an extra query does no harm.
            Err(_) => Some(Notice { subject, claimed: None }),
        })
    }

    async fn payment_of(&self, intent: &str) -> Result<Option<PaymentId>, GatewayError> {
        self.payment_of_intent(intent).await
    }

    async fn begin(&self, request: &AttemptRequest<'_>) -> Result<BeginOutcome, GatewayError> {
        let payment = request.payment;
        let name =
            payment.description.as_deref().filter(|text| !text.trim().is_empty()).unwrap_or(request.merchant_name);
        // Stripe limits a product's name to 250 characters.
        let name: String = name.chars().take(250).collect();
        let form = [
            ("mode", "payment"),
            ("client_reference_id", payment.id.as_str()),
            ("metadata[payment_id]", payment.id.as_str()),
            // Charges and lists of refunds then name the payment too.
            ("payment_intent_data[metadata][payment_id]", payment.id.as_str()),
            ("expires_at", &request.expires_at.as_unix_seconds().to_string()),
            ("line_items[0][quantity]", "1"),
            ("line_items[0][price_data][currency]", &payment.currency.code().to_ascii_lowercase()),
            ("line_items[0][price_data][unit_amount]", &payment.amount.as_minor().to_string()),
            ("line_items[0][price_data][product_data][name]", &name),
            ("success_url", &format!("{}?outcome=success&attempt={}", request.return_url, request.invoice)),
            ("cancel_url", &format!("{}?outcome=cancel&attempt={}", request.return_url, request.invoice)),
        ];
        let create = || self.call::<Session>("create session", self.post("checkout/sessions", request.invoice, &form));
        let created = match create().await {
            // The same idempotency key returns the lost response.
            Err(GatewayError::Unanswered { .. }) => create().await?,
            outcome => outcome?,
        };
        let session = match created {
            Ok(session) => session,
            Err(error) => return Ok(BeginOutcome::Rejected(self.rejection(&error))),
        };
        match session.url {
            Some(customer_url) => Ok(BeginOutcome::SendTo { external_id: session.id, customer_url }),
            None => Err(self.client.unanswered("the session has no url")),
        }
    }

    async fn query(&self, payment: &Payment, attempt: &GatewayAttempt) -> Result<AttemptState, GatewayError> {
        let session = self.retrieve("retrieve session", "checkout/sessions", &attempt.external_id).await?;
        self.state(session, payment).await
    }

    async fn cancel(&self, payment: &Payment, attempt: &GatewayAttempt) -> Result<AttemptState, GatewayError> {
        let path = format!("checkout/sessions/{}/expire", path_segment(&attempt.external_id));
        let request = self.post(&path, &format!("{}-expire", attempt.invoice), &[]);
        match self.call::<Session>("expire session", request).await? {
            Ok(session) => self.state(self.about(session, &attempt.external_id)?, payment).await,
            // The session may no longer be open; its state tells how it ended.
            Err(_) => self.query(payment, attempt).await,
        }
    }

    async fn refund(
        &self,
        payment: &Payment,
        attempt: &GatewayAttempt,
        refund: &RefundRequest<'_>,
    ) -> Result<RefundOutcome, GatewayError> {
        let intent = self.transaction_of(payment, attempt).await?;
        // Stripe drops idempotency keys after a day, so first look for an earlier request.
        if refund.is_repeated
            && let Some(known) = self.refund_of(&intent, refund.id.as_str()).await?
        {
            return self.outcome(&known);
        }
        let amount = refund.amount.map(|amount| amount.as_minor().to_string());
        let mut form = vec![
            ("payment_intent", intent.as_str()),
            ("metadata[payment_id]", payment.id.as_str()),
            ("metadata[refund_id]", refund.id.as_str()),
        ];
        // Stripe's own `reason` has three fixed values; metadata takes free text of at most 500 characters.
        let reason: String = refund.reason.unwrap_or_default().chars().take(500).collect();
        if !reason.is_empty() {
            form.push(("metadata[reason]", &reason));
        }
        if let Some(amount) = &amount {
            form.push(("amount", amount));
        }
        let error = match self.call::<StripeRefund>("refund", self.post("refunds", refund.id.as_str(), &form)).await? {
            Ok(made) => return self.outcome(&self.about(made, refund.id.as_str())?),
            Err(error) => error,
        };
        let words = error.to_string();
        let error = About::new(error, &intent).ok_or_else(|| self.client.unanswered(&words))?;
        // An earlier request for this refund may have refunded the charge.
        match self.refund_of(&intent, refund.id.as_str()).await? {
            Some(known) => self.outcome(&known),
            None => Ok(RefundOutcome::Rejected(error.final_rejection(self.rejection(&error)))),
        }
    }

    async fn refunds(
        &self,
        attempt: &GatewayAttempt,
        _known: &[KnownRefund<'_>],
    ) -> Result<Vec<GatewayRefund>, GatewayError> {
        let Some(intent) = &attempt.transaction else { return Ok(Vec::new()) };
        let refunds = self.all_of::<StripeRefund>(intent).await?;
        Ok(refunds.iter().filter_map(StripeRefund::read).collect())
    }

    async fn disputes(&self, attempt: &GatewayAttempt) -> Result<Vec<GatewayDispute>, GatewayError> {
        let Some(intent) = &attempt.transaction else { return Ok(Vec::new()) };
        let disputes = self.all_of::<StripeDispute>(intent).await?;
        Ok(disputes.iter().map(StripeDispute::read).collect())
    }

    async fn list(&self, list: GatewayList, since: Timestamp, after: Option<&str>) -> Result<ListPart, GatewayError> {
        match list {
            GatewayList::Refunds => self.part::<StripeRefund>(since, after).await,
            GatewayList::Disputes => self.part::<StripeDispute>(since, after).await,
            GatewayList::Costs => self.part::<BalanceTransaction>(since, after).await,
        }
    }

    async fn statement(&self, since: Timestamp, after: Option<&str>) -> Result<Option<StatementPart>, GatewayError> {
        Ok(Some(self.payout_rows(since, after).await?))
    }
}

/// Encodes a Stripe id as one segment of a path.
fn path_segment(id: &str) -> String {
    url::form_urlencoded::byte_serialize(id.as_bytes()).collect()
}
