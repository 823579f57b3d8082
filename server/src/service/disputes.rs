//! Disputes at gateways that report none: the operator records what the gateway's letters say.
//!
//! Each command has a reference, so that it takes effect once.

use payments_core::{Amount, Currency, Dispute, DisputeId, DisputeReport, DisputeStatus, PaymentId, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    AdminReply, Directory, Record, Result, ServiceError,
    operator_text::{amount_as_text, checked, invalid},
    retry_on_conflict,
};
use crate::domain::{DisputeMove, KnownDispute, MAX_DISPUTE_MOVES, Session};

/// Maximum length of a reference or a reason.
const MAX_TEXT_BYTES: usize = 500;

/// A command about disputes. A dispute is named by its id, or by its payment's id if that has only one.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "action", rename_all = "snake_case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum DisputeRequest {
    /// Lists the disputes that are not decided.
    List,
    /// Opens a dispute.
    Open {
        payment: String,
        #[serde(with = "amount_as_text")]
        #[schemars(with = "String")]
        amount: Amount,
        reference: String,
        reason: Option<String>,
        evidence_due_by: Option<Timestamp>,
        returns_fee: bool,
    },
    /// Records that the gateway withdrew or reinstated money.
    Move {
        dispute: String,
        #[serde(with = "amount_as_text")]
        #[schemars(with = "String")]
        amount: Amount,
        reference: String,
        is_reinstated: bool,
    },
    /// Closes a dispute.
    Close { dispute: String, outcome: DisputeOutcome },
}

/// Who won a dispute.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DisputeOutcome {
    /// The merchant.
    Won,
    /// The customer.
    Lost,
}

impl DisputeOutcome {
    fn status(self) -> DisputeStatus {
        match self {
            Self::Won => DisputeStatus::Won,
            Self::Lost => DisputeStatus::Lost,
        }
    }
}

#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DisputeRow {
    pub dispute: DisputeId,
    pub payment: PaymentId,
    pub status: DisputeStatus,
    /// In major units, exact, as the other amounts.
    pub amount: String,
    pub currency: Currency,
    pub withdrawn: String,
    pub reinstated: String,
    pub evidence_due_by: Option<Timestamp>,
    pub opened_at: Timestamp,
    pub reference: Option<String>,
    pub reason: Option<String>,
}

impl DisputeRow {
    fn of(session: &Session, dispute: &Dispute) -> Self {
        let known = session.disputes.iter().find(|known| known.dispute == dispute.id);
        Self {
            dispute: dispute.id.clone(),
            payment: session.payment.id.clone(),
            status: dispute.status.clone(),
            amount: dispute.amount.to_string(),
            currency: dispute.currency,
            withdrawn: dispute.withdrawn.to_string(),
            reinstated: dispute.reinstated.to_string(),
            evidence_due_by: dispute.evidence_due_by,
            opened_at: dispute.opened_at,
            reference: known.map(|known| known.reference.clone()),
            reason: dispute.reason.clone(),
        }
    }
}

impl Directory {
    /// Runs a command about disputes.
    pub(super) async fn dispute(&self, request: DisputeRequest) -> Result<AdminReply> {
        let dispute = match request {
            DisputeRequest::List => return Ok(AdminReply::Disputes { disputes: self.list_disputes().await? }),
            DisputeRequest::Open { payment, amount, reference, reason, evidence_due_by, returns_fee } => {
                let reference = checked("reference", &reference, MAX_TEXT_BYTES)?;
                let reason = reason.as_deref().map(|it| checked("reason", it, MAX_TEXT_BYTES)).transpose()?;
                let report = |id| DisputeReport {
                    id,
                    amount,
                    reason: reason.map(str::to_owned),
                    status: DisputeStatus::NeedsResponse,
                    evidence_due_by,
                    withdrawn: Amount::ZERO,
                    reinstated: Amount::ZERO,
                    returns_fee,
                };
                self.open_dispute(&payment, reference, report).await?
            }
            DisputeRequest::Move { dispute, amount, reference, is_reinstated } => {
                let reference = checked("reference", &reference, MAX_TEXT_BYTES)?.to_owned();
                if amount == Amount::ZERO {
                    return Err(invalid("the amount must be more than 0"));
                }
                self.move_dispute(&dispute, DisputeMove { reference, amount, is_reinstated }).await?
            }
            DisputeRequest::Close { dispute, outcome } => self.close_dispute(&dispute, outcome.status()).await?,
        };
        Ok(AdminReply::Dispute { dispute: Box::new(dispute) })
    }

    /// The disputes that are not decided, the next date for evidence first.
    async fn list_disputes(&self) -> Result<Vec<DisputeRow>> {
        let sessions = self.store.open_disputes().await?;
        let rows = sessions.iter().flat_map(|it| it.open_disputes().map(|dispute| DisputeRow::of(it, dispute)));
        let mut rows: Vec<_> = rows.collect();
        rows.sort_by_key(|row| (row.evidence_due_by.is_none(), row.evidence_due_by, row.opened_at));
        Ok(rows)
    }

