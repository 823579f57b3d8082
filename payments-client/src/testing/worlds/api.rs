//! The API of a world: payments, events and idempotency keys in memory.

use std::{
    collections::{HashMap, VecDeque},
    future::poll_fn,
    sync::{Mutex, MutexGuard, PoisonError},
    task::Poll,
    time::Duration,
};

use bytes::Bytes;
use payments_core::{
    CreatePayment, CreateRefund, Decision, Envelope, Environment, ErrorBody, ErrorCode, EventId, EventKind, EventPage,
    EventQuery, FieldError, Invalid, Message, NewRefund, Payment, PaymentId, PaymentPage, PaymentQuery, RawJson,
    RefundId, Slot, Timestamp, UnknownFields,
};
use reqwest::{
    StatusCode,
    header::{HeaderMap, HeaderValue},
};
use serde::Serialize;

use super::{
    super::FixedClock,
    history::{self, Fault, number, random_bytes},
    moves::Move,
};
use crate::{error::Kind, inbox::BoxError, retry::Failure};

/// How long a request takes.
const LATENCY: Duration = Duration::from_millis(20);
/// How long a key is stored, in milliseconds.
const KEY_LIFE: i64 = 24 * 60 * 60 * 1000;
const ACCOUNT: &str = r#"{"workspace":{"id":"ws_worlds","name":"Shop","slug":"shop","website":null,"status":"active"},
    "balance":{"bdt":0,"usd":0,"bdt_balance":0,"usd_balance":0},"volume":{"bdt":0,"usd":0,"total_payments":0}}"#;

type Refused = (ErrorCode, Message, Vec<FieldError>);
type Answer = Result<Bytes, Refused>;
type Heard = Result<(u16, HeaderMap, Bytes), (Failure, Kind)>;

#[derive(Debug)]
pub(crate) struct Api {
    clock: FixedClock,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    random: fastrand::Rng,
    /// Oldest first, each with its order.
    pub(super) payments: Vec<(Payment, Option<usize>)>,
    pub(super) events: Vec<Recorded>,
    /// When a key was stored, and the bodies of its request and its response.
    keys: HashMap<String, (Timestamp, Bytes, Bytes)>,
    /// How the next requests fail.
    pub(super) faults: VecDeque<Fault>,
    orders: usize,
    /// The step that happens, and the order that the shop is asked for.
    pub(super) present: (usize, Option<usize>),
    /// The first request that no world answers.
    pub(super) unknown_route: Option<String>,
}

/// An event, and the step that led to it.
#[derive(Debug, Clone)]
pub(super) struct Recorded {
    pub(super) id: EventId,
    pub(super) kind: EventKind,
    pub(super) body: RawJson,
    pub(super) of: usize,
    created_at: Timestamp,
    payment: PaymentId,
}

