//! Finds the money of a gateway attempt that ended: it arrived after all, or the customer paid in a forgotten tab.

use payments_core::{Cause, PaymentId};

use super::{Refused, Service, confirm::awaits_gateway, retry_on_conflict};
use crate::{domain::Session, gateway::AttemptState};

impl Service {
    /// Asks the gateway about each ended attempt of a payment that is due.
    pub(super) async fn find_late_money(&self, id: &PaymentId) -> Result<(), Refused> {
        retry_on_conflict(|| async {
            match self.store.session(id).await? {
                Some(_) if planted!(LateMoneyIgnored) => Ok(()),
                Some(session) if !session.needs_manual_review() => self.ask_about_ended_attempts(&session).await,
                _ => Ok(()),
            }
        })
        .await
    }

    async fn ask_about_ended_attempts(&self, session: &Session) -> Result<(), Refused> {
        let now = self.ambient.now();
        let mut next = session.next();
        for (nth, ended) in session.ended_attempts.iter().enumerate() {
            if ended.check_at.is_none_or(|at| at > now) {
                continue;
            }
            next.ended_attempts[nth].plan(now);
            let Some(gateway) = self.gateways.named(ended.attempt.gateway) else { continue };
            // To cancel it also makes sure that nobody can pay it any more.
            match gateway.cancel(&session.payment, &ended.attempt).await {
                Ok(AttemptState::Paid { transaction }) => return self.take_late_money(session, nth, transaction).await,
                Ok(AttemptState::Discrepancy { what }) => {
                    next.ended_attempts[nth].check_at = None;
                    if payments_core::decide(&session.payment, Cause::GatewayConfirmed, now).is_ok() {
                        next.return_to(nth, now);
                    }
                    return self.request_review(session, next, &what).await.map(drop);
                }
                // A failed call is in the log.
                Ok(_) | Err(_) => {}
            }
        }
        if next.ended_attempts == session.ended_attempts {
            return Ok(());
        }
        if !awaits_gateway(session) {
            next.check_at = None;
        }
        self.commit_without_event(session, next).await
    }

    /// The money counts if the payment has none yet. Otherwise the customer paid twice, and a person sends it back.
    async fn take_late_money(&self, session: &Session, nth: usize, transaction: String) -> Result<(), Refused> {
        let now = self.ambient.now();
        let mut next = session.next();
        let ended = &mut next.ended_attempts[nth];
        ended.check_at = None;
        ended.attempt.transaction = Some(transaction.clone());
        let Ok(decision) = payments_core::decide(&session.payment, Cause::GatewayConfirmed, now) else {
            let (gateway, invoice) = (ended.attempt.gateway.title(), &ended.attempt.invoice);
            let what = format!(
                "{gateway} took the money of an earlier attempt too: transaction {transaction} for {invoice}; send it back"
            );
            return self.request_review(session, next, &what).await.map(drop);
        };
        next.return_to(nth, now);
        next.check_at = None;
        let payment = self.commit_decision(session, next, decision).await?;
        tracing::info!(payment = %payment.id, "the money of an earlier attempt arrived");
        Ok(())
    }
}
