//! The operator's side of live payouts: approvals, batches for the bank, and the bank's answers.
//!
//! A payout is sent once. The command first marks it as sent in a named batch, and then reads the batch. If the command
//! is killed in between, run it again: it only reads a batch that exists.

use payments_core::{
    Currency, DestinationKind, Environment, KeyId, Payout, PayoutId, PayoutStatus, PayoutStep, Timestamp, WorkspaceId,
    decide_payout,
};
use schemars::JsonSchema;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use super::{
    Acting, AdminReply, AdminRequest, Directory, Record, Result, ServiceError,
    operator_text::{invalid, named},
    payout_steps::was_made,
    payouts::PURPOSE,
};
use crate::{
    domain::{Actor, PayoutRecord, Scope, owner_of},
    sealed,
};

/// How many payouts of a merchant are read at once.
const PART: usize = 100;
/// Maximum length of a batch's name.
const MAX_BATCH_BYTES: usize = 64;

/// A command about payouts.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "action", rename_all = "snake_case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum PayoutRequest {
    /// Lists the open payouts, or all of a status.
    List { status: Option<PayoutStatus> },
    /// Records what happened to payouts, or only checks whether it would refuse that.
    Record { rows: Vec<PayoutRow>, is_check: bool },
    /// Sends every approved payout that may be sent as a batch. A batch that is there is only read.
    Send {
        batch: String,
        /// The key under which the numbers are encrypted. It stays in the process.
        #[serde(skip)]
        payout_key: Option<SecretString>,
    },
}

/// What happened to a payout.
#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct PayoutRow {
    pub payout: String,
    pub outcome: PayoutOutcome,
}

#[derive(Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PayoutOutcome {
    Approved { by: String },
    Cancelled { reason: String },
    Paid { reference: String },
    Failed { reason: String },
    Unknown { reason: String },
    Returned { reason: String },
}

impl PayoutOutcome {
    /// Checks its text. Returns the step, and who makes it.
    fn step(&self) -> Result<(PayoutStep, Actor)> {
        let reason = |text| named("reason", text).map(str::to_owned);
        let step = match self {
            Self::Approved { by } => {
                // Nobody approves in another person's name.
                let acting = Acting::person();
                let by = named("name", acting.as_deref().unwrap_or(by))?;
                // A key of the merchant is not another person.
                let by = by.parse().map_or_else(|_| Actor::Person(by.to_owned()), |key: KeyId| Actor::Key(key));
                return Ok((PayoutStep::Approved, by));
            }
            Self::Cancelled { reason: it } => PayoutStep::Cancelled { reason: Some(reason(it)?) },
            Self::Paid { reference } => PayoutStep::Paid { reference: named("reference", reference)?.to_owned() },
            Self::Failed { reason: it } => PayoutStep::Failed { reason: reason(it)? },
            Self::Unknown { reason: it } => PayoutStep::Unknown { reason: reason(it)? },
            Self::Returned { reason: it } => PayoutStep::Returned { reason: reason(it)? },
        };
        Ok((step, Actor::Platform))
    }
}

/// The answer to a [`PayoutRequest`].
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum PayoutReply {
    Listed {
        listed: Vec<ListedPayout>,
    },
    Recorded {
        recorded: Vec<ListedPayout>,
    },
    /// A row is refused, and the later ones are not recorded.
    Refused {
        row: usize,
        why: String,
    },
    /// The payouts of the batch, and the approved ones that cannot be sent now.
    Sent {
        sent: Vec<SentPayout>,
        kept: Vec<KeptPayout>,
    },
}

/// A payout as the operator sees it.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListedPayout {
    pub payout: PayoutId,
    pub workspace: Option<WorkspaceId>,
    /// In major units, exact.
    pub amount: String,
    pub currency: Currency,
    pub status: PayoutStatus,
    pub kind: DestinationKind,
    pub holder: String,
    pub institution: String,
    pub last4: String,
    pub requested_at: Timestamp,
    pub requested_by: String,
    pub batch: Option<String>,
}

