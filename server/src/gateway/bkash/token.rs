//! The token that every call needs. bKash grants two an hour and blocks a credential that asks for more, so one is
//! shared by all calls, renewed before it ends, and kept over restarts, with the times at which tokens were asked for.

use std::{sync::Arc, time::Duration};

use payments_core::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::json;
use tokio::{sync::Mutex, time::sleep};

use crate::{
    ambient::Ambient,
    domain::KeptToken,
    gateway::{
        call::{Line, sensitive},
        credentials::BkashCredentials,
        error::GatewayError,
        sealed::Seal,
    },
    store::{Change, CommitError, Conflict, Store, Write},
};

/// Under this name the token is kept.
const NAME: &str = "bkash";
/// bKash tokens live for an hour; they are renewed at minute 50.
const RENEW_BEFORE_SECONDS: u32 = 600;
/// How many times an hour bKash may be asked for a token.
const CALLS_AN_HOUR: usize = 2;
const HOUR_MILLIS: i64 = 60 * 60 * 1000;
/// How long a server may take to get a token before another one may ask.
const ASKING_SECONDS: u32 = 30;
/// How often, and after how long, it is looked whether another server has got the token that it asks for.
const LOOKS: usize = 20;
const LOOK_AGAIN: Duration = Duration::from_millis(250);

pub(super) struct Tokens {
    /// Held while a token is asked for, so that it is asked for once.
    held: Mutex<Option<Held>>,
    seal: Seal,
    store: Arc<dyn Store>,
    ambient: Arc<dyn Ambient>,
}

#[derive(Clone)]
struct Held {
    token: SecretString,
    refresh: Option<SecretString>,
    expires_at: Timestamp,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Granted {
    #[serde(rename = "statusCode")]
    status_code: Option<String>,
    #[serde(rename = "statusMessage")]
    status_message: Option<String>,
    id_token: Option<SecretString>,
    refresh_token: Option<SecretString>,
    expires_in: Option<u32>,
}

impl Tokens {
    pub(super) fn new(
        credentials: &BkashCredentials,
        store: Arc<dyn Store>,
        ambient: Arc<dyn Ambient>,
    ) -> Option<Self> {
        let seal = Seal::under(&credentials.app_secret)?;
        Some(Self { held: Mutex::default(), seal, store, ambient })
    }

    /// A token that is good now, asked for only if there is none.
    pub(super) async fn current(
        &self,
        line: &Line,
        credentials: &BkashCredentials,
    ) -> Result<SecretString, GatewayError> {
        let mut held = self.held.lock().await;
        for _ in 0..LOOKS {
            let now = self.ambient.now();
            if let Some(held) = held.as_ref().filter(|held| !held.is_due(now)) {
                return Ok(held.token.clone());
            }
            let kept = self.kept(line).await?;
            // Another server may have renewed it.
            let other = kept.as_ref().and_then(|kept| self.opened(kept));
            if let Some(other) = other.filter(|other| held.as_ref().is_none_or(|held| !held.is(&other.token))) {
                let is_due = other.is_due(now);
                let token = held.insert(other).token.clone();
                if !is_due {
                    return Ok(token);
                }
            }
            match self.renew(line, credentials, held.as_ref(), kept, now).await {
                Ok(Some(fresh)) => return Ok(held.insert(fresh).token.clone()),
                // Another server asks for one at this moment.
                Ok(None) => sleep(LOOK_AGAIN).await,
                // The old one may still have its last minutes.
                Err(error) => {
                    return match held.as_ref().filter(|held| now < held.expires_at) {
                        Some(held) => Ok(held.token.clone()),
                        None => Err(error),
                    };
                }
            }
        }
        Err(line.unanswered_because("another server asks for a token and has not got it yet"))
    }

    /// Forgets a token that the gateway did not take.
    pub(super) async fn distrust(&self, token: &SecretString) {
        let mut held = self.held.lock().await;
        if let Some(held) = held.as_mut().filter(|held| held.is(token)) {
            held.expires_at = self.ambient.now();
            held.refresh = None;
        }
    }

