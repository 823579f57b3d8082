//! Asking the gateways again, until each payment and each refund is settled.

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, stream};
use payments_core::PaymentId;
use tokio::time::{MissedTickBehavior, interval};

use super::{Hint, Refused, Service, confirm::awaits_its_gateway, retry_on_conflict};
use crate::{
    gateway::{EventAbout, Stripe, StripeEvent},
    store::{Claim, Lease, Queue, Work},
};

/// How often it is looked for what is due.
const EVERY: Duration = Duration::from_secs(1);
/// How much is taken up at a time, and how much of it at once.
const AT_A_TIME: usize = 200;
const AT_ONCE: usize = 16;
/// How long a server may take for them before another one takes over. The payments' versions decide who of two was first.
const LEASE_SECONDS: u32 = 600;

impl Service {
    /// Asks the gateways about whatever is due, for as long as it is polled.
    pub(crate) async fn reconcile(self: Arc<Self>) {
        let mut ticks = interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let lease = Lease::new(self.server, self.ambient.now(), LEASE_SECONDS);
            match self.store.claim(Queue::GatewayChecks, &lease, AT_A_TIME).await {
                Ok(due) => stream::iter(due).for_each_concurrent(AT_ONCE, |claim| self.work_on(claim)).await,
                Err(error) => tracing::error!(%error, "it cannot be read which payments are due at their gateways"),
            }
        }
    }

    async fn work_on(&self, claim: Claim) {
        if let Work::GatewayCheck(id) = &claim.work {
            self.take_up(id).await;
        }
        if let Err(error) = self.store.release(&claim).await {
            tracing::warn!(%error, "a payment's gateway is not asked again before the claim's lease is over");
        }
    }

    async fn take_up(&self, id: &PaymentId) {
        let outcome = match self.store.session(id).await {
            Ok(Some(session)) if session.refund_asked.is_some() => {
                self.see_refund_through(id.as_str(), None).await.map(|_| ())
            }
            Ok(_) => self.confirm(id, Hint::None).await.map(|_| ()),
            Err(error) => Err(error.into()),
        };
        match outcome {
            // A request for the same refund was faster.
            Ok(()) | Err(Refused::Moved) => {}
            // The log has the gateway's side; the payment is asked for again.
            Err(Refused::Gateway(error)) => tracing::debug!(payment = %id, %error, "not settled yet"),
            Err(error) => tracing::error!(payment = %id, %error, "a payment could not be settled"),
        }
    }

    /// Takes an event of the card processor, and looks once at the payment that it is about.
    pub(crate) async fn take_event(&self, signature: &[u8], body: &[u8]) -> Result<(), Refused> {
        let stripe = self.gateways.card_processor()?;
        match stripe.event(signature, body, self.ambient.now())? {
            StripeEvent::New { about, claimed } => {
                self.look_at(stripe, &about).await?;
                // Committed only now: Stripe sends an event again if the look at it failed.
                if let Err(error) = claimed.commit() {
                    tracing::debug!(%error, "an event was looked at and may come again");
                }
                Ok(())
            }
            StripeEvent::Unremembered { about } => self.look_at(stripe, &about).await,
            StripeEvent::Seen | StripeEvent::NotOurs => Ok(()),
        }
    }

    async fn look_at(&self, stripe: &Stripe, about: &EventAbout) -> Result<(), Refused> {
        match &about.refund {
            Some(refund) => match stripe.refund_fault(refund).await? {
                Some(fault) => self.refund_failed_later(&about.payment, &fault).await,
                None => Ok(()),
            },
            None => self.look_soon(&about.payment).await,
        }
    }

    /// Has a payment's gateway asked about it within a moment.
    async fn look_soon(&self, id: &PaymentId) -> Result<(), Refused> {
        retry_on_conflict(|| async {
            let Some(session) = self.store.session(id).await? else { return Ok(()) };
            if !awaits_its_gateway(&session) {
                return Ok(());
            }
            let mut next = session.next();
            next.check_at = Some(self.ambient.now());
            self.commit_beside(&session, next).await
        })
        .await
    }
}