impl Api {
    pub(super) fn new(seed: u64, orders: usize, clock: FixedClock) -> Self {
        let state = State { random: fastrand::Rng::with_seed(!seed), orders, ..State::default() };
        Self { clock, state: Mutex::new(state) }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> Timestamp {
        let millis = i64::try_from(self.clock.since_1970().as_millis()).unwrap_or(i64::MAX);
        Timestamp::from_millis(millis).unwrap_or(Timestamp::UNIX_EPOCH)
    }

    /// Answers a request. The caller may drop it before the request arrives, and after it has run.
    pub(crate) async fn respond(&self, request: &reqwest::Request) -> Heard {
        pause().await;
        self.clock.advance(LATENCY);
        let fault = self.state().faults.pop_front();
        let heard = match fault {
            Some(Fault::NotConnected) => Err((Failure::Connect, Kind::Connect(None))),
            Some(Fault::Limited) => {
                let mut heard = refused(no(ErrorCode::RateLimited, "too many requests; retry after 2 s"));
                heard.1.insert("retry-after", HeaderValue::from_static("2"));
                Ok(heard)
            }
            Some(Fault::Unavailable) => Ok(refused(no(ErrorCode::ServiceUnavailable, "the server restarts"))),
            Some(Fault::Lost) => Err((Failure::Lost, Kind::Lost(None))),
            // The request has run. To the client, a body that ends early is a lost response.
            Some(Fault::HalfABody) => {
                self.run(request);
                Err((Failure::Lost, Kind::Lost(None)))
            }
            None => Ok(self.run(request)),
        };
        pause().await;
        heard
    }

    fn run(&self, request: &reqwest::Request) -> (u16, HeaderMap, Bytes) {
        let (url, now) = (request.url(), self.now());
        let body = request.body().and_then(reqwest::Body::as_bytes).unwrap_or_default();
        let path = url.path().strip_prefix("/api/v1").unwrap_or_default();
        let parameter = |name: &str| url.query_pairs().find(|(known, _)| known == name).map(|(_, it)| it.into_owned());
        let status = if request.method() == "POST" && path == "/payments" { 201 } else { 200 };
        let key = request.headers().get("idempotency-key").and_then(|key| key.to_str().ok());
        let key = key.map(|key| format!("{path} {key}"));
        let mut state = self.state();
        state.keys.retain(|_, (at, ..)| now.as_millis() - at.as_millis() < KEY_LIFE);
        match key.as_ref().and_then(|key| state.keys.get(key)) {
            Some((_, asked, answered)) if asked == body => {
                let mut headers = HeaderMap::new();
                headers.insert("idempotent-replayed", HeaderValue::from_static("true"));
                return (status, headers, answered.clone());
            }
            Some(_) => {
                let message = "this Idempotency-Key was used with another request";
                return refused(no(ErrorCode::IdempotencyKeyReused, message));
            }
            None => {}
        }
        match state.answer(request.method().as_str(), path, parameter, body, now) {
            Ok(answered) => {
                if let Some(key) = key {
                    state.keys.insert(key, (now, Bytes::copy_from_slice(body), answered.clone()));
                }
                (status, HeaderMap::new(), answered)
            }
            Err(error) => refused(error),
        }
    }
}

impl State {
    fn answer(
        &mut self,
        method: &str,
        path: &str,
        parameter: impl Fn(&str) -> Option<String>,
        body: &[u8],
        now: Timestamp,
    ) -> Answer {
        let segments: Vec<_> = path.split('/').skip(1).collect();
        match (method, segments.as_slice()) {
            ("GET", ["account"]) => Ok(ACCOUNT.into()),
            ("GET", ["payments"]) => json(&self.list(&PaymentQuery::from_query(parameter).map_err(invalid)?)?),
            ("GET", ["payments", id]) => json(&self.payments[self.find(id)?].0),
            ("GET", ["events"]) => json(&self.events(&EventQuery::from_query(parameter).map_err(invalid)?)?),
            ("GET", ["events", id]) => {
                let event = self.events.iter().find(|event| event.id.as_str() == *id);
                json(&event.ok_or(no(ErrorCode::EventNotFound, "no event of yours has this id"))?.body)
            }
            ("POST", ["payments"]) => {
                let params = CreatePayment::from_json(body, Environment::Live).map_err(invalid)?;
                self.create(params, now)
            }
            ("POST", ["payments", id, "refund"]) => {
                let (place, refund) = (self.find(id)?, CreateRefund::from_json(body).map_err(invalid)?);
                let new = NewRefund::accepted(RefundId::new(Slot::FIRST, now, random_bytes(&mut self.random)));
                let decision = refund
                    .cause(&self.payments[place].0, new)
                    .and_then(|cause| payments_core::decide(&self.payments[place].0, cause, now))
                    .map_err(|refusal| no(refusal.code(), refusal.to_string()))?;
                self.record(place, decision).map_err(internal)?;
                json(&self.payments[place].0)
            }
            _ => {
                self.unknown_route.get_or_insert(format!("{method} {}", path));
                Err(no(ErrorCode::RouteNotFound, "the API of a world does not have this route"))
            }
        }
    }

    fn find(&self, id: &str) -> Result<usize, Refused> {
        let place = self.payments.iter().position(|(payment, _)| payment.id.as_str() == id);
        place.ok_or(no(ErrorCode::PaymentNotFound, "no payment of yours has this id"))
    }

    fn create(&mut self, params: CreatePayment, now: Timestamp) -> Answer {
        let reference = params.merchant_transaction_id.clone();
        let is_used = |(payment, _): &(Payment, _)| Some(&payment.merchant_transaction_id) == reference.as_ref();
        if params.merchant_transaction_id_must_be_unique && self.payments.iter().any(is_used) {
            let message = "another payment has this merchantTransactionId";
            return Err(no(ErrorCode::MerchantTransactionIdUsed, message));
        }
        let order = (0..self.orders).find(|order| reference.as_ref() == Some(&number(*order)));
        let decision = history::create(params, now, random_bytes(&mut self.random));
        self.payments.push((decision.payment.clone(), order.or(self.present.1)));
        let place = self.payments.len() - 1;
        self.record(place, decision).map_err(internal)?;
        json(&self.payments[place].0)
    }

    /// Moves the last payment of an order, if there is one that allows it.
    pub(super) fn move_order(&mut self, order: usize, by: Move, now: Timestamp) -> Result<(), BoxError> {
        let place = self.payments.iter().rposition(|(_, of)| *of == Some(order));
        let Some(place) = place else { return Ok(()) };
        let decisions = by.decide(&self.payments[place].0, random_bytes(&mut self.random), now);
        decisions.into_iter().try_for_each(|decision| self.record(place, decision))
    }

    fn record(&mut self, place: usize, decision: Decision) -> Result<(), BoxError> {
        let payment = decision.payment;
        if let Some(kind) = decision.event {
            let created_at = payment.updated_at;
            let id = EventId::new(Slot::FIRST, created_at, random_bytes(&mut self.random));
            let data = RawJson::of(&payment)?;
            let body = RawJson::of(&Envelope { id: &id, event: kind.clone(), created_at, data: &data })?;
            let of = self.present.0;
            self.events.push(Recorded { id, kind, body, of, created_at, payment: payment.id.clone() });
        }
        self.payments[place].0 = payment;
        Ok(())
    }

