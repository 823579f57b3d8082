//! The bKash token, which every call needs. bKash grants two an hour and blocks a credential that requests more. So all calls
//! share one token. It is renewed before it expires, and stored across restarts together with the times of its requests.
//!
//! A token belongs to an account: a base URL, a user and an app key. Each account has its own record.

#[cfg(test)]
mod tests;
mod times;

use std::{borrow::Cow, sync::Arc, time::Duration};

use parking_lot::Mutex;
use payments_core::Timestamp;
use reqwest::StatusCode;
use secrecy::{ExposeSecret, SecretString};
use serde_json::json;
use tokio::time::{Instant, sleep};
use tokio_util::task::TaskTracker;

use self::times::{LEASE_SECONDS, LIFETIME_SECONDS, bring_to, forget_old, hour_is_over_at, next_request};
use super::{Dialect, Reply, post, read};
use crate::{
    ambient::Ambient,
    domain::StoredToken,
    gateway::{call::GatewayClient, error::GatewayError, settings::Settings},
    sealed,
    store::{Change, CommitError, Conflict, Store, Write},
};

/// What tokens are encrypted for.
const PURPOSE: &str = "gateway token";
/// The record's name in the store. Every account but the first appends its own name.
const NAME: &str = "bkash";
/// A token is renewed in minute 50 of its hour.
const RENEW_BEFORE_SECONDS: u32 = 600;
/// How often, and at which interval, to check whether another server has received its token.
const MAX_POLLS: usize = 20;
const POLL_INTERVAL: Duration = Duration::from_millis(250);
/// How long callers get the error of a request that could not be sent. Then the next caller tries again.
const NOT_SENT_FOR: Duration = Duration::from_secs(2);
/// How many times to try to store a granted token if other changes interfere.
const MAX_SAVES: usize = 8;

/// The token of an account, and the rules about who may request one.
pub(super) struct Tokens {
    client: Arc<GatewayClient>,
    settings: Arc<Settings>,
    store: Arc<Store>,
    ambient: Arc<dyn Ambient>,
    /// A renewal runs in a task of its own: a customer who hangs up must not lose a token that bKash has granted.
    tasks: TaskTracker,
    /// Locked during a renewal, so that this process sends one request at a time.
    renewal: tokio::sync::Mutex<Renewal>,
    /// A token that bKash refused. It stays in use only while no other can be requested.
    refused: Mutex<Option<SecretString>>,
    account: String,
    /// Distinguishes this process from others.
    process: String,
}

/// What this process remembers of its renewals.
#[derive(Default)]
struct Renewal {
    /// A token that is not stored yet.
    unsaved: Option<Granted>,
    /// The last request, if it was not sent.
    not_sent: Option<(Instant, GatewayError)>,
}

#[derive(Clone)]
struct Granted {
    token: SecretString,
    refresh: Option<SecretString>,
    expires_at: Timestamp,
}

/// Why a request brought no token.
struct NoToken {
    error: GatewayError,
    /// Whether bKash itself rejected the request. Otherwise the request failed on the way.
    is_rejection: bool,
}

impl Tokens {
    pub(super) fn new(
        client: Arc<GatewayClient>,
        settings: Arc<Settings>,
        store: Arc<Store>,
        ambient: Arc<dyn Ambient>,
        tasks: TaskTracker,
    ) -> Self {
        let process = hex::encode(ambient.random::<8>());
        let account = ["base_url", "username", "app_key"].map(|key| settings.text(key));
        let account = sealed::name(&settings.secret("app_secret"), &account);
        let (renewal, refused) = Default::default();
        Self { client, settings, store, ambient, tasks, renewal, refused, account, process }
    }

    /// Returns a token, renewed if necessary. No caller waits for a renewal while the old token is valid.
    pub(super) async fn get(self: &Arc<Self>) -> Result<SecretString, GatewayError> {
        let now = self.ambient.now();
        let (_, record) = self.record(now).await?;
        if let Some(fresh) = self.usable(&record, now.plus_seconds(RENEW_BEFORE_SECONDS)) {
            return Ok(fresh);
        }
        let this = Arc::clone(self);
        let renewal = self.tasks.spawn(async move { this.renew().await });
        match self.usable(&record, now) {
            Some(old) => Ok(old),
            None => {
                renewal.await.unwrap_or_else(|_| Err(self.client.unanswered("the renewal of its token ended early")))
            }
        }
    }