/// A payout of a batch, with the whole number of its account or wallet.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct SentPayout {
    pub payout: PayoutId,
    /// In major units, exact.
    pub amount: String,
    pub currency: Currency,
    pub kind: DestinationKind,
    pub holder: String,
    pub institution: String,
    pub number: String,
}

/// An approved payout that cannot be sent now.
#[derive(Serialize, Deserialize, JsonSchema)]
pub struct KeptPayout {
    pub payout: PayoutId,
    pub why: String,
}

/// The request with the key of a running server.
pub(super) fn with_key(mut request: AdminRequest, key: Option<&SecretString>) -> AdminRequest {
    if let AdminRequest::Payouts(PayoutRequest::Send { payout_key, .. }) = &mut request {
        *payout_key = key.cloned();
    }
    request
}

impl Directory {
    pub(super) async fn payouts(&self, request: PayoutRequest) -> Result<AdminReply> {
        let payouts = match request {
            PayoutRequest::List { status } => PayoutReply::Listed { listed: self.list_payouts(status).await? },
            PayoutRequest::Record { rows, is_check } => self.record_payouts(&rows, is_check).await?,
            PayoutRequest::Send { batch, payout_key } => self.send_payouts(&batch, payout_key.as_ref()).await?,
        };
        Ok(AdminReply::Payouts { payouts })
    }

    async fn list_payouts(&self, status: Option<PayoutStatus>) -> Result<Vec<ListedPayout>> {
        let records = match status {
            Some(status) if !status.is_open() => self.all_payouts(&status).await?,
            status => {
                let mut open = self.store.open_payouts().await?;
                open.retain(|it| is_live(it) && status.as_ref().is_none_or(|status| it.payout.status == *status));
                open
            }
        };
        let mut listed = Vec::new();
        for record in records {
            listed.push(self.listed(record).await?);
        }
        Ok(listed)
    }

    /// The payouts of a status, oldest first.
    async fn all_payouts(&self, status: &PayoutStatus) -> Result<Vec<PayoutRecord>> {
        let mut found = Vec::new();
        for workspace in self.store.workspaces().await? {
            let scope = Scope { developer_id: workspace.developer_id, environment: Environment::Live };
            let mut after = None;
            loop {
                let part = self.store.payouts(&scope, after.as_ref(), PART).await?.unwrap_or_default();
                let is_full = part.len() == PART;
                after = part.last().map(|it| it.payout.id.clone());
                found.extend(part.into_iter().filter(|it| it.payout.status == *status));
                if !is_full {
                    break;
                }
            }
        }
        found.sort_by(|a, b| a.payout.id.cmp(&b.payout.id));
        Ok(found)
    }

    async fn listed(&self, record: PayoutRecord) -> Result<ListedPayout> {
        let workspace = self.store.workspace_of(&owner_of(&record.scope.developer_id)).await?;
        let PayoutRecord { payout, requested_by, batch, .. } = record;
        let Payout { id, amount, currency, status, destination, created_at, .. } = payout;
        Ok(ListedPayout {
            payout: id,
            workspace: workspace.map(|workspace| workspace.id),
            amount: amount.to_string(),
            currency,
            status,
            kind: destination.kind,
            holder: destination.holder,
            institution: destination.institution,
            last4: destination.last4,
            requested_at: created_at,
            requested_by: requested_by.to_string(),
            batch,
        })
    }

    /// Records rows in their order, up to the first one that is refused.
    async fn record_payouts(&self, rows: &[PayoutRow], is_check: bool) -> Result<PayoutReply> {
        let mut recorded = Vec::new();
        for (row, it) in rows.iter().enumerate() {
            let outcome = match self.record_payout(it, is_check).await {
                Err(ServiceError::Unavailable(error)) => return Err(error.into()),
                outcome => outcome,
            };
            match outcome {
                Ok(record) => recorded.push(self.listed(record).await?),
                Err(error) => return Ok(PayoutReply::Refused { row, why: error.to_string() }),
            }
        }
        Ok(PayoutReply::Recorded { recorded })
    }

