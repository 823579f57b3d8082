//! A payment by Coinpost, through the service as it is.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use payments_core::{
    CreatePayment, CreateRefund, Currency, EventQuery, FeeRate, Money, Pay, Payment, PaymentId, RefundStatus, Timestamp,
};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};
use tokio_util::task::TaskTracker;
use warp::http::HeaderMap;

use super::{
    DECLARED,
    side::{API_KEY, NOTICE_KEY, Post, Side, notice},
};
use crate::{
    ambient::Ambient,
    delivery::{Sender, TargetPolicy},
    domain::{ApiKey, Scope},
    gateway::{Credentials, Gateways, Hint, NoticeError, Transport, settings::CredentialError},
    metrics::Metrics,
    process::descriptors::Shares,
    service::{Answer, Caller, IdempotentRequest, Paying, PayoutSettings, Result, Service, ServiceError, Settings},
    store::layout::MemoryStore,
};

fn read(pairs: &[(&str, &str)]) -> Result<Credentials, CredentialError> {
    let find = |name: &str| pairs.iter().find(|(key, _)| format!("PAYMENTS_COINPOST_{key}") == name);
    Credentials::read(|name| find(name).map(|(_, value)| (*value).into()))
}

const KEYS: [(&str, &str); 2] = [("API_KEY", API_KEY), ("NOTICE_KEY", NOTICE_KEY)];

/// A clock that follows the virtual time.
struct Clock(Instant);

impl Ambient for Clock {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(1_767_225_600_000 + i64::try_from(self.0.elapsed().as_millis()).unwrap()).unwrap()
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        bytes.fill_with(|| fastrand::u8(..));
    }
}

/// A server with Coinpost alone, and a merchant's key.
struct World {
    side: Arc<Side>,
    service: Arc<Service>,
    caller: Caller,
}

impl World {
    fn new() -> Self {
        let (side, metrics, tasks) = (Arc::<Side>::default(), Metrics::new(), TaskTracker::new());
        let ambient: Arc<dyn Ambient> = Arc::new(Clock(Instant::now()));
        let (store, targets) = (MemoryStore::default().into_store(), TargetPolicy::new(false));
        let transport = |_| -> Box<dyn Transport> { Box::new(Post(Arc::clone(&side))) };
        let (credentials, http) = (read(&KEYS).unwrap(), reqwest::Client::new());
        let gateways =
            Gateways::by(&credentials, &store, &ambient, &http, transport, &metrics.gateways, &tasks).unwrap();
        let sender = Arc::new(Sender::new(Arc::clone(&ambient), targets.clone(), "Test", Shares::default()).unwrap());
        let settings = Settings {
            base_url: "https://pay.example".into(),
            session_ttl_seconds: 3600,
            delivery_body_days: None,
            audit_days: None,
            fee_rate: FeeRate::from_basis_points(0).unwrap(),
            gateway_timeout: Duration::from_secs(5),
            targets,
            has_sandbox: false,
            is_local: false,
            max_webhook_endpoints: 100,
            merchants_bear_costs: false,
            disputes_return_fee: false,
            payouts: PayoutSettings::default(),
            retention: crate::service::Retention::default(),
        };
        let service = Arc::new(Service::new(store, ambient, sender, gateways, settings, &metrics, tasks));
        let key: ApiKey = serde_json::from_value(json!({"id": "key_1", "workspace_id": "ws_1",
            "scope": {"developer_id": "dev_1", "environment": "live"}, "last4": "cafe",
            "created_at": "2026-01-01T00:00:00.000Z", "revoked_at": null}))
        .unwrap();
        tokio::spawn(Arc::clone(&service).reconcile());
        Self { side, service, caller: Arc::new(key) }
    }

    fn scope(&self) -> &Scope {
        &self.caller.scope
    }

    async fn create(&self, money: Money) -> Payment {
        let params = CreatePayment::of(money).success_url("https://a.example/").cancel_url("https://a.example/");
        payment(&self.service.create_payment(&self.caller, params, None).await.unwrap())
    }

    async fn pay(&self, id: &PaymentId, body: &Value) -> Result<String> {
        match self.service.pay(id.as_str(), &Pay::from_json(body.to_string().as_bytes()).unwrap()).await? {
            Paying::Gateway { redirect_url } => Ok(redirect_url),
            Paying::Simulated(_) => panic!("a live payment is not simulated"),
        }
    }

    /// A payment that is paid, and our reference at Coinpost.
    async fn paid(&self) -> (PaymentId, String) {
        let id = self.create(Money::dollars(30)).await.id;
        let page =
            self.pay(&id, &json!({"paymentMethod": "coin", "customerEmail": "karim@example.com"})).await.unwrap();
        let order = page.rsplit('/').next().unwrap().to_owned();
        self.side.take(&order);
        self.notify("order", &order).await;
        (id, order)
    }