    /// Until when the token is valid, renewed if necessary.
    pub(super) async fn valid_until(self: &Arc<Self>) -> Result<Timestamp, GatewayError> {
        self.get().await?;
        let (_, record) = self.record(self.ambient.now()).await?;
        record.expires_at.ok_or_else(|| self.client.unanswered("its token is not stored yet"))
    }

    /// Notes that bKash refused a token, so that another one is requested as soon as allowed.
    pub(super) fn refuse(&self, token: &SecretString) {
        *self.refused.lock() = Some(token.clone());
    }

    /// The stored token, if it is valid at this time and bKash has not refused it.
    fn usable(&self, record: &StoredToken, at: Timestamp) -> Option<SecretString> {
        valid(record, at).then(|| self.open(record.token.as_deref())).flatten().filter(|token| !self.is_refused(token))
    }

    fn is_refused(&self, token: &SecretString) -> bool {
        let refused = self.refused.lock();
        refused.as_ref().is_some_and(|refused| refused.expose_secret() == token.expose_secret())
    }

    async fn renew(&self) -> Result<SecretString, GatewayError> {
        let mut renewal = self.renewal.lock().await;
        if let Some(granted) = renewal.unsaved.take() {
            self.keep(granted, &mut renewal).await;
        }
        for _ in 0..MAX_POLLS {
            let now = self.ambient.now();
            let (name, record) = self.record(now).await?;
            if let Some(fresh) = self.usable(&record, now.plus_seconds(RENEW_BEFORE_SECONDS)) {
                return Ok(fresh);
            }
            let old = valid(&record, now).then(|| self.open(record.token.as_deref())).flatten();
            match self.request(name, record, now, &mut renewal).await {
                Ok(Some(granted)) => return Ok(granted),
                // Another server is requesting one now.
                Ok(None) => sleep(POLL_INTERVAL).await,
                // The old token may still be valid, even if bKash refused it once.
                Err(error) => return old.ok_or(error),
            }
        }
        Err(self.client.unanswered("another server is requesting a token"))
    }

    /// Requests a token; `None` if another server is already doing so. A refresh token is sent once. If it brings no token,
    /// the next request sends the credentials.
    async fn request(
        &self,
        name: Cow<'static, str>,
        mut record: StoredToken,
        mut now: Timestamp,
        renewal: &mut Renewal,
    ) -> Result<Option<SecretString>, GatewayError> {
        if let Some((_, error)) = renewal.not_sent.as_ref().filter(|(at, _)| at.elapsed() < NOT_SENT_FOR) {
            return Err(error.clone());
        }
        // This process sends one request at a time. So if it holds a lease, the end of an earlier request was not stored.
        let is_leased = record.requesting.as_ref() != Some(&self.process);
        if is_leased && record.requesting_until.is_some_and(|until| now < until) {
            return Ok(None);
        }
        forget_old(&mut record, now);
        if let Some(at) = next_request(&record, now) {
            let why =
                format!("bKash grants two tokens an hour and blocks a credential that requests more; next at {at}");
            return Err(self.client.unanswered(&why));
        }
        loop {
            let sealed = record.refresh.take();
            let is_refused = self.open(record.token.as_deref()).is_some_and(|token| self.is_refused(&token));
            let refresh = self.open(sealed.as_deref()).filter(|_| !is_refused);
            // Store the request before it is sent: it counts even after a crash, and only one server may send it.
            record.requested_at.push(now);
            record.requesting = Some(self.process.clone());
            record.requesting_until = Some(now.plus_seconds(LEASE_SECONDS));
            if !self.save(name.clone(), record.clone()).await? {
                return Ok(None);
            }
            record.version += 1;
            let NoToken { error, is_rejection } = match self.ask(refresh.as_ref(), now).await {
                Ok(granted) => {
                    let token = granted.token.clone();
                    self.keep(granted, renewal).await;
                    return Ok(Some(token));
                }
                Err(no_token) => no_token,
            };
            if is_rejection && refresh.is_some() && hour_is_over_at(&record).is_none() {
                now = self.ambient.now();
                continue;
            }
            if !error.was_sent() {
                record.requested_at.pop();
                record.refresh = sealed;
                renewal.not_sent = Some((Instant::now(), error.clone()));
            }
            (record.requesting, record.requesting_until) = (None, None);
            // If the store fails, the lease ends by itself.
            let _ = self.save(name, record).await;
            return Err(error);
        }
    }

