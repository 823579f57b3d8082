//! Notices of gateways: each is a reason to ask the gateway.

use payments_core::PaymentId;
use warp::http::HeaderMap;

use super::{Result, Service, ServiceError, confirm::awaits_gateway, retry_on_conflict};
use crate::gateway::{Declaration, Gateway, Notice, NoticeError, NoticeSubject, PaymentOf};

impl Service {
    fn sender_of_notice(&self, declared: &Declaration) -> Result<&dyn Gateway, NoticeError> {
        self.gateways.named(declared.name).ok_or(NoticeError::NotConfigured(declared.title))
    }

    /// Refuses headers that fit no notice of the gateway.
    pub fn check_notice(&self, declared: &Declaration, headers: &HeaderMap) -> Result<()> {
        Ok(self.sender_of_notice(declared)?.check_notice(headers, self.ambient.now())?)
    }

    /// Reads a notice, if its signature fits, and does what follows: asks about an attempt, refunds or disputes.
    pub async fn take_notice(&self, declared: &Declaration, headers: &HeaderMap, body: &[u8]) -> Result<()> {
        let gateway = self.sender_of_notice(declared)?;
        let Some(Notice { subject, claimed }) = gateway.notice(headers, body, self.ambient.now()).await? else {
            return Ok(());
        };
        let (NoticeSubject::Attempt(of) | NoticeSubject::Refunds { of, .. } | NoticeSubject::Disputes(of)) = &subject;
        if let Some(payment) = self.payment_of(gateway, of).await? {
            match subject {
                NoticeSubject::Attempt(_) => {
                    self.query_soon(&payment).await?;
                    self.look_for_surplus(gateway, &payment).await?;
                }
                NoticeSubject::Disputes(_) => self.follow_disputes(&payment).await?,
                NoticeSubject::Refunds { has_failed, .. } => match self.follow_refunds(&payment).await {
                    // The request that made the refund records it. A failure comes again.
                    Err(ServiceError::RefundInProgress) if !has_failed => {}
                    followed => followed?,
                },
            }
        }
        // Commit only now: if this failed, the gateway sends the notice again.
        if let Some(claimed) = claimed
            && let Err(error) = claimed.commit().await
        {
            tracing::debug!(%error, "could not mark a notice as handled; it may come again");
        }
        Ok(())
    }

    /// The payment that a notice names; `None` if this server did not make it.
    async fn payment_of(&self, gateway: &dyn Gateway, of: &PaymentOf) -> Result<Option<PaymentId>> {
        Ok(match of {
            PaymentOf::Payment(payment) => Some(payment.clone()),
            PaymentOf::Transaction(transaction) => gateway.payment_of(transaction).await?,
            PaymentOf::Reference(reference) => {
                let found = self.store.payments_at_gateway(gateway.name(), &[reference]).await?;
                found.into_iter().flatten().next()
            }
        })
    }

    /// Schedules a query of a payment's gateway for now.
    async fn query_soon(&self, id: &PaymentId) -> Result<()> {
        retry_on_conflict(|| async {
            let Some(session) = self.store.session(id).await? else { return Ok(()) };
            let now = self.ambient.now();
            let mut next = session.next();
            if awaits_gateway(&session) {
                next.check_at = Some(now);
            } else if session.ended_attempts.is_empty() || session.needs_manual_review() {
                return Ok(());
            }
            // Also the attempts that the server no longer queries by itself.
            next.ended_attempts.iter_mut().for_each(|ended| ended.check_at = Some(now));
            self.commit_without_event(next).await
        })
        .await
    }
}
