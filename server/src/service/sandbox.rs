//! The sandbox: a workspace with a public key. It is on if only this machine can reach the server. Otherwise the
//! operator must turn it on, because every visitor can then store payments and endpoints.

use std::time::Duration;

use payments_core::{Environment, Slot};
use tokio::time::sleep;

use super::{
    Result, Service, ServiceError,
    keys::{Caller, KeyLimits, SANDBOX_KEY},
    retry_on_conflict,
};
use crate::domain::{KeyHash, Workspace};
use crate::store::{Change, StoreError, Write};

const AGAIN: Duration = Duration::from_secs(2);

impl Service {
    /// The caller of the sandbox key, for requests without a key.
    pub async fn sandbox(&self) -> Result<Caller> {
        if !self.settings.has_sandbox {
            return Err(ServiceError::NoSandbox("off on this server; its operator turns it on with --sandbox"));
        }
        let caller = self.caller(SANDBOX_KEY).await?;
        caller.ok_or(ServiceError::NoSandbox("closed on this server: its key was revoked"))
    }

    /// The sandbox key if it works, to show to visitors.
    pub async fn offered_key(&self) -> Option<&'static str> {
        self.sandbox().await.ok().map(|_| SANDBOX_KEY)
    }

    /// Repeats [`prepare_sandbox`](Self::prepare_sandbox) while the store is unavailable.
    pub async fn prepare_sandbox_in_time(&self) -> Result<Option<Workspace>> {
        loop {
            match self.prepare_sandbox().await {
                Err(error @ (ServiceError::OutcomeUnknown | ServiceError::Unavailable(StoreError::Unavailable(_)))) => {
                    tracing::warn!(%error, "the sandbox cannot be made yet");
                    sleep(AGAIN).await;
                }
                outcome => return outcome,
            }
        }
    }

    /// Creates the sandbox's workspace and key if they are missing. Returns `None` if the sandbox is off.
    pub async fn prepare_sandbox(&self) -> Result<Option<Workspace>> {
        if !self.settings.has_sandbox {
            return Ok(None);
        }
        // Servers that start together conflict: one makes the sandbox, and the others find it.
        retry_on_conflict(|| async {
            if let Some(key) = self.directory.store.api_key(&KeyHash::of(SANDBOX_KEY)).await? {
                return Ok(self.directory.store.workspace(key.workspace_id.as_str()).await?);
            }
            let workspace = self.directory.new_workspace(Slot::of_key(SANDBOX_KEY), "Sandbox", "sandbox");
            let (hash, key) =
                self.directory.new_api_key(&workspace, Environment::Test, KeyLimits::default(), SANDBOX_KEY);
            let writes = vec![Write::Workspace(workspace.clone()), Write::ApiKey(hash, key)];
            self.directory.commit(Change { writes, ..Change::default() }).await?;
            Ok(Some(workspace))
        })
        .await
    }
}