    /// Requests a token from bKash, with the old refresh token if there is one.
    async fn ask(&self, refresh: Option<&SecretString>, now: Timestamp) -> Result<Granted, NoToken> {
        let settings = &self.settings;
        let mut body = json!({"app_key": settings.text("app_key"), "app_secret": settings.text("app_secret")});
        let dialect = Dialect::of(settings);
        let mut path = dialect.grant;
        if let Some(refresh) = refresh {
            body["refresh_token"] = refresh.expose_secret().into();
            path = dialect.refresh;
        }
        let headers = [("username", &settings.secret("username")), ("password", &settings.secret("password"))];
        let response = post(&self.client, dialect.url(settings, path), "token", headers, &body).await;
        let response = response.map_err(|error| NoToken { error, is_rejection: false })?;
        let is_rejection = response.status.is_client_error() && response.status != StatusCode::TOO_MANY_REQUESTS;
        let (why, is_rejection) = match read(&self.client, dialect, &response) {
            Ok(Ok(Reply { id_token: Some(token), expires_in, refresh_token, .. })) => {
                let lifetime = expires_in.unwrap_or(LIFETIME_SECONDS).min(LIFETIME_SECONDS);
                return Ok(Granted { token, refresh: refresh_token, expires_at: now.plus_seconds(lifetime) });
            }
            Ok(Ok(_)) => ("the response has no token".to_owned(), is_rejection),
            Ok(Err(rejection)) => (rejection.to_string(), true),
            Err(error) => (error.to_string(), is_rejection),
        };
        tracing::error!(error = %why, path, "bKash granted no token; check its credentials");
        let error = self.client.unanswered(&format!("no token was granted: {why}"));
        Err(NoToken { error, is_rejection })
    }

    /// Stores a token. If the store fails, remembers the token until the store works.
    async fn keep(&self, granted: Granted, renewal: &mut Renewal) {
        let seal =
            |token: &SecretString| sealed::seal(&self.settings.secret("app_secret"), PURPOSE, token, &*self.ambient);
        for _ in 0..MAX_SAVES {
            let Ok((name, mut record)) = self.record(self.ambient.now()).await else { break };
            if record.expires_at.is_some_and(|end| end > granted.expires_at) {
                return;
            }
            record.token = seal(&granted.token);
            record.refresh = granted.refresh.as_ref().and_then(seal);
            record.expires_at = Some(granted.expires_at);
            (record.requesting, record.requesting_until) = (None, None);
            match self.save(name, record).await {
                Ok(true) => return,
                Ok(false) => {}
                Err(_) => break,
            }
        }
        tracing::error!("a token of bKash could not be stored; this server remembers it");
        renewal.unsaved = Some(granted);
    }

    /// The account's record with the next version, and its name. The first record is empty.
    async fn record(&self, now: Timestamp) -> Result<(Cow<'static, str>, StoredToken), GatewayError> {
        let mut name = Cow::Borrowed(NAME);
        let mut stored = self.stored(&name).await?;
        if stored.as_ref().and_then(|it| it.account.as_ref()).is_some_and(|account| *account != self.account) {
            name = Cow::Owned(format!("{NAME}-{}", self.account));
            stored = self.stored(&name).await?;
        }
        let next = |stored: StoredToken| StoredToken { version: stored.version + 1, ..stored };
        let mut record = stored.map_or_else(StoredToken::default, next);
        record.account = Some(self.account.clone());
        if bring_to(&mut record, now) && self.save(name.clone(), record.clone()).await? {
            record.version += 1;
        }
        Ok((name, record))
    }

    async fn stored(&self, name: &str) -> Result<Option<StoredToken>, GatewayError> {
        let stored = self.store.gateway_token(name).await;
        stored.map_err(|error| self.client.unanswered(&error.to_string()))
    }

    /// Stores the account's record; false if another server has changed it.
    async fn save(&self, name: Cow<'static, str>, record: StoredToken) -> Result<bool, GatewayError> {
        match self.store.commit(Change::of(Write::GatewayToken(name, record))).await {
            Ok(_) => Ok(true),
            Err(CommitError::Conflict(Conflict::Stale)) => Ok(false),
            Err(error) => Err(self.client.unanswered(&error.to_string())),
        }
    }

    fn open(&self, stored: Option<&[u8]>) -> Option<SecretString> {
        sealed::open(&self.settings.secret("app_secret"), PURPOSE, stored?)
    }
}

fn valid(record: &StoredToken, at: Timestamp) -> bool {
    record.expires_at.is_some_and(|end| at < end)
}
