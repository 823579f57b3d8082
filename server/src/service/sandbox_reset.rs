//! Empties the sandbox of a developer.

use payments_core::Environment;

use super::{Caller, Result, Service, ServiceError, keys::SANDBOX_KEY, retry_on_conflict};
use crate::{
    domain::{ApiKey, KeyHash, Scope},
    store::{Change, Write},
};

impl Service {
    /// Gives all test keys of the caller's workspace a new, empty scope. Nothing reads the old scope's records any more.
    pub async fn reset_sandbox(&self, caller: &Caller) -> Result<()> {
        self.check_own_sandbox(caller).await?;
        let left = retry_on_conflict(|| async {
            let mut workspace = self.directory.workspace(caller.workspace_id.as_str()).await?;
            let left = workspace.scope(Environment::Test);
            (workspace.version, workspace.resets) = (workspace.version + 1, workspace.resets + 1);
            let scope = workspace.scope(Environment::Test);
            let keys = self.directory.store.api_keys_of(&workspace.id).await?.into_iter();
            let moved = keys.filter(|(_, key)| key.scope == left).map(|(hash, key)| {
                let moved = ApiKey { version: key.version + 1, scope: scope.clone(), ..key };
                Write::ApiKey(hash, Box::new(moved))
            });
            let writes = moved.chain([Write::Workspace(workspace.clone())]).collect();
            self.directory.commit(Change { writes, ..Change::default() }).await?;
            Ok(left)
        })
        .await?;
        self.remove_endpoints(&left).await
    }

    /// Removes the endpoints of the old scope, so that its webhooks end.
    async fn remove_endpoints(&self, left: &Scope) -> Result<()> {
        for endpoint in self.store.endpoints(left, None, usize::MAX).await? {
            match self.commit(Change::of(Write::EndpointRemoved(Box::new(endpoint)))).await.map_err(ServiceError::from)
            {
                // A request that began earlier has changed or removed the endpoint.
                Err(ServiceError::Conflict) => {}
                outcome => outcome?,
            }
        }
        Ok(())
    }

    /// Refuses a live key, and the public key of a sandbox that others use too.
    pub(super) async fn check_own_sandbox(&self, caller: &Caller) -> Result<()> {
        if caller.scope.environment != Environment::Test {
            return Err(ServiceError::NotOwnSandbox("only test keys have one, and this is a live key"));
        }
        let public = self.directory.store.api_key(&KeyHash::of(SANDBOX_KEY)).await?;
        if !self.settings.is_local && public.is_some_and(|public| public.id == caller.id) {
            return Err(ServiceError::NotOwnSandbox("others use its public key too; use a test key of your own"));
        }
        Ok(())
    }
}