    /// Asks for a token; `None` where another server was faster.
    async fn renew(
        &self,
        line: &Line,
        credentials: &BkashCredentials,
        old: Option<&Held>,
        kept: Option<KeptToken>,
        now: Timestamp,
    ) -> Result<Option<Held>, GatewayError> {
        let next = |kept: KeptToken| KeptToken { version: kept.version + 1, ..kept };
        let mut kept = kept.map_or_else(KeptToken::default, next);
        kept.asked_at.retain(|at| now.as_millis() - at.as_millis() < HOUR_MILLIS);
        if kept.asked_at.len() >= CALLS_AN_HOUR {
            let why = "two tokens were asked for within the hour, and bKash blocks who asks for more";
            return Err(line.unanswered_because(why));
        }
        if kept.asking_until.is_some_and(|until| now < until) {
            return Ok(None);
        }
        // Counted before it is asked: a crash must not forget it, and of two servers only one may ask.
        kept.asked_at.push(now);
        kept.asking_until = Some(now.plus_seconds(ASKING_SECONDS));
        if !self.keep(line, kept.clone()).await? {
            return Ok(None);
        }
        let granted = ask(line, credentials, old.and_then(|old| old.refresh.as_ref())).await;
        kept = next(kept);
        kept.asking_until = None;
        let fresh = granted.map(|granted| {
            let expires_at = now.plus_seconds(granted.expires_in.unwrap_or(3600));
            kept.token = self.seal.seal(&granted.token);
            kept.refresh = granted.refresh.as_ref().and_then(|refresh| self.seal.seal(refresh));
            kept.expires_at = Some(expires_at);
            Held { token: granted.token, refresh: granted.refresh, expires_at }
        });
        self.keep(line, kept).await?;
        fresh.map(Some)
    }

    async fn kept(&self, line: &Line) -> Result<Option<KeptToken>, GatewayError> {
        self.store.gateway_token(NAME).await.map_err(|error| line.unanswered_because(&error.to_string()))
    }

    /// Stores a token's record; false where another server has changed it.
    async fn keep(&self, line: &Line, kept: KeptToken) -> Result<bool, GatewayError> {
        match self.store.commit(Change::of(Write::GatewayToken(NAME, kept))).await {
            Ok(()) => Ok(true),
            Err(CommitError::Conflict(Conflict::Stale)) => Ok(false),
            Err(error) => Err(line.unanswered_because(&error.to_string())),
        }
    }

    fn opened(&self, kept: &KeptToken) -> Option<Held> {
        let token = self.seal.open(kept.token.as_deref()?)?;
        let refresh = kept.refresh.as_deref().and_then(|sealed| self.seal.open(sealed));
        Some(Held { token, refresh, expires_at: kept.expires_at? })
    }
}

/// A token as bKash grants it.
struct Fresh {
    token: SecretString,
    refresh: Option<SecretString>,
    expires_in: Option<u32>,
}

/// Asks bKash for a token, by an old one's refresh token where there is one.
async fn ask(
    line: &Line,
    credentials: &BkashCredentials,
    refresh: Option<&SecretString>,
) -> Result<Fresh, GatewayError> {
    let app_key = credentials.app_key.expose_secret();
    let app_secret = credentials.app_secret.expose_secret();
    let (path, body) = match refresh {
        Some(refresh) => {
            let refresh = refresh.expose_secret();
            ("refresh", json!({"app_key": app_key, "app_secret": app_secret, "refresh_token": refresh}))
        }
        None => ("grant", json!({"app_key": app_key, "app_secret": app_secret})),
    };
    let request = line
        .client
        .post(format!("{}/tokenized/checkout/token/{path}", credentials.base_url))
        .header("accept", "application/json")
        .header("username", sensitive(credentials.username.expose_secret()))
        .header("password", sensitive(credentials.password.expose_secret()))
        .json(&body);
    let answer = line.call("token", request).await?;
    let granted: Granted = serde_json::from_slice(&answer.body)
        .map_err(|_| line.unanswered_because("a token answer that is not the JSON it should be"))?;
    let (Some("0000"), Some(token)) = (granted.status_code.as_deref(), granted.id_token) else {
        let code = granted.status_code.unwrap_or_else(|| answer.status.as_u16().to_string());
        let message = granted.status_message.unwrap_or_else(|| "no token".into());
        tracing::error!(code, message, "bKash gives no token; check its credentials");
        return Err(line.unanswered_because("it gives no token"));
    };
    Ok(Fresh { token, refresh: granted.refresh_token, expires_in: granted.expires_in })
}

impl Held {
    fn is(&self, token: &SecretString) -> bool {
        self.token.expose_secret() == token.expose_secret()
    }

    fn is_due(&self, now: Timestamp) -> bool {
        now.plus_seconds(RENEW_BEFORE_SECONDS) >= self.expires_at
    }
}
