//! The bKash token, which every call needs. bKash grants two an hour and blocks a credential that requests more. So all calls
//! share one token, renewed before it expires and stored across restarts with the times of its requests.

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
        call::{GatewayClient, sensitive},
        credentials::BkashCredentials,
        error::GatewayError,
        sealed::Seal,
    },
    store::{Change, CommitError, Conflict, Store, Write},
};

/// The token's name in the store.
const NAME: &str = "bkash";
/// bKash tokens live for an hour; they are renewed at minute 50.
const RENEW_BEFORE_SECONDS: u32 = 600;
/// How many tokens may be requested in an hour.
const MAX_REQUESTS_PER_HOUR: usize = 2;
const HOUR_MILLIS: i64 = 60 * 60 * 1000;
/// How long a server may take to get a token before another server may request one.
const REQUEST_LEASE_SECONDS: u32 = 30;
/// How often, and at which interval, to check whether another server has got its token.
const MAX_POLLS: usize = 20;
const POLL_INTERVAL: Duration = Duration::from_millis(250);

pub(super) struct Tokens {
    /// Locked during a request, so that only one is sent.
    cached: Mutex<Option<CachedToken>>,
    seal: Seal,
    store: Arc<dyn Store>,
    ambient: Arc<dyn Ambient>,
    /// Tells this process from others.
    process: String,
}

#[derive(Clone)]
struct CachedToken {
    token: SecretString,
    refresh: Option<SecretString>,
    expires_at: Timestamp,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct TokenResponse {
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
        let seal = Seal::new(&credentials.app_secret)?;
        let process = hex::encode(ambient.random::<8>());
        Some(Self { cached: Mutex::default(), seal, store, ambient, process })
    }

    /// A valid token, renewed if necessary.
    pub(super) async fn current(
        &self,
        client: &GatewayClient,
        credentials: &BkashCredentials,
    ) -> Result<SecretString, GatewayError> {
        let mut cached = self.cached.lock().await;
        for _ in 0..MAX_POLLS {
            let now = self.ambient.now();
            if let Some(cached) = cached.as_ref().filter(|cached| !cached.is_due(now)) {
                return Ok(cached.token.clone());
            }
            let stored = self.stored(client).await?;
            // Another server may have renewed it.
            let other = stored.as_ref().and_then(|stored| self.open(stored));
            if let Some(other) = other.filter(|other| cached.as_ref().is_none_or(|cached| !cached.has(&other.token))) {
                let is_due = other.is_due(now);
                let token = cached.insert(other).token.clone();
                if !is_due {
                    return Ok(token);
                }
            }
            match self.renew(client, credentials, cached.as_ref(), stored, now).await {
                Ok(Some(fresh)) => return Ok(cached.insert(fresh).token.clone()),
                // Another server is requesting one now.
                Ok(None) => sleep(POLL_INTERVAL).await,
                // The old token may still be valid.
                Err(error) => {
                    return match cached.as_ref().filter(|cached| now < cached.expires_at) {
                        Some(cached) => Ok(cached.token.clone()),
                        None => Err(error),
                    };
                }
            }
        }
        Err(client.unanswered("another server is requesting a token"))
    }

    /// Drops a token that bKash refused.
    pub(super) async fn invalidate(&self, token: &SecretString) {
        let mut cached = self.cached.lock().await;
        if let Some(cached) = cached.as_mut().filter(|cached| cached.has(token)) {
            cached.expires_at = self.ambient.now();
            cached.refresh = None;
        }
    }

