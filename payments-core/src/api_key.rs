//! API keys, as a merchant lists them.

use crate::{AppId, KeyId, Timestamp, aliased::aliased_resource};

aliased_resource! {
    /// An API key of the merchant's workspace, without its text: only a new key's creator sees that, once.
    #[derive(Debug)]
    pub struct ApiKey {
        /// Identifier of the key.
        id: KeyId = "id",
        /// What the operator calls it.
        name: Option<String> = "name",
        /// The key's last four characters.
        last4: String = "last4",
        /// The scopes of a restricted key, such as `payments:read`. `None`: the key may do everything.
        scopes: Option<Vec<String>> = "scopes",
        /// The developer app that the key is bound to.
        app_id: Option<AppId> = "appId",
        /// Whether the request that lists the keys came with this one.
        is_current: bool = "isCurrent",
        /// Time of creation.
        created_at: Timestamp = "createdAt",
        /// When it was last used, to the minute. The server stores uses once a minute.
        last_used_at: Option<Timestamp> = "lastUsedAt",
        /// When it expires.
        expires_at: Option<Timestamp> = "expiresAt",
        /// When the operator revoked it.
        revoked_at: Option<Timestamp> = "revokedAt",
    }
}
