//! What a developer has and did.

use payments_core::{
    Account, Balance, Balances, Currency, DeveloperApp, PaymentId, RANDOM_BYTES, Volume, WorkspaceProfile,
};

use super::{Caller, Refused, Service};

impl Service {
    /// The workspace, its balances and its lifetime volume, in the key's environment.
    pub(crate) async fn account(&self, caller: &Caller) -> Result<Account, Refused> {
        let workspace = self.store.workspace(caller.workspace_id.as_str()).await?;
        let workspace = workspace.ok_or(Refused::NotFound { what: "workspace" })?;
        let bdt = self.store.figures(&caller.scope, Currency::Bdt).await?;
        let usd = self.store.figures(&caller.scope, Currency::Usd).await?;
        Ok(Account {
            workspace: WorkspaceProfile {
                id: workspace.id,
                name: workspace.name,
                slug: workspace.slug,
                website: workspace.website,
                status: workspace.status,
            },
            balance: Balances {
                bdt_balance: Balance::from_minor(bdt.balance_minor),
                usd_balance: Balance::from_minor(usd.balance_minor),
            }
            .into(),
            volume: Volume {
                bdt: Balance::from_minor(bdt.volume_minor),
                usd: Balance::from_minor(usd.volume_minor),
                total_payments: bdt.payments + usd.payments,
            },
        })
    }

    /// The balances in the key's environment.
    pub(crate) async fn balance(&self, caller: &Caller) -> Result<Balances, Refused> {
        let bdt = self.store.figures(&caller.scope, Currency::Bdt).await?;
        let usd = self.store.figures(&caller.scope, Currency::Usd).await?;
        Ok(Balances {
            bdt_balance: Balance::from_minor(bdt.balance_minor),
            usd_balance: Balance::from_minor(usd.balance_minor),
        })
    }

    /// The developer's apps, oldest first.
    pub(crate) async fn apps(&self, caller: &Caller) -> Result<Vec<DeveloperApp>, Refused> {
        Ok(self.store.apps(&caller.scope.developer_id).await?)
    }

    /// Whether the store can be read.
    pub(crate) async fn is_ready(&self) -> Result<(), Refused> {
        let nobody = PaymentId::new(self.ambient.now(), [0; RANDOM_BYTES]);
        self.store.session(&nobody).await?;
        Ok(())
    }
}
