//! What a gateway reports about money that it took: its fee, and what it took beyond the payment.

use payments_core::{Decision, Payment, PaymentId};

use super::{Result, Service, payments::EventData, retry_on_conflict};
use crate::{
    domain::{GatewayAttempt, Session},
    gateway::{AttemptState, Gateway, Receipt},
    store::{Change, Write},
};

impl Service {
    /// Commits that the gateway has the money. `next` is the session afterwards, except for what the receipt adds.
    pub(super) async fn commit_paid(
        &self,
        session: &Session,
        next: Session,
        decision: Decision,
        receipt: &Receipt,
    ) -> Result<Payment> {
        let mut write = self.records().decided(decision, next, session, EventData::Payment)?;
        let cost = receipt.cost.as_ref().and_then(|row| self.cost_of(&mut write.session, row));
        write.without_event.extend(cost);
        if let Some(what) = &receipt.surplus {
            self.add_review(&mut write.session, what);
        }
        let payment = write.session.payment.clone();
        self.commit(Change::of(Write::Payment(Box::new(write)))).await?;
        Ok(payment)
    }

    /// Asks again about a paid attempt that its gateway does not close: the customer may have paid it once more.
    pub(super) async fn look_for_surplus(&self, gateway: &dyn Gateway, id: &PaymentId) -> Result<()> {
        let Some(session) = self.store.session(id).await?.filter(|_| !gateway.closes()) else { return Ok(()) };
        let is_paid = |attempt: &&GatewayAttempt| attempt.gateway == gateway.name() && attempt.transaction.is_some();
        let Some(attempt) = session.attempt.as_ref().filter(is_paid) else { return Ok(()) };
        let found = match gateway.query(&session.payment, attempt).await? {
            AttemptState::Paid(Receipt { surplus, .. }) => surplus,
            AttemptState::Discrepancy { what, .. } => Some(what),
            _ => None,
        };
        let Some(found) = found else { return Ok(()) };
        retry_on_conflict(|| async {
            let session = self.session(id.as_str()).await?;
            let known = session.review.as_ref();
            if known.is_some_and(|review| review.what.contains(&found)) {
                return Ok(());
            }
            let what = match known.filter(|review| review.resolved.is_none()) {
                Some(review) => format!("{}; {found}", review.what),
                None => found.clone(),
            };
            self.request_review(&session, session.next(), &what).await.map(drop)
        })
        .await
    }
}
