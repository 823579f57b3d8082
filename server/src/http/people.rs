//! People who sign in to the console with OpenID Connect, and their sessions.

mod cookie;
mod mask;
mod provider;
mod session;
mod sign_in;

use std::sync::Arc;

use payments_core::Timestamp;
use secrecy::SecretString;

pub use self::provider::ProviderError;
use self::{cookie::Cookies, provider::Provider};
pub(super) use self::{
    cookie::cookie,
    mask::masked,
    session::{Person, actor_of, authenticate, of_console, of_page},
    sign_in::{begin, finish, sign_out},
};
use crate::{domain::Grant, service::RefundCaps};

/// A grant of everyone in a group of the provider.
#[derive(Debug, Clone)]
pub struct GroupGrant {
    pub group: String,
    pub grant: Grant,
}

/// The operator's settings for people.
#[derive(Debug, Clone)]
pub struct PeopleSettings {
    pub issuer: String,
    pub client_id: String,
    pub client_secret: SecretString,
    pub group_claim: String,
    pub groups: Vec<GroupGrant>,
    /// For the role support.
    pub refund_caps: RefundCaps,
    /// The server's own URL, without a trailing slash.
    pub base_url: String,
}

/// What the routes need to know of people.
pub struct People {
    provider: Provider,
    cookies: Cookies,
    client_secret: SecretString,
    base_url: String,
    refund_caps: Arc<RefundCaps>,
}

impl People {
    pub fn new(settings: PeopleSettings) -> Result<Self, ProviderError> {
        Ok(Self {
            cookies: Cookies::of(&settings.base_url),
            client_secret: settings.client_secret.clone(),
            base_url: settings.base_url.clone(),
            refund_caps: Arc::new(settings.refund_caps.clone()),
            provider: Provider::new(settings)?,
        })
    }

    /// Reads what the provider says of itself, and its keys.
    pub async fn probe(&self, now: Timestamp) -> Result<(), ProviderError> {
        self.provider.begin(now).await.map(drop)
    }

    /// The provider's host, as the console names it.
    pub(super) fn provider_name(&self) -> &str {
        self.provider.host()
    }
}