    fn list(&self, query: &PaymentQuery) -> Result<PaymentPage<&Payment>, Refused> {
        if query.after.as_ref().is_some_and(|after| self.find(after.as_str()).is_err()) {
            let error = "is the id of no payment of yours; without it the list begins anew";
            return Err(invalid(Invalid::field("after", ErrorCode::FieldInvalid, error)));
        }
        let is = |asked: &Option<String>, value: Option<&String>| {
            asked.as_ref().is_none_or(|asked| value.is_some_and(|value| value.eq_ignore_ascii_case(asked)))
        };
        let matches = |payment: &&Payment| {
            query.status.as_ref().is_none_or(|status| payment.status == *status)
                && query.currency.as_ref().is_none_or(|currency| payment.currency == *currency)
                && query.created_after.is_none_or(|from| payment.created_at >= from)
                && query.created_before.is_none_or(|until| payment.created_at < until)
                && query.merchant_transaction_id.as_ref().is_none_or(|it| payment.merchant_transaction_id == *it)
                && is(&query.customer_email, payment.customer.email.as_ref())
                && is(&query.customer_phone, payment.customer.phone.as_ref())
                && query.search.as_ref().is_none_or(|text| {
                    let Payment { id, merchant_transaction_id, customer, gateway_transaction_id, .. } = payment;
                    let names = [&customer.email, &customer.phone, gateway_transaction_id].into_iter().flatten();
                    id.as_str() == text || merchant_transaction_id == text || names.into_iter().any(|name| name == text)
                })
        };
        let newest_first = self.payments.iter().rev().map(|(payment, _)| payment);
        let is_later = |payment: &&Payment| query.after.as_ref().is_none_or(|after| payment.id < *after);
        let matching: Vec<_> = newest_first.filter(is_later).filter(matches).collect();
        let (limit, page) = (query.page.limit(), query.page.page());
        let first = usize::try_from(query.page.skipped()).unwrap_or(usize::MAX);
        let items: Vec<_> = matching.iter().skip(first).take(limit as usize).copied().collect();
        if query.is_page() {
            return Ok(PaymentPage::numbered(items, matching.len() as u64, page, limit));
        }
        let next = items.last().map(|payment| payment.id.clone()).or_else(|| query.after.clone());
        let has_more = matching.len() > items.len();
        Ok(PaymentPage::part(items, limit, has_more, next))
    }

    fn events(&self, query: &EventQuery) -> Result<EventPage<&RawJson>, Refused> {
        let end = self.events.last().map(|event| event.id.clone());
        let unknown = UnknownFields::default();
        query.payment.as_ref().map(|payment| self.find(payment.as_str())).transpose()?;
        if query.is_latest {
            return Ok(EventPage { items: Vec::new(), has_more: false, next: end, unknown });
        }
        let first = match &query.after {
            None => 0,
            Some(after) => match self.events.iter().position(|event| event.id == *after) {
                Some(place) => place + 1,
                None => return Err(no(ErrorCode::CursorUnknown, "no event of yours has this id")),
            },
        };
        let matches = |event: &&Recorded| {
            query.includes(&event.kind, event.created_at)
                && query.payment.as_ref().is_none_or(|payment| event.payment == *payment)
        };
        let mut rest = self.events.iter().skip(first).filter(matches);
        let found: Vec<_> = rest.by_ref().take(query.limit()).collect();
        let has_more = rest.next().is_some();
        let next = if has_more { found.last().map(|event| event.id.clone()) } else { end };
        Ok(EventPage { items: found.into_iter().map(|event| &event.body).collect(), has_more, next, unknown })
    }
}

fn json(value: &impl Serialize) -> Answer {
    serde_json::to_vec(value).map(Bytes::from).map_err(|error| internal(error.into()))
}

fn invalid(invalid: Invalid) -> Refused {
    (invalid.code(), Message::Many(invalid.clone().into_sentences()), invalid.fields())
}

fn no(code: ErrorCode, message: impl Into<String>) -> Refused {
    (code, Message::One(message.into()), Vec::new())
}

fn internal(error: BoxError) -> Refused {
    no(ErrorCode::InternalError, error.to_string())
}

fn refused((code, message, fields): Refused) -> (u16, HeaderMap, Bytes) {
    let status_code = code.status().unwrap_or(500);
    let error = StatusCode::from_u16(status_code).ok().and_then(|status| status.canonical_reason());
    let error = error.unwrap_or_default().to_owned();
    let body = ErrorBody { status_code, message, error, code: Some(code), fields };
    (status_code, HeaderMap::new(), serde_json::to_vec(&body).unwrap_or_default().into())
}

/// An await at which the caller can be dropped.
async fn pause() {
    let mut is_over = false;
    poll_fn(|context| {
        if std::mem::replace(&mut is_over, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
