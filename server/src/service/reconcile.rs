//! Reconciles payments and refunds with their gateways until each is decided.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use payments_core::PaymentId;
use tokio::time::{MissedTickBehavior, interval};
use webhook_verify::replay::Claimed;

use super::{Hint, Refused, Service, confirm::awaits_gateway, retry_on_conflict};
use crate::{
    gateway::{EventAbout, Stripe, StripeEvent},
    store::{Claim, Lease, Queue, Work},
};

/// Poll interval.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum payments per poll.
const BATCH_SIZE: usize = 200;
/// Maximum payments that a server reconciles concurrently.
const CONCURRENCY: usize = 16;
/// Lease of a server's claims. If two servers work on one payment, the payment's version admits only one change.
const LEASE_SECONDS: u32 = 600;

impl Service {
    /// Reconciles payments and refunds when they are due. Runs forever.
    pub(crate) async fn reconcile(self: Arc<Self>) {
        let mut ticks = interval(POLL_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let lease = Lease::new(self.server, self.ambient.now(), LEASE_SECONDS);
            match self.store.claim(Queue::GatewayChecks, &lease, BATCH_SIZE).await {
                Ok(due) => stream::iter(due).for_each_concurrent(CONCURRENCY, |claim| self.handle(claim)).await,
                Err(error) => tracing::error!(%error, "could not claim payments to reconcile; trying again"),
            }
        }
    }

    async fn handle(&self, claim: Claim) {
        if let Work::GatewayCheck(id) = &claim.work {
            self.reconcile_payment(id).await;
        }
        if let Err(error) = self.store.release(&claim).await {
            tracing::warn!(%error, "could not release the claim on a gateway check; it ends with its lease");
        }
    }

    async fn reconcile_payment(&self, id: &PaymentId) {
        let outcome = match self.store.session(id).await {
            Ok(Some(session)) if session.pending_refund.is_some() => {
                self.finish_refund(id.as_str(), None).await.map(|_| ())
            }
            Ok(_) => self.confirm(id, Hint::None).await.map(|_| ()),
            Err(error) => Err(error.into()),
        };
        match outcome {
            // A concurrent request finished the same refund.
            Ok(()) | Err(Refused::Moved) => {}
            // The gateway call is in the log. The server queries again later.
            Err(Refused::Gateway(error)) => tracing::debug!(payment = %id, %error, "not reconciled yet"),
            Err(error) => tracing::error!(payment = %id, %error, "could not reconcile a payment"),
        }
    }

    /// Handles an event of the card processor: checks the refund or schedules a query of the payment.
    pub(crate) async fn take_event(&self, signature: &[u8], body: &[u8]) -> Result<(), Refused> {
        let stripe = self.gateways.card_processor()?;
        let Some(StripeEvent { about, claimed }) = stripe.event(signature, body, self.ambient.now())? else {
            return Ok(());
        };
        self.handle_event(stripe, &about).await?;
        // Commit only now: if the handling failed, Stripe sends the event again.
        if let Some(Err(error)) = claimed.map(Claimed::commit) {
            tracing::debug!(%error, "could not mark an event as handled; it may come again");
        }
        Ok(())
    }

    async fn handle_event(&self, stripe: &Stripe, about: &EventAbout) -> Result<(), Refused> {
        match &about.refund {
            Some(refund) => match stripe.refund_fault(refund).await? {
                Some(fault) => self.refund_failed_later(&about.payment, &fault).await,
                None => Ok(()),
            },
            None => self.query_soon(&about.payment).await,
        }
    }

    /// Schedules a query of a payment's gateway for now.
    async fn query_soon(&self, id: &PaymentId) -> Result<(), Refused> {
        retry_on_conflict(|| async {
            let Some(session) = self.store.session(id).await? else { return Ok(()) };
            if !awaits_gateway(&session) {
                return Ok(());
            }
            let mut next = session.next();
            next.check_at = Some(self.ambient.now());
            self.commit_without_event(&session, next).await
        })
        .await
    }
}