    /// A notice comes, and the workers do what follows.
    async fn notify(&self, about: &str, order: &str) {
        self.service.take_notice(&DECLARED, &HeaderMap::new(), &notice(about, order, NOTICE_KEY)).await.unwrap();
        sleep(Duration::from_secs(2)).await;
    }

    async fn refund(&self, id: &PaymentId, dollars: u32, key: &str) -> Result<Payment> {
        let params = CreateRefund { amount: Some(Money::dollars(dollars).amount), reason: None };
        let body = Bytes::from(dollars.to_string());
        let request = IdempotentRequest::new(self.scope(), "POST", "/api/v1/payments/1/refund", key, &body);
        let answer = self.service.refund_payment(&self.caller, id.as_str(), params, Some(&request), None).await?;
        Ok(payment(&answer))
    }

    async fn payment(&self, id: &PaymentId) -> Payment {
        serde_json::from_str(&self.service.payment(&self.caller, id.as_str()).await.unwrap().0).unwrap()
    }

    async fn refunds(&self, id: &PaymentId) -> Vec<RefundStatus> {
        self.payment(id).await.refunds.iter().map(|it| it.status.clone()).collect()
    }

    /// The kinds of a payment's events, oldest first.
    async fn events(&self, id: &PaymentId) -> Vec<String> {
        let mut query = EventQuery::default();
        query.payment = Some(id.clone());
        let events = self.service.events(&self.caller, &query).await.unwrap().items;
        let kind =
            |event: &payments_core::RawJson| serde_json::from_str::<Value>(event.as_str()).unwrap()["event"].clone();
        events.iter().map(|event| kind(event).as_str().unwrap().to_owned()).collect()
    }
}

