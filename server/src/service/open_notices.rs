//! Notices: a worker computes which states somebody must look at, and tells the platform's webhook of their changes.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use payments_core::{
    Currency, DeliveryId, DeveloperId, Environment, EventId, EventKind, Notice, NoticeKind, PayoutStatus, RawJson,
    Slot, Timestamp, UnknownFields,
};
use schemars::JsonSchema;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::time::sleep;

use super::{Caller, Directory, Result, Service, manual_settlement::due_at, retry_on_conflict};
use crate::{
    cli::CommandError,
    delivery::TargetPolicy,
    domain::{Cover, Endpoint, GatewayName, KnownNotice, Notices, Outgoing, PayoutRecord, Scope, Session, owner_of},
    store::{Change, Store, StoreError, Write},
};

/// How many records of a kind one look reads in each cell.
const MAX_READ: usize = 1000;
/// How many notices of a kind are open at most. One more says how many there are beyond.
const MAX_OF_KIND: usize = 20;
/// The subject of the notice that counts the others.
const MORE: &str = "more";
/// How many events one look sends.
const MAX_TOLD: usize = 10;
const FAILING_SECONDS: i64 = 60 * 60;
/// How long before the evidence of a dispute is due it counts as due soon.
pub(super) const EVIDENCE_DUE_SOON_SECONDS: u32 = 3 * 24 * 60 * 60;
const REFUND_DUE_SOON_SECONDS: i64 = 24 * 60 * 60;
const PAYOUT_WAITS_SECONDS: i64 = 24 * 60 * 60;

/// How a server keeps notices.
pub struct NoticeSettings {
    pub every: Duration,
    pub webhook: Option<NoticesWebhook>,
    /// Of a server that makes backups.
    pub backups: Option<Arc<LastBackup>>,
}

/// The newest backup of a series.
pub struct LastBackup {
    every: Duration,
    at: AtomicI64,
}

impl LastBackup {
    /// Begins with a backup that was due now.
    pub fn due_now(every: Duration, now: Timestamp) -> Self {
        let last = Self { every, at: AtomicI64::default() };
        last.made_before(every, now);
        last
    }

    /// Records that the newest backup was made this long before `now`.
    pub fn made_before(&self, ago: Duration, now: Timestamp) {
        let ago = i64::try_from(ago.as_millis()).unwrap_or(i64::MAX);
        self.at.store(now.as_millis().saturating_sub(ago), Ordering::Relaxed);
    }

    fn at(&self) -> Timestamp {
        Timestamp::from_millis(self.at.load(Ordering::Relaxed)).unwrap_or(Timestamp::UNIX_EPOCH)
    }
}

/// The platform's own webhook, as an endpoint.
pub struct NoticesWebhook(Endpoint);

impl NoticesWebhook {
    pub fn new(url: &str, secret: &SecretString, targets: &TargetPolicy) -> Result<Self, CommandError> {
        targets.check_url(url).map_err(|error| format!("--notices-webhook: {error}"))?;
        webhook_verify::Secret::new(secret.expose_secret()).map_err(|error| format!("--notices-secret: {error}"))?;
        let endpoint = json!({"environment": "live", "endpoint": {"id": "wh_notices", "developerId": "dev_platform",
            "url": url, "secret": secret.expose_secret(), "events": ["*"], "isActive": true,
            "createdAt": Timestamp::UNIX_EPOCH, "updatedAt": Timestamp::UNIX_EPOCH}});
        Ok(Self(serde_json::from_value(endpoint)?))
    }
}

/// What a look finds.
#[derive(Default)]
struct Facts {
    /// Endpoints that fail or were disabled.
    endpoints: Vec<Endpoint>,
    gateways_down: Vec<GatewayName>,
    refunds: Vec<Session>,
    /// Within how many days a refund must be sent by hand.
    refund_days: u16,
    disputes: Vec<Session>,
    payouts: Vec<PayoutRecord>,
    covers: BTreeMap<Currency, Cover>,
    /// The newest backup and the interval between backups.
    backup: Option<(Timestamp, Duration)>,
}

