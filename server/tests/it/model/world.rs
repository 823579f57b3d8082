//! The server and the model of it.

use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::Value;

use super::{
    merchant::{Kept, Merchant, Owed, Told},
    steps::Who,
};
use crate::{
    live::Live,
    receiver::{Manner, Receiver},
    server::SANDBOX_KEY,
};

/// A session that ends within this time is waited for, so that no request is under way while one ends.
pub(super) const MARGIN: Duration = Duration::from_secs(2);

/// The server and the model of it.
pub(super) struct World {
    pub(super) live: Live,
    pub(super) receiver: Receiver,
    pub(super) http: reqwest::Client,
    /// How long a session lives.
    pub(super) life: Duration,
    pub(super) merchants: [Merchant; 2],
}

impl World {
    pub(super) async fn new(life: Duration) -> Self {
        let live = Live::start_with("", &["--session-ttl", &life.as_secs().to_string()]).await;
        let merchant = |key: &str| Merchant {
            key: key.to_owned(),
            payments: Vec::new(),
            endpoints: Vec::new(),
            owed: Vec::new(),
            kept: Vec::new(),
        };
        let merchants = [merchant(SANDBOX_KEY), merchant(&live.key)];
        // A connection that is kept would not survive the server.
        let http = reqwest::Client::builder().no_proxy().pool_max_idle_per_host(0).build().unwrap();
        let receiver = Receiver::start(Manner::Answer(StatusCode::OK, String::new())).await;
        Self { live, receiver, http, life, merchants }
    }

    pub(super) fn of(&self, who: Who) -> &Merchant {
        &self.merchants[who as usize]
    }

    pub(super) fn of_mut(&mut self, who: Who) -> &mut Merchant {
        &mut self.merchants[who as usize]
    }

    /// A request below `/api/v1`: by the customer, who has no key, to the checkout, else by the merchant.
    pub(super) async fn ask(
        &self,
        who: Who,
        method: Method,
        path: &str,
        key: Option<&str>,
        body: Option<&str>,
    ) -> Told {
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
        Told { status: answer.status(), is_replayed, text: answer.text().await.unwrap() }
    }

    pub(super) async fn get(&self, who: Who, path: &str) -> Told {
        self.ask(who, Method::GET, path, None, None).await
    }

    /// A POST by the merchant. What it must be answered with is decided here if its key was used before; then there is
    /// `None`, since it must have no effect.
    pub(super) async fn post(&mut self, who: Who, path: &str, key: Option<&'static str>, body: &str) -> Option<Told> {
        let told = self.ask(who, Method::POST, path, key, Some(body)).await;
        let kept = self.of(who).kept.iter().find(|kept| Some(kept.key) == key && kept.path == path);
        match (kept, key) {
            (Some(kept), _) if kept.body == body => {
                assert_eq!((told.status, told.is_replayed, &told.text), (kept.status, true, &kept.text));
                return None;
            }
            (Some(_), _) => {
                told.is_refused(422, "Idempotency-Key");
                return None;
            }
            (None, Some(key)) if told.status.is_success() => {
                let (path, body, text) = (path.to_owned(), body.to_owned(), told.text.clone());
                self.of_mut(who).kept.push(Kept { path, key, body, status: told.status, text });
            }
            (None, _) => {}
        }
        assert!(!told.is_replayed, "{path} was not asked before");
        Some(told)
    }

    /// From now on the endpoints that want it are owed this event.
    pub(super) fn owe(&mut self, who: Who, event: &'static str, data: &Value) {
        let Merchant { endpoints, owed, .. } = self.of_mut(who);
        let wanting = endpoints.iter().filter(|endpoint| {
            !endpoint.is_removed && endpoint.events.iter().any(|wanted| ["*", event].contains(wanted))
        });
        owed.extend(wanting.map(|endpoint| Owed { endpoint: endpoint.id.clone(), event, data: data.clone() }));
    }
}