    async fn open_dispute(
        &self,
        payment: &str,
        reference: &str,
        report: impl Fn(DisputeId) -> DisputeReport,
    ) -> Result<DisputeRow> {
        retry_on_conflict(|| async {
            let session = self.records().session(payment).await?;
            let slot = session.payment.developer_id.slot();
            let report = report(DisputeId::new(slot, self.ambient.now(), self.ambient.id_bytes()));
            if let Some(known) = session.disputes.iter().find(|known| known.reference == reference) {
                let dispute = dispute_of(&session, &known.dispute)?;
                return match dispute.amount == report.amount {
                    true => Ok(DisputeRow::of(&session, dispute)),
                    false => Err(invalid(format!("{} has this reference and another amount", dispute.id))),
                };
            }
            let mut next = session.next();
            let (dispute, reference) = (report.id.clone(), reference.to_owned());
            next.disputes.push(KnownDispute { dispute, reference, is_reported: false, moves: Vec::new() });
            self.report(&session, next, &report).await
        })
        .await
    }

    async fn move_dispute(&self, id: &str, moved: DisputeMove) -> Result<DisputeRow> {
        retry_on_conflict(|| async {
            let session = self.session_of(id).await?;
            let is_named = |known: &&KnownDispute| session.payment.id.as_str() == id || known.dispute.as_str() == id;
            // First look for an earlier run of the same command: by now another dispute may be open.
            for known in session.disputes.iter().filter(is_named) {
                match known.moves.iter().find(|earlier| earlier.reference == moved.reference) {
                    Some(earlier) if *earlier == moved => {
                        return Ok(DisputeRow::of(&session, dispute_of(&session, &known.dispute)?));
                    }
                    Some(_) => return Err(invalid("this reference was used for another movement of this dispute")),
                    None => {}
                }
            }
            let dispute = named(&session, id)?;
            let mut report = DisputeReport::of(dispute);
            let sum = |total: Amount| Amount::from_minor(total.as_minor().saturating_add(moved.amount.as_minor()));
            match moved.is_reinstated {
                true => report.reinstated = sum(report.reinstated),
                false if dispute.status == DisputeStatus::Won => {
                    return Err(invalid("this dispute is won; open another one for a new chargeback"));
                }
                false => report.withdrawn = sum(report.withdrawn),
            }
            // With all the money back, a lost dispute is won after all.
            if dispute.status == DisputeStatus::Lost && report.reinstated == report.withdrawn {
                report.status = DisputeStatus::Won;
            }
            let mut next = session.next();
            let known = recorded(&mut next, &dispute.id)?;
            if known.moves.len() >= MAX_DISPUTE_MOVES {
                return Err(invalid(format!("a dispute has at most {MAX_DISPUTE_MOVES} movements")));
            }
            known.moves.push(moved.clone());
            self.report(&session, next, &report).await
        })
        .await
    }

    async fn close_dispute(&self, id: &str, status: DisputeStatus) -> Result<DisputeRow> {
        retry_on_conflict(|| async {
            let session = self.session_of(id).await?;
            let dispute = named(&session, id)?;
            if dispute.status.is_closed() {
                return match dispute.status == status {
                    true => Ok(DisputeRow::of(&session, dispute)),
                    false => Err(invalid(format!("this dispute is {} already", dispute.status))),
                };
            }
            if dispute.status == DisputeStatus::Warning {
                return Err(invalid("this is an inquiry; the gateway that reports it also closes it"));
            }
            let report = DisputeReport { status: status.clone(), ..DisputeReport::of(dispute) };
            let mut next = session.next();
            recorded(&mut next, &dispute.id)?;
            self.report(&session, next, &report).await
        })
        .await
    }

    /// Commits a report of a dispute. It has one change, because each command has. `next` is the session after it, except for
    /// the payment.
    async fn report(&self, session: &Session, mut next: Session, report: &DisputeReport) -> Result<DisputeRow> {
        if let Some(decision) = payments_core::decide_dispute(&session.payment, report, self.ambient.now())? {
            next.payment = self.records().commit_decision(session, next.clone(), decision).await?;
        }
        Ok(DisputeRow::of(&next, dispute_of(&next, &report.id)?))
    }

    /// The session of a payment, or of a dispute's payment.
    async fn session_of(&self, id: &str) -> Result<Session> {
        if !id.starts_with(DisputeId::PREFIX) {
            return self.records().session(id).await;
        }
        let none = || invalid("no dispute has this id");
        let dispute: DisputeId = id.parse().map_err(|_| none())?;
        self.store.session_of_dispute(&dispute).await?.ok_or_else(none)
    }
}

fn dispute_of<'s>(session: &'s Session, id: &DisputeId) -> Result<&'s Dispute> {
    let dispute = session.payment.disputes.iter().find(|dispute| dispute.id == *id);
    dispute.ok_or(ServiceError::NotFound { what: Record::Payment })
}

/// A dispute that a person records. Refuses one that the gateway reports.
fn recorded<'s>(session: &'s mut Session, id: &DisputeId) -> Result<&'s mut KnownDispute> {
    let known = session.disputes.iter_mut().find(|known| known.dispute == *id && !known.is_reported);
    known.ok_or_else(|| invalid("the gateway reports this dispute, so the server follows it"))
}

/// The dispute of an id. A payment's id names its only open dispute, or its only one.
fn named<'s>(session: &'s Session, id: &str) -> Result<&'s Dispute> {
    let is_payment = session.payment.id.as_str() == id;
    let all: Vec<_> = session.payment.disputes.iter().filter(|it| is_payment || it.id.as_str() == id).collect();
    let open: Vec<_> = all.iter().filter(|it| !it.status.is_closed()).collect();
    match (&*open, &*all) {
        ([one], _) => Ok(one),
        ([], [one]) => Ok(one),
        ([], []) => Err(invalid("this payment has no dispute; record one with disputes open")),
        _ => Err(invalid("this payment has several disputes: name one by its own id")),
    }
}