impl Facts {
    /// The notices that are to be open.
    fn notices(&self, now: Timestamp) -> Vec<KnownNotice> {
        use NoticeKind::{
            BackupOld, DisputeDue, EndpointDisabled, EndpointFailing, GatewayDown, NotCovered, PayoutWaiting, RefundDue,
        };
        let is_within = |due: Timestamp, seconds: i64| due.as_millis() - now.as_millis() <= seconds * 1000;
        let mut found = Vec::new();
        for endpoint in &self.endpoints {
            let Endpoint { endpoint: it, failing_since, environment, .. } = endpoint;
            let (kind, since) = match (&it.disabled_reason, failing_since) {
                (Some(_), _) => (EndpointDisabled, it.updated_at),
                (None, Some(since)) if is_within(*since, -FAILING_SECONDS) => (EndpointFailing, *since),
                _ => continue,
            };
            let notice = notice(kind, it.id.as_str(), since);
            let notice = Notice { environment: Some(*environment), ..notice };
            found.push(KnownNotice::new(notice, Some(it.developer_id.clone())));
        }
        let mut of_payment = |session: &Session, notice: Notice, due: Timestamp| {
            let payment = &session.payment;
            let (id, environment) = (Some(payment.id.to_string()), Some(payment.environment));
            let notice = Notice { payment: id, environment, due_at: Some(due), ..notice };
            found.push(KnownNotice::new(notice, Some(payment.developer_id.clone())));
        };
        for session in &self.refunds {
            for refund in session.unsettled_refunds() {
                let due = due_at(refund.created_at, self.refund_days);
                if is_within(due, REFUND_DUE_SOON_SECONDS) {
                    of_payment(session, notice(RefundDue, refund.id.as_str(), refund.created_at), due);
                }
            }
        }
        for session in &self.disputes {
            for dispute in session.open_disputes() {
                if let Some(due) =
                    dispute.evidence_due_by.filter(|due| is_within(*due, EVIDENCE_DUE_SOON_SECONDS.into()))
                {
                    of_payment(session, notice(DisputeDue, dispute.id.as_str(), dispute.opened_at), due);
                }
            }
        }
        let waits = |it: &&PayoutRecord| {
            let payout = &it.payout;
            let is_old = is_within(payout.created_at, -PAYOUT_WAITS_SECONDS);
            payout.environment == Environment::Live && payout.status == PayoutStatus::Requested && is_old
        };
        for PayoutRecord { payout, scope, .. } in self.payouts.iter().filter(waits) {
            let notice = notice(PayoutWaiting, payout.id.as_str(), payout.created_at);
            let notice = Notice { environment: Some(payout.environment), ..notice };
            found.push(KnownNotice::new(notice, Some(scope.developer_id.clone())));
        }
        let mut of_platform =
            |kind, subject: &str, since| found.push(KnownNotice::new(notice(kind, subject, since), None));
        for gateway in &self.gateways_down {
            of_platform(GatewayDown, gateway.as_str(), now);
        }
        for (currency, _) in self.covers.iter().filter(|(_, cover)| cover.surplus() < 0) {
            of_platform(NotCovered, currency.code(), now);
        }
        if let Some((made_at, every)) = self.backup
            && is_within(made_at, -i64::try_from(2 * every.as_secs()).unwrap_or(i64::MAX / 1000))
        {
            of_platform(BackupOld, "backup", made_at);
        }
        capped(found)
    }
}

fn notice(kind: NoticeKind, subject: &str, since: Timestamp) -> Notice {
    let (subject, unknown) = (subject.to_owned(), UnknownFields::new());
    Notice { kind, subject, payment: None, environment: None, since, due_at: None, more: None, unknown }
}

