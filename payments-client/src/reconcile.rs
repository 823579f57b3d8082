//! What became of payments whose webhook may be lost. A webhook is attempted once, so a lost one does not come again.

use std::time::Duration;

use futures_util::{
    StreamExt,
    future::ready,
    stream::{self, BoxStream},
};
use payments_core::{Payment, PaymentId, Status, Timestamp};

use crate::{Payments, Result};

/// What a payment means for the order behind it (API specification, "Rules", 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Standing {
    /// The customer paid; whether it was given back since, the payment's own status tells.
    Completed,
    /// It failed, was cancelled or expired: release what was kept for the order. A gateway may yet confirm such a
    /// payment late; it is completed then, so look once more before the books are closed.
    Abandoned,
    /// The customer may still pay, or its status is of a later version: ask again later.
    Open,
}

impl Standing {
    /// What this payment means for its order.
    #[must_use]
    pub fn of(payment: &Payment) -> Self {
        match payment.status {
            Status::Completed | Status::Refunded => Self::Completed,
            Status::Failed | Status::Cancelled | Status::Expired => Self::Abandoned,
            _ => Self::Open,
        }
    }
}

/// A payment and what it means.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Reconciled {
    /// The payment as it is now.
    pub payment: Payment,
    /// What it means for its order.
    pub standing: Standing,
}

impl From<Payment> for Reconciled {
    fn from(payment: Payment) -> Self {
        Self { standing: Standing::of(&payment), payment }
    }
}

/// How often one payment waits for the rate limit's next window.
const WINDOWS: u32 = 10;

impl Payments<'_> {
    /// Tells what became of these payments, in the order in which the answers come; at most `at_once` requests are
    /// under way. A refusal by the rate limit is waited out; any other error stands beside its payment's id, and the
    /// others go on.
    ///
    /// ```no_run
    /// use futures_util::StreamExt;
    /// use payments_client::{Client, PaymentId, Standing};
    /// # async fn reconcile(client: Client, open: Vec<PaymentId>) {
    /// let mut outcomes = client.payments().reconcile(open, 8);
    /// while let Some((id, outcome)) = outcomes.next().await {
    ///     match outcome {
    ///         Ok(found) if found.standing == Standing::Completed => println!("ship {id}"),
    ///         Ok(found) => println!("{id} is {:?}", found.standing),
    ///         Err(error) => eprintln!("{id}: {error}"),
    ///     }
    /// }
    /// # }
    /// ```
    pub fn reconcile(
        self,
        ids: impl IntoIterator<Item = PaymentId, IntoIter: Send + 'static>,
        at_once: usize,
    ) -> BoxStream<'static, (PaymentId, Result<Reconciled>)> {
        let client = self.client().clone();
        let asked = stream::iter(ids).map(move |id| {
            let client = client.clone();
            async move {
                let mut windows = 0;
                loop {
                    match client.payments().retrieve(&id).await {
                        Err(error) if error.is_rate_limited() && windows < WINDOWS => {
                            windows += 1;
                            tokio::time::sleep(error.retry_after().unwrap_or(Duration::from_secs(5))).await;
                        }
                        outcome => return (id, outcome.map(Reconciled::from)),
                    }
                }
            }
        });
        Box::pin(asked.buffer_unordered(at_once.max(1)))
    }

    /// Tells what became of all payments created at `from` or later and before `until`, newest first. One request is
    /// under way at a time. It ends after an error.
    ///
    /// ```no_run
    /// use futures_util::TryStreamExt;
    /// # async fn day(client: payments_client::Client) -> Result<(), Box<dyn std::error::Error>> {
    /// let (from, until) = ("2026-03-01T00:00:00Z".parse()?, "2026-03-02T00:00:00Z".parse()?);
    /// let mut day = client.payments().reconcile_between(from, until);
    /// while let Some(found) = day.try_next().await? {
    ///     println!("{} {:?}", found.payment.id, found.standing);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn reconcile_between(self, from: Timestamp, until: Timestamp) -> BoxStream<'static, Result<Reconciled>> {
        let is_late_enough = move |item: &Result<Payment>| {
            ready(item.as_ref().is_ok_and(|payment| payment.created_at >= from) || item.is_err())
        };
        let is_early_enough = move |item: &Result<Payment>| {
            ready(item.as_ref().is_ok_and(|payment| payment.created_at < until) || item.is_err())
        };
        let listed = self.list().stream().take_while(is_late_enough).filter(is_early_enough);
        Box::pin(listed.map(|item| item.map(Reconciled::from)))
    }
}
