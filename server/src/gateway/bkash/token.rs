//! The bKash token, which every call needs. bKash grants two an hour and blocks a credential that requests more. So all calls
//! share one token, renewed before it expires and stored across restarts with the times of its requests.

use std::{sync::Arc, time::Duration};

use payments_core::Timestamp;
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use tokio::{sync::Mutex, time::sleep};

use super::{Bkash, Reply, parse};
use crate::{
    ambient::Ambient,
    domain::StoredToken,
    gateway::{error::GatewayError, sealed},
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

/// Where the token is stored, and who may request one.
pub(super) struct Tokens {
    store: Arc<dyn Store>,
    ambient: Arc<dyn Ambient>,
    /// Locked during a request, so that this process sends only one.
    requesting: Mutex<()>,
    /// Tells this process from others.
    process: String,
}

impl Tokens {
    pub(super) fn new(store: Arc<dyn Store>, ambient: Arc<dyn Ambient>) -> Self {
        let process = hex::encode(ambient.random::<8>());
        Self { store, ambient, requesting: Mutex::default(), process }
    }
}

impl Bkash {
    /// A valid token, renewed if necessary.
    pub(super) async fn token(&self) -> Result<SecretString, GatewayError> {
        let _requesting = self.tokens.requesting.lock().await;
        for _ in 0..MAX_POLLS {
            let now = self.tokens.ambient.now();
            let record = self.token_record().await?;
            let (token, expires_at) = (self.open(record.token.as_deref()), record.expires_at);
            let valid_at = |time| token.clone().filter(|_| expires_at.is_some_and(|end| time < end));
            if let Some(token) = valid_at(now.plus_seconds(RENEW_BEFORE_SECONDS)) {
                return Ok(token);
            }
            match self.renew_token(record, now).await {
                Ok(Some(fresh)) => return Ok(fresh),
                // Another server is requesting one now.
                Ok(None) => sleep(POLL_INTERVAL).await,
                // The old token may still be valid.
                Err(error) => return valid_at(now).ok_or(error),
            }
        }
        Err(self.client.unanswered("another server is requesting a token"))
    }

    /// Drops a token that bKash refused, unless another server is replacing it now.
    pub(super) async fn drop_token(&self, refused: &SecretString) -> Result<(), GatewayError> {
        let _requesting = self.tokens.requesting.lock().await;
        let record = self.token_record().await?;
        let stored = self.open(record.token.as_deref());
        if self.is_leased_to_another(&record, self.tokens.ambient.now()) {
            return Ok(());
        }
        if stored.is_some_and(|stored| stored.expose_secret() == refused.expose_secret()) {
            self.save_token(StoredToken { token: None, refresh: None, expires_at: None, ..record }).await?;
        }
        Ok(())
    }

    /// Requests a token; `None` if another server is already doing so.
    async fn renew_token(&self, mut record: StoredToken, now: Timestamp) -> Result<Option<SecretString>, GatewayError> {
        record.requested_at.retain(|at| now.as_millis() - at.as_millis() < HOUR_MILLIS);
        if record.requested_at.len() >= MAX_REQUESTS_PER_HOUR {
            let why = "two tokens were requested within the hour, and bKash blocks a credential that requests more";
            return Err(self.client.unanswered(why));
        }
        if self.is_leased_to_another(&record, now) {
            return Ok(None);
        }
        // Store the request before it is sent: it counts even after a crash, and only one server may send it.
        record.requested_at.push(now);
        record.requesting = Some(self.tokens.process.clone());
        record.requesting_until = Some(now.plus_seconds(REQUEST_LEASE_SECONDS));
        if !self.save_token(record.clone()).await? {
            return Ok(None);
        }
        let granted = self.request_token(self.open(record.refresh.as_deref())).await;
        record.version += 1;
        (record.requesting, record.requesting_until) = (None, None);
        if let Ok(granted) = &granted {
            let seal = |token: &Option<SecretString>| sealed::seal(&self.credentials.app_secret, token.as_ref()?);
            (record.token, record.refresh) = (seal(&granted.id_token), seal(&granted.refresh_token));
            record.expires_at = Some(now.plus_seconds(granted.expires_in.unwrap_or(3600)));
        }
        self.save_token(record).await?;
        granted.map(|granted| granted.id_token)
    }

    /// Whether another server requests a token now. This process requests one at a time, so a lease of its own is left from a
    /// request that was cancelled.
    fn is_leased_to_another(&self, record: &StoredToken, now: Timestamp) -> bool {
        record.requesting.as_ref() != Some(&self.tokens.process)
            && record.requesting_until.is_some_and(|until| now < until)
    }

    /// Requests a token from bKash, with the old refresh token if there is one.
    async fn request_token(&self, refresh: Option<SecretString>) -> Result<Reply, GatewayError> {
        let credentials = &self.credentials;
        let app_secret = credentials.app_secret.expose_secret();
        let mut body = json!({"app_key": credentials.app_key.expose_secret(), "app_secret": app_secret});
        let mut path = "/token/grant";
        if let Some(refresh) = refresh {
            body["refresh_token"] = refresh.expose_secret().into();
            path = "/token/refresh";
        }
        let headers = [("username", &credentials.username), ("password", &credentials.password)];
        let response = self.post("token", path, headers, &body).await?;
        let granted = parse(&self.client, &response.body).and_then(|reply| match &reply.id_token {
            Some(_) => Ok(reply),
            None => Err(self.client.unanswered("the response has no token")),
        });
        // Never `Refused`: that is an answer about a payment.
        granted.map_err(|error| {
            tracing::error!(%error, "bKash granted no token; check its credentials");
            self.client.unanswered("no token was granted")
        })
    }

    /// The token's record as its next version; an empty one before the first.
    async fn token_record(&self) -> Result<StoredToken, GatewayError> {
        let stored = self.tokens.store.gateway_token(NAME).await;
        let stored = stored.map_err(|error| self.client.unanswered(&error.to_string()))?;
        Ok(stored.map_or_else(StoredToken::default, |stored| StoredToken { version: stored.version + 1, ..stored }))
    }

    /// Stores the token's record; false if another server has changed it.
    async fn save_token(&self, record: StoredToken) -> Result<bool, GatewayError> {
        match self.tokens.store.commit(Change::of(Write::GatewayToken(NAME.into(), record))).await {
            Ok(_) => Ok(true),
            Err(CommitError::Conflict(Conflict::Stale)) => Ok(false),
            Err(error) => Err(self.client.unanswered(&error.to_string())),
        }
    }

    fn open(&self, stored: Option<&[u8]>) -> Option<SecretString> {
        sealed::open(&self.credentials.app_secret, stored?)
    }
}
