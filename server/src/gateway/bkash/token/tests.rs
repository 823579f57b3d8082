//! Tokens in virtual time, from a fake that blocks a credential after two requests in an hour.

use std::{
    collections::VecDeque,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use gateway_fakes::{Call, Program as _, bkash};
use parking_lot::Mutex;
use payments_core::Timestamp;
use reqwest::{Request, StatusCode};
use secrecy::ExposeSecret;
use serde_json::json;
use tokio::time::{Instant, advance, sleep};
use tokio_util::task::TaskTracker;

use super::super::{Bkash, DECLARED};
use crate::{
    ambient::Ambient,
    gateway::{
        call::{GatewayClient, NoResponse, Response, Transport},
        declaration::Parts,
        error::GatewayError,
        settings::{Credentials, Settings},
    },
    metrics::Metrics,
    store::{Store, layout::MemoryStore},
};

/// What happens to a call.
#[derive(Clone, Copy, PartialEq)]
enum Trouble {
    NoConnection,
    BadGateway,
    AnswerLost,
}

/// A clock that follows the virtual time and can be set.
struct Clock {
    begun: Instant,
    set_seconds: AtomicI64,
}

impl Ambient for Clock {
    fn now(&self) -> Timestamp {
        let elapsed = i64::try_from(self.begun.elapsed().as_millis()).unwrap();
        let millis = 1_767_225_600_000 + elapsed + 1000 * self.set_seconds.load(Ordering::Relaxed);
        Timestamp::from_millis(millis).unwrap()
    }

    fn fill_random(&self, bytes: &mut [u8]) {
        bytes.fill_with(|| fastrand::u8(..));
    }
}

/// The gateway, and the transport to it.
struct World {
    fake: Arc<bkash::Bkash>,
    store: Arc<Store>,
    clock: Arc<Clock>,
    troubles: Mutex<VecDeque<Trouble>>,
    /// The path of each request that was sent.
    sent: Mutex<Vec<String>>,
}

struct Way(Arc<World>);

#[async_trait]
impl Transport for Way {
    async fn send(&self, request: Request) -> Result<Response, NoResponse> {
        let world = &self.0;
        let no_response = |was_sent| NoResponse { what: "trouble".into(), was_sent };
        sleep(Duration::from_millis(100)).await;
        let trouble = world.troubles.lock().pop_front();
        if trouble == Some(Trouble::NoConnection) {
            return Err(no_response(false));
        }
        let path = request.url().path().rsplit("checkout").next().unwrap_or_default().to_owned();
        world.sent.lock().push(path);
        let body = request.body().and_then(reqwest::Body::as_bytes).unwrap_or_default();
        let call = Call {
            method: request.method().clone(),
            path: request.url().path().to_owned(),
            query: [].into(),
            headers: request.headers().clone(),
            body: bytes::Bytes::copy_from_slice(body),
        };
        if trouble == Some(Trouble::BadGateway) {
            return Ok(Response { status: StatusCode::BAD_GATEWAY, body: bytes::Bytes::new() });
        }
        // The gateway's own clock is right.
        let seconds = 1_767_225_600 + world.clock.begun.elapsed().as_secs();
        let answer = gateway_fakes::at(seconds, || world.fake.answer(&call, "https://bkash.example"));
        match trouble {
            Some(_) => Err(no_response(true)),
            None => Ok(Response { status: answer.status, body: answer.body.into() }),
        }
    }
}

impl World {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            fake: Arc::new(bkash::Bkash::new()),
            store: MemoryStore::default().into_store(),
            clock: Arc::new(Clock { begun: Instant::now(), set_seconds: AtomicI64::default() }),
            troubles: Mutex::default(),
            sent: Mutex::default(),
        })
    }

    /// The adapter of a server.
    fn adapter(self: &Arc<Self>) -> Bkash {
        self.adapter_for(bkash::USERNAME)
    }

    fn adapter_for(self: &Arc<Self>, username: &str) -> Bkash {
        let client = GatewayClient::by(
            &DECLARED,
            reqwest::Client::new(),
            Box::new(Way(Arc::clone(self))),
            Arc::default(),
            Metrics::new().gateways,
        );
        let (store, ambient) = (Arc::clone(&self.store), Arc::clone(&self.clock));
        Bkash::new(Parts { settings: settings(username), client, store, ambient, tasks: TaskTracker::new() })
    }

    fn meet(&self, troubles: &[Trouble]) {
        self.troubles.lock().extend(troubles);
    }

    /// The requests since the last call.
    fn sent(&self) -> Vec<String> {
        std::mem::take(&mut self.sent.lock())
    }

    fn set_clock(&self, seconds: i64) {
        self.clock.set_seconds.fetch_add(seconds, Ordering::Relaxed);
    }
}

