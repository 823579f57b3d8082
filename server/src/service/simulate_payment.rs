//! The simulator of what happens to a paid test payment.

use payments_core::{DisputeId, RefundId, SimulatePayment, SimulatedEvent};

use super::{Answer, Caller, IdempotentRequest, Result, Service, payments::EventData, retry_on_conflict};
use crate::store::Write;

impl Service {
    /// Lets something happen to a test payment, and commits its event.
    pub async fn simulate_payment(
        &self,
        caller: &Caller,
        id: &str,
        params: SimulatePayment,
        request: Option<&IdempotentRequest>,
    ) -> Result<Answer> {
        retry_on_conflict(|| async {
            let session = self.own_session(caller, id).await?;
            let (slot, now) = (session.payment.developer_id.slot(), self.ambient.now());
            let refund = RefundId::new(slot, now, self.ambient.id_bytes());
            let dispute = DisputeId::new(slot, now, self.ambient.id_bytes());
            let decision = params.decide(&session.payment, refund, dispute, now)?;
            let data = match params.event {
                SimulatedEvent::Refunded | SimulatedEvent::RefundFailed => EventData::Refund { reason: None },
                _ => EventData::Payment,
            };
            let write = self.records().decided(decision, session.next(), &session, data)?;
            let body = write.json.clone();
            self.records().commit_once(vec![Write::Payment(Box::new(write))], body, request).await
        })
        .await
    }
}