    async fn record_payout(&self, row: &PayoutRow, is_check: bool) -> Result<PayoutRecord> {
        let (step, by) = row.outcome.step()?;
        let none = || ServiceError::NotFound { what: Record::Payout };
        let id: PayoutId = row.payout.parse().map_err(|_| none())?;
        let before = self.store.payout(&id).await?.ok_or_else(none)?;
        if !is_live(&before) {
            return Err(invalid("this is a test payout, which the simulator sends"));
        }
        if is_check {
            if !was_made(&before.payout, &step) {
                decide_payout(&before.payout, step, self.ambient.now())?;
            }
            return Ok(before);
        }
        self.records().step_payout(&id, &step, &by, None).await
    }

    async fn send_payouts(&self, batch: &str, key: Option<&SecretString>) -> Result<PayoutReply> {
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
        if batch.is_empty() || batch.len() > MAX_BATCH_BYTES || !batch.bytes().all(is_plain) {
            return Err(invalid(format!(
                "the batch's name must be 1 to {MAX_BATCH_BYTES} letters, digits and hyphens"
            )));
        }
        let key = || {
            let error =
                "the numbers of accounts are encrypted; set PAYMENTS_PAYOUT_KEY, for the server if one runs here";
            key.ok_or_else(|| invalid(error))
        };
        let (mut sent, mut kept) = (self.store.payouts_in_batch(batch).await?, Vec::new());
        if sent.is_empty() {
            for open in self.store.open_payouts().await? {
                if is_live(&open) && open.payout.status == PayoutStatus::Approved {
                    kept.extend(self.send_payout(open, batch, key()?).await?);
                }
            }
            sent = self.store.payouts_in_batch(batch).await?;
        }
        let sent = sent.into_iter().map(|record| {
            let number =
                number_of(&record, key()?).ok_or_else(|| invalid(format!("{}: {OTHER_KEY}", record.payout.id)))?;
            let Payout { id, amount, currency, destination, .. } = record.payout;
            Ok(SentPayout {
                payout: id,
                amount: amount.to_string(),
                currency,
                kind: destination.kind,
                holder: destination.holder,
                institution: destination.institution,
                number: number.expose_secret().to_owned(),
            })
        });
        Ok(PayoutReply::Sent { sent: sent.collect::<Result<_>>()?, kept })
    }

    /// Marks a payout as sent. Returns why it cannot be sent now.
    async fn send_payout(&self, open: PayoutRecord, batch: &str, key: &SecretString) -> Result<Option<KeptPayout>> {
        let id = open.payout.id.clone();
        if number_of(&open, key).is_none() {
            return Ok(Some(KeptPayout { payout: id, why: OTHER_KEY.to_owned() }));
        }
        match self.records().step_payout(&id, &PayoutStep::Sent, &Actor::Platform, Some(batch)).await {
            // Another command has just sent it or cancelled it.
            Ok(_) | Err(ServiceError::Payout(_)) => Ok(None),
            Err(error @ (ServiceError::Unavailable(_) | ServiceError::OutcomeUnknown)) => Err(error),
            Err(error) => Ok(Some(KeptPayout { payout: id, why: error.to_string() })),
        }
    }
}

const OTHER_KEY: &str = "its account's number is encrypted under another key; set PAYMENTS_PAYOUT_KEY to that one";

fn is_live(record: &PayoutRecord) -> bool {
    record.scope.environment == Environment::Live
}

/// The whole number of a payout's account or wallet.
fn number_of(record: &PayoutRecord, key: &SecretString) -> Option<SecretString> {
    sealed::open(key, PURPOSE, &hex::decode(&record.sealed_number).ok()?)
}