fn settings(username: &str) -> Settings {
    let credentials = Credentials::read(|name| {
        let value = match name {
            "PAYMENTS_BKASH_BASE_URL" => "https://bkash.example/v1.2.0-beta",
            "PAYMENTS_BKASH_APP_KEY" => bkash::APP_KEY,
            "PAYMENTS_BKASH_APP_SECRET" => bkash::APP_SECRET,
            "PAYMENTS_BKASH_USERNAME" => username,
            "PAYMENTS_BKASH_PASSWORD" => bkash::PASSWORD,
            _ => return None,
        };
        Some(value.into())
    });
    credentials.unwrap().configured().next().unwrap().1.clone()
}

async fn minutes(minutes: u64) {
    advance(Duration::from_secs(60 * minutes)).await;
}

/// The token, if the gateway accepts it.
async fn works(bkash: &Bkash) -> Result<String, GatewayError> {
    let token = bkash.tokens.get().await?;
    match bkash.call("payment status", "/payment/status", &json!({"paymentID": "none"})).await? {
        Err(rejection) if rejection.code == "2002" => Ok(token.expose_secret().to_owned()),
        other => panic!("{other:?}"),
    }
}

/// Lets a renewal in the background end.
async fn settle() {
    sleep(Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_day_of_calls_needs_at_most_two_tokens_an_hour() {
    let world = World::new();
    let bkash = world.adapter();
    for minute in 0..24 * 60 {
        works(&bkash).await.unwrap_or_else(|error| panic!("minute {minute}: {error}"));
        minutes(1).await;
    }
    let tokens = world.sent().iter().filter(|path| path.starts_with("/token")).count();
    assert!((24..=30).contains(&tokens), "{tokens}");
}

#[tokio::test(start_paused = true)]
async fn a_refused_refresh_token_is_replaced_by_the_credentials() {
    let world = World::new();
    let bkash = world.adapter();
    works(&bkash).await.unwrap();
    world.fake.expire_refresh_tokens();
    // Nobody pays for a month, then somebody does.
    minutes(30 * 24 * 60).await;
    world.sent();
    works(&bkash).await.unwrap();
    assert_eq!(world.sent()[..2], ["/token/refresh", "/token/grant"]);

    // Both requests of this hour are used, so the credentials wait for the next hour, and the old token is used.
    world.fake.expire_refresh_tokens();
    for _ in 0..180 {
        works(&bkash).await.unwrap();
        minutes(1).await;
    }
    assert!(world.sent().iter().any(|path| path == "/token/grant"));
}

#[tokio::test(start_paused = true)]
async fn requests_that_were_not_sent_do_not_count() {
    let world = World::new();
    let bkash = world.adapter();
    world.meet(&[Trouble::NoConnection; 6]);
    for _ in 0..6 {
        assert!(bkash.tokens.get().await.is_err());
        sleep(Duration::from_secs(3)).await;
    }
    assert_eq!(world.sent().len(), 0);
    works(&bkash).await.unwrap();

    // A refresh token that was not sent does not count either, and an open circuit sends nothing.
    minutes(61).await;
    world.sent();
    world.meet(&[Trouble::NoConnection; 8]);
    for _ in 0..20 {
        let _ = bkash.tokens.get().await;
        sleep(Duration::from_millis(2_100)).await;
    }
    sleep(Duration::from_secs(6)).await;
    works(&bkash).await.unwrap();
    assert_eq!(world.sent()[0], "/token/refresh");
}

#[tokio::test(start_paused = true)]
async fn a_broken_gateway_does_not_use_up_both_requests_at_once() {
    let world = World::new();
    let bkash = world.adapter();
    world.meet(&[Trouble::BadGateway]);
    for _ in 0..20 {
        assert!(bkash.tokens.get().await.is_err());
        sleep(Duration::from_secs(10)).await;
    }
    assert_eq!(world.sent().len(), 1, "tries are spaced");
    minutes(2).await;
    works(&bkash).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn after_a_lost_answer_to_a_refresh_the_credentials_are_sent() {
    let world = World::new();
    let bkash = world.adapter();
    works(&bkash).await.unwrap();
    minutes(61).await;
    world.sent();
    world.meet(&[Trouble::AnswerLost]);
    assert!(bkash.tokens.get().await.is_err());
    minutes(6).await;
    works(&bkash).await.unwrap();
    assert_eq!(world.sent()[..2], ["/token/refresh", "/token/grant"]);
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_hangs_up_does_not_lose_the_token() {
    let world = World::new();
    let bkash = world.adapter();
    let tokens = Arc::clone(&bkash.tokens);
    let caller = tokio::spawn(async move { tokens.get().await.is_ok() });
    sleep(Duration::from_millis(50)).await;
    caller.abort();
    settle().await;
    works(&bkash).await.unwrap();
    assert_eq!(world.sent().len(), 2, "one request for a token, one call with it");
    assert_eq!(world.fake.token_calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_renewal_while_the_old_token_is_valid() {
    let world = World::new();
    let bkash = world.adapter();
    let first = works(&bkash).await.unwrap();
    minutes(52).await;
    let begun = Instant::now();
    assert_eq!(bkash.tokens.get().await.unwrap().expose_secret(), first);
    assert_eq!(begun.elapsed(), Duration::ZERO);
    settle().await;
    assert_ne!(works(&bkash).await.unwrap(), first);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_was_ahead_delays_nothing_for_longer_than_an_hour() {
    let world = World::new();
    world.set_clock(10 * 3600);
    let bkash = world.adapter();
    works(&bkash).await.unwrap();
    minutes(51).await;
    works(&bkash).await.unwrap();
    settle().await;
    world.set_clock(-10 * 3600);
    works(&bkash).await.unwrap();
    minutes(10).await;
    let mut waited = 0;
    while works(&bkash).await.is_err() {
        waited += 1;
        assert!(waited <= 60, "no token after an hour");
        minutes(1).await;
    }
    for minute in 0..180 {
        works(&bkash).await.unwrap_or_else(|error| panic!("minute {minute}: {error}"));
        minutes(1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn one_401_does_not_end_the_only_token() {
    let world = World::new();
    let bkash = world.adapter();
    let first = bkash.tokens.get().await.unwrap();
    bkash.tokens.refuse(&first);
    // No other token may be requested yet, so this one stays in use.
    assert_eq!(works(&bkash).await.unwrap(), first.expose_secret());
    minutes(6).await;
    assert_ne!(works(&bkash).await.unwrap(), first.expose_secret());

    // A token that bKash has really ended is replaced as soon as allowed.
    world.fake.revoke_tokens();
    assert!(works(&bkash).await.is_err());
    minutes(61).await;
    works(&bkash).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_token_is_used_only_for_the_account_that_it_was_granted_to() {
    let world = World::new();
    let bkash = world.adapter();
    let first = works(&bkash).await.unwrap();
    let other = world.adapter_for("another");
    world.sent();
    assert!(other.tokens.get().await.is_err(), "the fake does not know this user");
    assert_eq!(world.sent(), ["/token/grant"]);
    // This account counts its own failure, and a server that still uses the first account goes on.
    assert_eq!(works(&bkash).await.unwrap(), first);
    assert_eq!(works(&world.adapter()).await.unwrap(), first, "the token survives a restart");
}

#[tokio::test(start_paused = true)]
async fn two_servers_share_one_token() {
    let world = World::new();
    let servers = [world.adapter(), world.adapter()];
    let (one, other) = tokio::join!(works(&servers[0]), works(&servers[1]));
    assert_eq!(one.unwrap(), other.unwrap());
    assert_eq!(world.fake.token_calls(), 1);
}