    /// Requests a token; `None` if another server is already doing so.
    async fn renew(
        &self,
        client: &GatewayClient,
        credentials: &BkashCredentials,
        old: Option<&CachedToken>,
        stored: Option<KeptToken>,
        now: Timestamp,
    ) -> Result<Option<CachedToken>, GatewayError> {
        let next = |stored: KeptToken| KeptToken { version: stored.version + 1, ..stored };
        let mut stored = stored.map_or_else(KeptToken::default, next);
        stored.asked_at.retain(|at| now.as_millis() - at.as_millis() < HOUR_MILLIS);
        if stored.asked_at.len() >= MAX_REQUESTS_PER_HOUR {
            let why = "two tokens were requested within the hour, and bKash blocks a credential that requests more";
            return Err(client.unanswered(why));
        }
        // This process requests one token at a time, so a lease of its own is left from a request that was cancelled.
        let is_ours = stored.asking.as_ref() == Some(&self.process);
        if !is_ours && stored.asking_until.is_some_and(|until| now < until) {
            return Ok(None);
        }
        // Store the request before it is sent: it counts even after a crash, and only one server may send it.
        stored.asked_at.push(now);
        (stored.asking_until, stored.asking) =
            (Some(now.plus_seconds(REQUEST_LEASE_SECONDS)), Some(self.process.clone()));
        if !self.save(client, stored.clone()).await? {
            return Ok(None);
        }
        let granted = request_token(client, credentials, old.and_then(|old| old.refresh.as_ref())).await;
        stored = next(stored);
        (stored.asking_until, stored.asking) = (None, None);
        let fresh = granted.map(|granted| {
            let expires_at = now.plus_seconds(granted.expires_in.unwrap_or(3600));
            stored.token = self.seal.seal(&granted.token);
            stored.refresh = granted.refresh.as_ref().and_then(|refresh| self.seal.seal(refresh));
            stored.expires_at = Some(expires_at);
            CachedToken { token: granted.token, refresh: granted.refresh, expires_at }
        });
        self.save(client, stored).await?;
        fresh.map(Some)
    }

    async fn stored(&self, client: &GatewayClient) -> Result<Option<KeptToken>, GatewayError> {
        self.store.gateway_token(NAME).await.map_err(|error| client.unanswered(&error.to_string()))
    }

    /// Stores the token's record; false if another server has changed it.
    async fn save(&self, client: &GatewayClient, stored: KeptToken) -> Result<bool, GatewayError> {
        match self.store.commit(Change::of(Write::GatewayToken(NAME, stored))).await {
            Ok(()) => Ok(true),
            Err(CommitError::Conflict(Conflict::Stale)) => Ok(false),
            Err(error) => Err(client.unanswered(&error.to_string())),
        }
    }

    fn open(&self, stored: &KeptToken) -> Option<CachedToken> {
        let token = self.seal.open(stored.token.as_deref()?)?;
        let refresh = stored.refresh.as_deref().and_then(|sealed| self.seal.open(sealed));
        Some(CachedToken { token, refresh, expires_at: stored.expires_at? })
    }
}

/// A token granted by bKash.
struct NewToken {
    token: SecretString,
    refresh: Option<SecretString>,
    expires_in: Option<u32>,
}

/// Requests a token from bKash, with the old refresh token if there is one.
async fn request_token(
    client: &GatewayClient,
    credentials: &BkashCredentials,
    refresh: Option<&SecretString>,
) -> Result<NewToken, GatewayError> {
    let app_key = credentials.app_key.expose_secret();
    let app_secret = credentials.app_secret.expose_secret();
    let (path, body) = match refresh {
        Some(refresh) => {
            let refresh = refresh.expose_secret();
            ("refresh", json!({"app_key": app_key, "app_secret": app_secret, "refresh_token": refresh}))
        }
        None => ("grant", json!({"app_key": app_key, "app_secret": app_secret})),
    };
    let request = client
        .http
        .post(format!("{}/tokenized/checkout/token/{path}", credentials.base_url))
        .header("accept", "application/json")
        .header("username", sensitive(credentials.username.expose_secret()))
        .header("password", sensitive(credentials.password.expose_secret()))
        .json(&body);
    let response = client.call("token", request).await?;
    let granted: TokenResponse = serde_json::from_slice(&response.body)
        .map_err(|_| client.unanswered("the token response is not the expected JSON"))?;
    let (Some("0000"), Some(token)) = (granted.status_code.as_deref(), granted.id_token) else {
        let code = granted.status_code.unwrap_or_else(|| response.status.as_u16().to_string());
        let message = granted.status_message.unwrap_or_else(|| "no token".into());
        tracing::error!(code, message, "bKash granted no token; check its credentials");
        return Err(client.unanswered("no token was granted"));
    };
    Ok(NewToken { token, refresh: granted.refresh_token, expires_in: granted.expires_in })
}

impl CachedToken {
    fn has(&self, token: &SecretString) -> bool {
        self.token.expose_secret() == token.expose_secret()
    }

    fn is_due(&self, now: Timestamp) -> bool {
        now.plus_seconds(RENEW_BEFORE_SECONDS) >= self.expires_at
    }
}
