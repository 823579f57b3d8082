//! The sandbox: a workspace that everybody may use, by a key that is public. It is on where only this machine reaches the
//! server; elsewhere its operator turns it on, because whoever reaches the server can then store payments and endpoints.

use payments_core::Environment;

use super::{Caller, Refused, Service};
use crate::domain::{KeyHash, Workspace};
use crate::store::{Change, Write};

/// The public key of the sandbox workspace. It can be used for nothing live.
pub(crate) const SANDBOX_KEY: &str = "sk_test_demo";

impl Service {
    /// Whoever uses the sandbox.
    pub(crate) async fn sandbox(&self) -> Result<Caller, Refused> {
        if !self.settings.has_sandbox {
            return Err(Refused::NoSandbox("off on this server; its operator turns it on with --sandbox"));
        }
        let caller = self.caller(SANDBOX_KEY).await?;
        caller.ok_or(Refused::NoSandbox("closed on this server: its key was revoked"))
    }

    /// The sandbox's key, where it is to be offered to visitors because it works.
    pub(crate) async fn offered_key(&self) -> Option<&'static str> {
        self.sandbox().await.ok().map(|_| SANDBOX_KEY)
    }

    /// The sandbox's workspace where the sandbox is on. Makes it and its key unless they are there.
    pub(crate) async fn prepare_sandbox(&self) -> Result<Option<Workspace>, Refused> {
        if !self.settings.has_sandbox {
            return Ok(None);
        }
        if let Some(key) = self.store.api_key(&KeyHash::of(SANDBOX_KEY)).await? {
            return Ok(self.store.workspace(key.workspace_id.as_str()).await?);
        }
        let workspace = self.new_workspace("Sandbox", "sandbox");
        let key = self.new_api_key(&workspace, Environment::Test, None, SANDBOX_KEY);
        let writes = vec![Write::Workspace(workspace.clone()), key];
        self.commit(Change { writes, ..Change::default() }).await?;
        Ok(Some(workspace))
    }
}
