//! Accounts, apps, and the server's health and metrics.

use std::collections::BTreeMap;

use payments_core::{
    Account, AppId, Balance, Balances, Currency, DeveloperApp, DeveloperId, PaymentId, RANDOM_BYTES, Slot,
    UnknownFields, Volume, WorkspaceProfile,
};

use super::{
    Caller, Directory, Record, Result, Service, ServiceError,
    manual_settlement::due_at,
    open_notices::{EVIDENCE_DUE_SOON_SECONDS, count_notices},
    workspace_limits::shown,
};
use crate::{
    domain::{Workspace, owner_of},
    metrics::Observed,
};

impl Service {
    /// The workspace with its balances and lifetime volume, in the key's environment.
    pub async fn account(&self, caller: &Caller) -> Result<Account> {
        let workspace = self.directory.workspace(caller.workspace_id.as_str()).await?;
        let (balances, volume) = self.totals(caller).await?;
        Ok(Account {
            workspace: WorkspaceProfile {
                id: workspace.id,
                name: workspace.name,
                slug: workspace.slug,
                website: workspace.website,
                status: workspace.status,
                unknown: UnknownFields::new(),
            },
            balance: balances.into(),
            volume,
            limits: shown(&workspace.limits),
            unknown: UnknownFields::new(),
        })
    }

    pub async fn balance(&self, caller: &Caller) -> Result<Balances> {
        Ok(self.totals(caller).await?.0)
    }

    async fn totals(&self, caller: &Caller) -> Result<(Balances, Volume)> {
        let bdt = self.store.totals(&caller.scope, Currency::Bdt).await?;
        let usd = self.store.totals(&caller.scope, Currency::Usd).await?;
        let (available, pending) = self.available(&caller.scope).await?;
        let balances = Balances {
            bdt_balance: Balance::from_minor(bdt.balance_minor),
            usd_balance: Balance::from_minor(usd.balance_minor),
            available: Some(available),
            pending: Some(pending),
            unknown: UnknownFields::new(),
        };
        let volume = Volume {
            bdt: Balance::from_minor(bdt.volume_minor),
            usd: Balance::from_minor(usd.volume_minor),
            total_payments: bdt.payments + usd.payments,
            unknown: UnknownFields::new(),
        };
        Ok((balances, volume))
    }

    /// The developer's apps, oldest first.
    pub async fn apps(&self, caller: &Caller) -> Result<Vec<DeveloperApp>> {
        let apps = self.directory.store.apps(&owner_of(&caller.scope.developer_id)).await?;
        Ok(apps.into_iter().map(|app| app.app).collect())
    }

    /// Reads the metrics that the server computes only on request.
    pub async fn observe(&self) -> Result<Observed> {
        let mut payments = BTreeMap::<_, u64>::new();
        let gauges = self.store.gauges().await?;
        for (environment, status, count) in gauges.payments {
            *payments.entry((environment, status.as_str().to_owned())).or_default() += count;
        }
        let now = self.ambient.now();
        let oldest = self.store.oldest_in_outbox().await?;
        let sessions = self.store.open_disputes().await?;
        let disputes = sessions.iter().flat_map(|session| session.open_disputes());
        let due: Vec<_> = disputes.map(|dispute| dispute.evidence_due_by).collect();
        let sent_by_hand = self.store.manual_settlements().await?;
        let waiting = || sent_by_hand.iter().flat_map(|session| session.unsettled_refunds()).map(|it| it.created_at);
        let days = self.settings.retention.manual_refund_days;
        let soon = now.plus_seconds(EVIDENCE_DUE_SOON_SECONDS);
        let count = |length: usize| i64::try_from(length).unwrap_or(i64::MAX);
        let sum = |sum: u64| i64::try_from(sum).unwrap_or(i64::MAX);
        Ok(Observed {
            payments,
            oldest_in_outbox_seconds: oldest.map_or(0, |at| (now.as_millis() - at.as_millis()) / 1000),
            outbox: sum(gauges.outbox),
            retries_waiting: sum(gauges.waiting),
            reviews: count(self.store.manual_reviews().await?.len()),
            manual_settlements: count(sent_by_hand.len()),
            refunds_overdue: count(waiting().filter(|at| due_at(*at, days) <= now).count()),
            oldest_refund_seconds: waiting().min().map_or(0, |at| (now.as_millis() - at.as_millis()) / 1000),
            disputes: count(due.len()),
            coverage: gauges.covers.iter().map(|(currency, it)| (*currency, it.surplus())).collect(),
            notices: count_notices(&self.store).await?,
            disputes_due: count(due.iter().flatten().filter(|due| **due <= soon).count()),
        })
    }

    /// Fails if the store cannot be read, or may not be written.
    pub async fn is_ready(&self) -> Result<()> {
        let unknown = PaymentId::new(Slot::FIRST, self.ambient.now(), [0; RANDOM_BYTES]);
        self.store.session(&unknown).await?;
        Ok(self.store.prove_readiness().await?)
    }
}

impl Directory {
    pub(super) async fn workspace(&self, id: &str) -> Result<Workspace> {
        self.store.workspace(id).await?.ok_or(ServiceError::NotFound { what: Record::Workspace })
    }

    pub(super) async fn own_app(&self, developer: &DeveloperId, id: &AppId) -> Result<DeveloperApp> {
        self.store.app(&owner_of(developer), id).await?.map(|app| app.app).ok_or(NO_APP)
    }
}

pub(super) const NO_APP: ServiceError = ServiceError::NotFound { what: Record::App };