/// The oldest notices of each kind, and one that counts the others.
fn capped(mut found: Vec<KnownNotice>) -> Vec<KnownNotice> {
    found.sort_by(|a, b| (a.notice.since, &a.notice.subject).cmp(&(b.notice.since, &b.notice.subject)));
    let mut kept: Vec<KnownNotice> = Vec::new();
    for kind in NoticeKind::KNOWN {
        let of_kind: Vec<_> = found.iter().filter(|it| it.notice.kind == *kind).collect();
        kept.extend(of_kind.iter().take(MAX_OF_KIND).map(|it| (*it).clone()));
        if let Some(first) = of_kind.get(MAX_OF_KIND) {
            let more = u32::try_from(of_kind.len() - MAX_OF_KIND).ok();
            kept.push(KnownNotice::new(Notice { more, ..notice(kind.clone(), MORE, first.notice.since) }, None));
        }
    }
    kept
}

/// A notice in a sentence, for the operator.
fn sentence(notice: &Notice) -> String {
    let Notice { kind, subject, payment, since, due_at, more, .. } = notice;
    if let Some(more) = more {
        return format!("{more} more of the kind {kind}");
    }
    let due = due_at.map(|due| format!(", due {due}")).unwrap_or_default();
    let of = payment.as_ref().map(|payment| format!(" of {payment}")).unwrap_or_default();
    match kind {
        NoticeKind::EndpointFailing => format!("endpoint {subject} has taken nothing since {since}"),
        NoticeKind::EndpointDisabled => format!("endpoint {subject} was disabled on {since}"),
        NoticeKind::RefundDue => format!("refund {subject}{of} is to be sent by hand{due}"),
        NoticeKind::DisputeDue => format!("dispute {subject}{of} needs evidence{due}"),
        NoticeKind::PayoutWaiting => format!("payout {subject} waits for approval since {since}"),
        NoticeKind::GatewayDown => format!("{subject} does not answer since {since}"),
        NoticeKind::NotCovered => format!("what merchants are owed in {subject} is not covered since {since}"),
        NoticeKind::BackupOld => format!("the newest backup is of {since}"),
        _ => format!("{kind} {subject}"),
    }
}

/// A command about notices.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "action", rename_all = "snake_case", deny_unknown_fields)]
pub enum NoticeRequest {
    /// Lists the open notices.
    List,
}

/// A row of `notices list`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NoticeRow {
    #[serde(flatten)]
    pub notice: Notice,
    pub developer_id: Option<DeveloperId>,
    /// The notice in a sentence.
    pub text: String,
}

impl NoticeRow {
    fn of(known: &KnownNotice) -> Self {
        let KnownNotice { notice, developer_id, .. } = known;
        Self { notice: notice.clone(), developer_id: developer_id.clone(), text: sentence(notice) }
    }
}

impl Directory {
    /// Runs a command about notices.
    pub(super) async fn notices(&self, NoticeRequest::List: NoticeRequest) -> Result<Vec<NoticeRow>> {
        Ok(self.store.notices().await?.unwrap_or_default().open().map(NoticeRow::of).collect())
    }
}

/// How many notices of each kind are open.
pub(super) async fn count_notices(store: &Store) -> Result<BTreeMap<String, i64>, StoreError> {
    let mut counts = BTreeMap::new();
    for known in store.notices().await?.unwrap_or_default().open() {
        *counts.entry(known.notice.kind.to_string()).or_default() += 1;
    }
    Ok(counts)
}

impl Service {
    /// The open notices of the caller's workspace and environment.
    pub async fn own_notices(&self, caller: &Caller) -> Result<Vec<Notice>> {
        let Scope { developer_id, environment } = &caller.scope;
        let is_own = |known: &&KnownNotice| {
            known.developer_id.as_ref().is_some_and(|it| owner_of(it) == owner_of(developer_id))
                && known.notice.environment.is_none_or(|it| it == *environment)
        };
        let notices = self.store.notices().await?.unwrap_or_default();
        Ok(notices.open().filter(is_own).map(|known| known.notice.clone()).collect())
    }

