//! Finds the money of a gateway attempt that ended: it arrived after all, or the customer paid in a forgotten tab.

use payments_core::{Cause, PaymentId};

use super::{Result, Service, confirm::awaits_gateway, retry_on_conflict};
use crate::{
    domain::Session,
    gateway::{self, AttemptState, Receipt},
};

impl Service {
    /// Asks the gateway about each ended attempt of the payment whose check is due.
    pub(super) async fn find_late_money(&self, id: &PaymentId) -> Result<()> {
        retry_on_conflict(|| async {
            match self.store.session(id).await? {
                Some(session) if !session.needs_manual_review() => self.ask_about_ended_attempts(&session).await,
                _ => Ok(()),
            }
        })
        .await
    }

    async fn ask_about_ended_attempts(&self, session: &Session) -> Result<()> {
        let now = self.ambient.now();
        let mut next = session.next();
        for (nth, ended) in session.ended_attempts.iter().enumerate() {
            if ended.check_at.is_none_or(|at| at > now) {
                continue;
            }
            // A cancel also ensures that nobody can pay the attempt any more.
            let asked =
                async { self.gateways.of_attempt(&ended.attempt)?.cancel(&session.payment, &ended.attempt).await };
            let ended = &mut next.ended_attempts[nth];
            match asked.await {
                Ok(AttemptState::Paid(receipt)) => return self.take_late_money(session, nth, &receipt).await,
                Ok(AttemptState::Discrepancy { what, .. }) => {
                    return self.review_ended(session, next, nth, &what).await;
                }
                // It may still be paid. A failed call is in the log.
                Ok(AttemptState::Pending) | Err(_) => ended.plan(false, now),
                Ok(_) => ended.plan(true, now),
            }
            if ended.attempt.is_for_a_person(now) {
                let what = ended.attempt.silence(gateway::title(ended.attempt.gateway));
                return self.review_ended(session, next, nth, &what).await;
            }
        }
        if next.ended_attempts == session.ended_attempts {
            return Ok(());
        }
        if !awaits_gateway(session) {
            next.check_at = None;
        }
        self.commit_without_event(next).await
    }

    /// Requests a manual review of an ended attempt, which becomes the present one if its money would count.
    async fn review_ended(&self, session: &Session, mut next: Session, nth: usize, what: &str) -> Result<()> {
        next.ended_attempts[nth].check_at = None;
        let now = self.ambient.now();
        if payments_core::decide(&session.payment, Cause::GatewayConfirmed, now).is_ok() {
            next.return_to(nth, now);
        }
        self.request_review(session, next, what).await.map(drop)
    }

    /// The money counts if the payment has none yet. Otherwise the customer paid twice, and a person sends the money back.
    async fn take_late_money(&self, session: &Session, nth: usize, receipt: &Receipt) -> Result<()> {
        let (now, Receipt { transaction, surplus, .. }) = (self.ambient.now(), receipt);
        let mut next = session.next();
        let ended = &mut next.ended_attempts[nth];
        ended.check_at = None;
        ended.attempt.transaction = Some(transaction.clone());
        let Ok(decision) = payments_core::decide(&session.payment, Cause::GatewayConfirmed, now) else {
            let (gateway, invoice) = (gateway::title(ended.attempt.gateway), &ended.attempt.invoice);
            let mut what = format!(
                "{gateway} took the money of an earlier attempt too: transaction {transaction} for {invoice}; send it back"
            );
            surplus.iter().for_each(|more| what = format!("{what}; {more}"));
            return self.request_review(session, next, &what).await.map(drop);
        };
        next.return_to(nth, now);
        next.check_at = None;
        let payment = self.commit_paid(session, next, decision, receipt).await?;
        tracing::info!(payment = %payment.id, "the money of an earlier attempt arrived");
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use payments_core::{RawJson, RawStatus, Timestamp};

    use crate::{
        domain::{GatewayName, Session, new_attempt, new_session},
        service::in_memory::service,
        store::{Change, PaymentWrite, Write},
    };

    #[tokio::test]
    async fn a_failed_attempt_is_queried_until_the_gateway_answers_or_a_review_begins() {
        let service = service();
        let ago = |hours: i64| Timestamp::from_millis(service.ambient.now().as_millis() - hours * 3_600_000).unwrap();
        // Nobody answers: the service has no gateway.
        let mut session = new_session();
        session.attempt = Some(new_attempt("a"));
        session.end_attempt(ago(30));
        (session.payment.raw_status, session.payment.status) = (RawStatus::Failed, RawStatus::Failed.public());
        let mut failed = Session { check_at: session.next_late_check(), ..session.next() };
        let created = PaymentWrite::new(new_session(), RawJson::of(&session.payment).unwrap(), None, None);
        service.commit(Change::of(Write::Payment(Box::new(created)))).await.unwrap();
        service.commit_without_event(failed.clone()).await.unwrap();
        service.find_late_money(&failed.payment.id).await.unwrap();
        let asked = service.session(failed.payment.id.as_str()).await.unwrap();
        let ended = &asked.ended_attempts[0];
        assert!(ended.check_at.is_some() && asked.check_at == ended.check_at && !asked.needs_manual_review());

        failed = asked.next();
        failed.ended_attempts[0].check_at = Some(ago(1));
        failed.ended_attempts[0].attempt.silent_since = Some(ago(7 * 24));
        service.commit_without_event(failed.clone()).await.unwrap();
        service.find_late_money(&failed.payment.id).await.unwrap();
        let told = service.session(failed.payment.id.as_str()).await.unwrap();
        assert!(told.needs_manual_review() && told.ended_attempts.is_empty());
        assert_eq!(told.attempt.map(|attempt| attempt.gateway), Some(GatewayName::of("wallet")));
    }
}
