//! The adapter and a fake in virtual time.

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
use tokio::time::{Instant, sleep};
use tokio_util::task::TaskTracker;

use super::super::{Bkash, DECLARED};
use crate::{
    ambient::Ambient,
    gateway::{
        call::{GatewayClient, NoResponse, Response, Transport},
        parts::Parts,
        settings::{Credentials, Settings},
    },
    metrics::Metrics,
    store::{Store, layout::MemoryStore},
};

/// What happens to a call.
#[derive(Clone, Copy, PartialEq)]
pub(in crate::gateway::bkash) enum Trouble {
    NoConnection,
    BadGateway,
    AnswerLost,
}

/// A clock that follows the virtual time and can be set.
pub(in crate::gateway::bkash) struct Clock {
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
pub(in crate::gateway::bkash) struct World {
    pub(in crate::gateway::bkash) fake: Arc<bkash::Bkash>,
    store: Arc<Store>,
    pub(in crate::gateway::bkash) clock: Arc<Clock>,
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
    pub(in crate::gateway::bkash) fn new() -> Arc<Self> {
        Arc::new(Self {
            fake: Arc::new(bkash::Bkash::new()),
            store: MemoryStore::default().into_store(),
            clock: Arc::new(Clock { begun: Instant::now(), set_seconds: AtomicI64::default() }),
            troubles: Mutex::default(),
            sent: Mutex::default(),
        })
    }

    /// The adapter of a server.
    pub(in crate::gateway::bkash) fn adapter(self: &Arc<Self>) -> Bkash {
        self.adapter_of("v1.2.0-beta")
    }

    pub(in crate::gateway::bkash) fn adapter_of(self: &Arc<Self>, version: &str) -> Bkash {
        self.adapter_for(version, bkash::USERNAME)
    }

    pub(in crate::gateway::bkash) fn adapter_for(self: &Arc<Self>, version: &str, username: &str) -> Bkash {
        let client = GatewayClient::by(
            &DECLARED,
            reqwest::Client::new(),
            Box::new(Way(Arc::clone(self))),
            Arc::default(),
            Metrics::new().gateways,
        );
        let (store, ambient) = (Arc::clone(&self.store), Arc::clone(&self.clock));
        Bkash::new(Parts { settings: settings(version, username), client, store, ambient, tasks: TaskTracker::new() })
    }

    pub(in crate::gateway::bkash) fn meet(&self, troubles: &[Trouble]) {
        self.troubles.lock().extend(troubles);
    }

    /// The requests since the last call.
    pub(in crate::gateway::bkash) fn sent(&self) -> Vec<String> {
        std::mem::take(&mut self.sent.lock())
    }

    pub(in crate::gateway::bkash) fn set_clock(&self, seconds: i64) {
        self.clock.set_seconds.fetch_add(seconds, Ordering::Relaxed);
    }
}

fn settings(version: &str, username: &str) -> Settings {
    let base_url = format!("https://bkash.example/{version}");
    let credentials = Credentials::read(|name| {
        let value = match name {
            "PAYMENTS_BKASH_BASE_URL" => &base_url,
            "PAYMENTS_BKASH_VERSION" => version,
            "PAYMENTS_BKASH_REFUNDS" => "by_api",
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