    /// Looks for notices, and tells the platform's webhook of them, forever. Several servers may do it: the record's version
    /// makes one of them count, and an event that two send has one id.
    pub async fn keep_notices(self: Arc<Self>, settings: NoticeSettings) {
        loop {
            if let Err(error) = self.look_for_notices(&settings).await {
                tracing::warn!(%error, "could not look for notices; trying again");
            }
            if let Some(NoticesWebhook(endpoint)) = &settings.webhook
                && let Err(error) = self.tell_notices(endpoint).await
            {
                tracing::warn!(%error, "could not tell a notice; trying again");
            }
            sleep(settings.every).await;
        }
    }

    async fn look_for_notices(&self, settings: &NoticeSettings) -> Result<()> {
        let held_back = self.gateways.with_health().filter(|(_, health)| health.is_held_back());
        let gateways_down = held_back.map(|(declared, _)| declared.name).collect();
        let facts = Facts {
            endpoints: self.store.troubled_endpoints(MAX_READ).await?,
            gateways_down,
            refunds: self.store.some_manual_settlements(MAX_READ).await?,
            refund_days: self.settings.retention.manual_refund_days,
            disputes: self.store.some_open_disputes(MAX_READ).await?,
            payouts: self.store.some_open_payouts(MAX_READ).await?,
            covers: self.store.gauges().await?.covers,
            backup: settings.backups.as_ref().map(|last| (last.at(), last.every)),
        };
        let present = facts.notices(self.ambient.now());
        let event = || {
            let id = || EventId::new(Slot::FIRST, self.ambient.now(), self.ambient.id_bytes());
            settings.webhook.as_ref().map(|_| id())
        };
        self.change_notices(|known| known.after(&present, self.ambient.now(), event)).await
    }

    /// Commits a change of the notices, if it is one.
    async fn change_notices(&self, change: impl Fn(&Notices) -> Notices) -> Result<()> {
        retry_on_conflict(|| async {
            let stored = self.store.notices().await?;
            let version = stored.as_ref().map_or(0, |stored| stored.version + 1);
            let stored = stored.unwrap_or_default();
            let next = change(&stored);
            if next.notices == stored.notices {
                return Ok(());
            }
            Ok(self.commit(Change::of(Write::Notices(Box::new(Notices { version, ..next })))).await?)
        })
        .await
    }

    /// Sends the events that are due.
    async fn tell_notices(&self, endpoint: &Endpoint) -> Result<()> {
        let stored = self.store.notices().await?.unwrap_or_default();
        let now = self.ambient.now();
        let due = stored.notices.iter().filter_map(|known| Some((known, known.untold.as_ref()?)));
        for (known, untold) in due.filter(|(_, untold)| untold.next_at <= now).take(MAX_TOLD) {
            let event = &untold.event;
            let kind = EventKind::from(if known.closed_at.is_some() { "notice.closed" } else { "notice.opened" });
            let row = serde_json::to_value(NoticeRow::of(known))?;
            let envelope =
                RawJson::of(&json!({"id": event, "event": kind, "created_at": event.created_at(), "data": row}))?;
            let id = DeliveryId::new(Slot::FIRST, now, self.ambient.id_bytes());
            let mut outgoing = Outgoing::new(id, &endpoint.scope(), &endpoint.endpoint.id, &kind, envelope, now);
            if let Err(error) = self.sender.ping(endpoint, &mut outgoing.delivery).await {
                tracing::warn!(%error, "an event of a notice was not sent; trying again");
                return Ok(());
            }
            let is_taken = outgoing.delivery.status == payments_core::DeliveryStatus::Success;
            self.change_notices(|known| {
                let mut next = known.clone();
                if !next.told(event, is_taken, self.ambient.now()) {
                    tracing::error!(%event, "the webhook of --notices-webhook did not take an event of a notice; given up");
                }
                next
            })
            .await?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