fn payment(answer: &Answer) -> Payment {
    serde_json::from_str(answer.body.as_str()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_customer_pays_by_coins_and_only_a_signed_notice_makes_the_server_ask() {
    let world = World::new();
    let id = world.create(Money::dollars(30)).await.id;
    let refused = world.pay(&id, &json!({"paymentMethod": "coin"})).await.unwrap_err();
    assert_eq!(refused.to_string(), "customerEmail must be given to pay by coin");
    assert_eq!(world.side.calls(), [""; 0]);

    let page = world.pay(&id, &json!({"paymentMethod": "coin", "customerEmail": "karim@example.com"})).await.unwrap();
    let order = page.strip_prefix("https://coinpost.invalid/").unwrap();
    assert!(order.len() == 20 && order.bytes().all(|byte| byte.is_ascii_digit()), "{order}");
    let known = world.side.order(order);
    assert_eq!((&known["email"], &known["minor"]), (&json!("karim@example.com"), &json!(3_000)));
    assert_eq!(known["back"], format!("https://pay.example/gateways/coinpost/return/{id}"));
    world.side.take(order);
    assert_eq!(world.side.calls(), ["POST /orders"]);

    let forged = notice("order", order, "written-with-vinegar");
    let refused = world.service.take_notice(&DECLARED, &HeaderMap::new(), &forged).await;
    assert!(matches!(refused, Err(ServiceError::Notice(NoticeError::Unsigned(_)))), "{refused:?}");
    world.notify("order", "00000000000000000000").await;
    assert_eq!(world.side.calls(), [""; 0]);
    world.notify("order", order).await;
    assert_eq!(world.side.calls(), [format!("GET /orders/{order}")]);
    assert_eq!(world.payment(&id).await.raw_status.as_str(), "paid");
    assert_eq!(world.events(&id).await, ["payment.created", "payment.completed"]);
}

#[tokio::test(start_paused = true)]
async fn a_customer_who_returns_without_having_paid_leaves_the_order() {
    let world = World::new();
    let id = world.create(Money::dollars(30)).await.id;
    let page = world.pay(&id, &json!({"paymentMethod": "card", "customerEmail": "karim@example.com"})).await.unwrap();
    let order = page.rsplit('/').next().unwrap();
    let back = DECLARED.returns.read(|name| (name == "end").then(|| "left".to_owned()));
    assert_eq!(back.hint, Hint::Cancelled);
    assert_eq!(world.service.confirm_return(id.clone(), back).await.unwrap(), None);
    assert_eq!(world.side.order(order)["state"], "closed");
    assert_eq!(world.payment(&id).await.raw_status.as_str(), "cancelled");
}

#[tokio::test(start_paused = true)]
async fn a_customer_and_the_merchant_read_what_the_gateway_s_code_means() {
    let world = World::new();
    let id = world.create(Money::dollars(30)).await.id;
    let body = json!({"paymentMethod": "coin", "customerEmail": "karim@example.com"});
    let page = world.pay(&id, &body).await.unwrap();
    let order = page.rsplit('/').next().unwrap();
    assert_eq!(world.service.checkout_view(id.as_str()).await.unwrap().why, None);
    world.side.decline(order);
    world.notify("order", order).await;
    assert_eq!(world.payment(&id).await.raw_status.as_str(), "pending");
    let [english, bangla] = world.service.checkout_view(id.as_str()).await.unwrap().why.unwrap();
    assert_eq!((english, bangla), ("There was nothing in the envelope.", "খামে কিছু ছিল না।"));
    let timeline = world.service.timeline(&world.caller, id.as_str()).await.unwrap();
    let words = format!("Coinpost says that this attempt failed: {english}");
    assert!(timeline.0.items.iter().any(|entry| entry.description == words), "{:?}", timeline.0);
    // The next attempt has not failed.
    let page = world.pay(&id, &body).await.unwrap();
    assert_eq!(world.service.checkout_view(id.as_str()).await.unwrap().why, None);
    let order = page.rsplit('/').next().unwrap();
    world.side.take(order);
    world.notify("order", order).await;
    assert_eq!(world.service.checkout_view(id.as_str()).await.unwrap().why, None);
}

#[tokio::test(start_paused = true)]
async fn a_person_sends_the_refunds_beyond_the_most_that_the_gateway_makes() {
    let world = World::new();
    let (id, _) = world.paid().await;
    for key in ["a", "b", "c"] {
        world.refund(&id, 5, key).await.unwrap();
    }
    let refunds = world.payment(&id).await.refunds;
    let by_hand: Vec<_> = refunds.iter().map(|it| it.requires_manual_settlement).collect();
    assert_eq!(by_hand, [false, false, true]);
    let sent = world.side.calls().into_iter().filter(|call| call == "POST /refunds").count();
    assert_eq!(sent, DECLARED.most_refunds.unwrap());
}

#[tokio::test(start_paused = true)]
async fn refunds_of_parts_are_accepted_and_end_later_by_a_notice_or_by_a_question() {
    use RefundStatus::{Failed, Pending, Succeeded};
    let world = World::new();
    let (id, order) = world.paid().await;
    let accepted = world.refund(&id, 10, "a").await.unwrap();
    assert_eq!((&accepted.refunds[0].status, accepted.amount_refunded()), (&Pending, Money::dollars(10).amount));
    world.refund(&id, 20, "b").await.unwrap();
    assert_eq!(world.payment(&id).await.raw_status.as_str(), "refunded");

    world.side.end_refund(0, "sent");
    world.notify("refund", &order).await;
    assert_eq!(world.refunds(&id).await, [Succeeded, Pending]);
    world.side.end_refund(1, "lost");
    world.notify("refund", &order).await;
    assert_eq!(world.refunds(&id).await, [Succeeded, Failed]);
    let payment = world.payment(&id).await;
    assert_eq!(payment.refunds[1].failure_reason.as_deref(), Some("the envelope was empty"));
    assert_eq!(payment.amount_refunded(), Money::dollars(10).amount);

    // No notice comes of the next one.
    world.refund(&id, 20, "c").await.unwrap();
    world.side.end_refund(2, "sent");
    sleep(Duration::from_secs(90)).await;
    assert_eq!(world.refunds(&id).await, [Succeeded, Failed, Succeeded]);
    let kinds = world.events(&id).await;
    let failures = kinds.iter().filter(|kind| *kind == "payment.refund_failed").count();
    assert_eq!((failures, kinds.last().map(String::as_str)), (1, Some("payment.refunded")), "{kinds:?}");
}

#[test]
fn its_settings_are_all_there_or_named_in_an_error() {
    let none = read(&[]).unwrap();
    assert!(none.configured().next().is_none());
    for (given, variable, says) in [
        (
            &[KEYS[0]][..],
            "NOTICE_KEY",
            "is not set, but other credentials of [coinpost] are; set api_key and notice_key",
        ),
        (&[KEYS[0], ("NOTICE_KEY", "too-short")], "NOTICE_KEY", "must have at least 16 characters"),
        (&[KEYS[0], KEYS[1], ("ACCOUNT", "sandbox")], "ACCOUNT", "must be one of merchant, trial"),
        (&[KEYS[0], KEYS[1], ("BASE_URL", "http://coinpost.invalid")], "BASE_URL", "must be an absolute https URL"),
    ] {
        let error = read(given).unwrap_err();
        assert_eq!(error.variable, format!("PAYMENTS_COINPOST_{variable}"));
        assert!(error.what.starts_with(says), "{error}");
    }
    let modes = |more: &[(&str, &str)]| read(&[&KEYS, more].concat()).unwrap().modes();
    assert_eq!(modes(&[]), ["Coinpost for USD: live"]);
    assert_eq!(modes(&[("ACCOUNT", "trial")]), ["Coinpost for USD: a trial account"]);
    assert_eq!(modes(&[("BASE_URL", "http://127.0.0.1:9")]), ["Coinpost for USD: at http://127.0.0.1:9"]);
    assert_eq!(DECLARED.currencies(), [Currency::Usd]);
}
