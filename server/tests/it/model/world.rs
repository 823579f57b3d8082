//! The server and its model.

use std::time::Duration;

use reqwest::Method;
use serde_json::Value;

use super::{
    merchant::{Answer, Merchant, Stored},
    steps::Who,
};
use crate::{engine::Engine, live::Live, receiver::Receiver, server::SANDBOX_KEY};

/// Steps wait for sessions that expire within this time, so that none expires during a request.
pub(super) const MARGIN: Duration = Duration::from_secs(2);

/// The server and its model.
pub(super) struct World {
    pub(super) live: Live,
    pub(super) receiver: Receiver,
    pub(super) http: reqwest::Client,
    /// The lifetime of a session.
    pub(super) session_ttl: Duration,
    pub(super) merchants: [Merchant; 2],
}

impl World {
    pub(super) async fn new(engine: Engine, session_ttl: Duration) -> Self {
        let live = Live::start_on(engine, "", &["--session-ttl", &session_ttl.as_secs().to_string()]).await;
        let merchant = |key: &str| Merchant {
            key: key.to_owned(),
            payments: Vec::new(),
            endpoints: Vec::new(),
            deliveries: Vec::new(),
            stored: Vec::new(),
        };
        let merchants = [merchant(SANDBOX_KEY), merchant(&live.key)];
        // Open connections would not survive a restart.
        let http = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().unwrap();
        let receiver = Receiver::ok().await;
        Self { live, receiver, http, session_ttl, merchants }
    }

    pub(super) fn of(&self, who: Who) -> &Merchant {
        &self.merchants[who as usize]
    }

    pub(super) fn of_mut(&mut self, who: Who) -> &mut Merchant {
        &mut self.merchants[who as usize]
    }

    /// Sends a request under `/api/v1`: to the checkout without a key, else with the merchant's key.
    pub(super) async fn ask(
        &self,
        who: Who,
        method: Method,
        path: &str,
        key: Option<&str>,
        body: Option<&str>,
    ) -> Answer {
        let mut request = self.http.request(method, format!("{}/api/v1{path}", self.live.server.url));
        if !path.starts_with("/checkout/") {
            request = request.bearer_auth(&self.of(who).key);
        }
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_owned());
        }
        let answer = request.send().await.unwrap();
        let is_replayed = answer.headers().get("idempotent-replayed").is_some_and(|value| value == "true");
        Answer { status: answer.status(), is_replayed, text: answer.text().await.unwrap() }
    }

    pub(super) async fn get(&self, who: Who, path: &str) -> Answer {
        self.ask(who, Method::GET, path, None, None).await
    }

    /// Sends a POST by the merchant. For an idempotency key used before, asserts the replay or refusal and returns `None`.
    pub(super) async fn post(&mut self, who: Who, path: &str, key: Option<&'static str>, body: &str) -> Option<Answer> {
        let answer = self.ask(who, Method::POST, path, key, Some(body)).await;
        let stored = self.of(who).stored.iter().find(|stored| Some(stored.key) == key && stored.path == path);
        match (stored, key) {
            (Some(stored), _) if stored.body == body => {
                assert_eq!((answer.status, answer.is_replayed, &answer.text), (stored.status, true, &stored.text));
                return None;
            }
            (Some(_), _) => {
                answer.assert_refused(422, "Idempotency-Key");
                return None;
            }
            (None, Some(key)) if answer.status.is_success() => {
                let (path, body, text) = (path.to_owned(), body.to_owned(), answer.text.clone());
                self.of_mut(who).stored.push(Stored { path, key, body, status: answer.status, text });
            }
            (None, _) => {}
        }
        assert!(!answer.is_replayed, "{path} was replayed without a stored answer");
        Some(answer)
    }

    /// Records that each subscribed endpoint must get this event.
    pub(super) fn expect(&mut self, who: Who, event: &'static str, data: &Value) {
        let Merchant { endpoints, deliveries, .. } = self.of_mut(who);
        let subscribed = endpoints.iter().filter(|endpoint| {
            !endpoint.is_removed
                && endpoint.is_active
                && endpoint.events.iter().any(|wanted| ["*", event].contains(wanted))
        });
        deliveries.extend(subscribed.map(|endpoint| endpoint.delivery(event, data.clone())));
    }
}
