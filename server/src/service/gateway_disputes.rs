//! Follows the disputes that a gateway reports.
//!
//! An event is only a reason to ask. [A worker](super::gateway_lists) reads the gateway's list of disputes again and again, so a
//! lost event loses no dispute.

use payments_core::{DisputeId, PaymentId, decide_dispute};

use super::{Result, Service, payments::EventData, retry_on_conflict};
use crate::{
    domain::{GatewayDispute, KnownDispute},
    store::{Change, Write},
};

impl Service {
    /// Asks the gateway about the disputes of a payment and records what it lacks.
    pub(super) async fn follow_disputes(&self, id: &PaymentId) -> Result<()> {
        let Some(session) = self.store.session(id).await? else { return Ok(()) };
        let Some(attempt) = session.attempt.as_ref().filter(|attempt| attempt.transaction.is_some()) else {
            return Ok(());
        };
        for dispute in self.gateways.of_attempt(attempt)?.disputes(attempt).await? {
            self.follow_dispute(id, &dispute).await?;
        }
        Ok(())
    }

    /// Follows a dispute that the gateway has just reported: each change of it is a commit of its own.
    pub(super) async fn follow_dispute(&self, id: &PaymentId, dispute: &GatewayDispute) -> Result<()> {
        while retry_on_conflict(|| self.follow_one_change(id, dispute)).await? {}
        Ok(())
    }

    /// Commits the next change of a dispute. Returns whether there was one.
    async fn follow_one_change(&self, id: &PaymentId, dispute: &GatewayDispute) -> Result<bool> {
        let session = self.store.session(id).await?.filter(|session| session.payment.was_paid());
        let Some(session) = session else { return Ok(false) };
        let now = self.ambient.now();
        let mut next = session.next();
        let known = session.dispute_named(&dispute.reference).cloned();
        let id = known.unwrap_or_else(|| {
            let slot = session.payment.developer_id.slot();
            let known = KnownDispute {
                dispute: DisputeId::new(slot, now, self.ambient.id_bytes()),
                reference: dispute.reference.clone(),
                is_reported: true,
                moves: Vec::new(),
            };
            next.disputes.push(known.clone());
            known.dispute
        });
        let report = dispute.report(id, self.settings.disputes_return_fee);
        let decided = match dispute.contradiction(&session) {
            None => decide_dispute(&session.payment, &report, now).map_err(|refusal| refusal.to_string()),
            Some(why) => Err(why),
        };
        let decision = match decided {
            Ok(None) => return Ok(false),
            Ok(Some(decision)) => decision,
            Err(why) => {
                let what = format!("a dispute {} of {}", dispute.reference, dispute.amount);
                return self.review_reported(&session, &what, &why).await.map(|()| false);
            }
        };
        let write = self.records().decided(decision, next, &session, EventData::Payment)?;
        let (payment, status) = (write.session.payment.id.clone(), dispute.status.clone());
        self.commit(Change::of(Write::Payment(Box::new(write)))).await?;
        tracing::info!(%payment, dispute = %report.id, %status, "followed the gateway's dispute");
        Ok(true)
    }
}
