//! API keys, as a merchant lists them.

use crate::{AppId, KeyId, Timestamp, aliased::aliased_resource};

aliased_resource! {
    /// An API key of the merchant's workspace, without its text. Only the creator of a new key sees the text, once.
    #[derive(Debug)]
    pub struct ApiKey {
        /// Identifier of the key.
        id: KeyId = "id",
        /// The operator's name for the key.
        name: Option<String> = "name",
        /// The key's last four characters.
        last4: String = "last4",
        /// The scopes of a restricted key, such as `payments:read`. `None` means that the key may do everything.
        scopes: Option<Vec<String>> = "scopes",
        /// The developer app that the key is bound to.
        app_id: Option<AppId> = "appId",
        /// Whether this key made the request that lists the keys.
        is_current: bool = "isCurrent",
        /// Time of creation.
        created_at: Timestamp = "createdAt",
        /// When the key was last used, to the minute. The server stores uses once a minute.
        last_used_at: Option<Timestamp> = "lastUsedAt",
        /// When the key expires.
        expires_at: Option<Timestamp> = "expiresAt",
        /// When the operator revoked the key.
        revoked_at: Option<Timestamp> = "revokedAt",
    }
}
