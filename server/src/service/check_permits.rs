//! Permits to ask a gateway about a due payment. Neither a slow gateway nor a developer with many payments delays the others.
//!
//! A developer gets at most half of a gateway's permits. A payment stays claimed while its check waits for a permit, so the
//! worker goes on to later payments. A developer's claims are limited too. A claim beyond the limit gets no permit; when its
//! lease ends, the payment is claimed again.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use payments_core::{Currency, DeveloperId};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::{
    metrics::BudgetMetrics,
    process::budget::{Budget, Held},
};

/// How many claims a server holds at most. One developer may have half of them.
pub(super) const CLAIMS: usize = 128;
/// How many checks may be in progress at one gateway.
const AT_A_GATEWAY: usize = 16;
/// How many of these checks may be one developer's.
const OF_A_DEVELOPER: usize = AT_A_GATEWAY / 2;

/// A developer's payments at one gateway. A currency has one gateway.
type Own = (Currency, DeveloperId);

pub struct CheckPermits {
    claims: Arc<Budget<DeveloperId>>,
    bdt: Arc<Semaphore>,
    usd: Arc<Semaphore>,
    own: Mutex<HashMap<Own, Arc<Semaphore>>>,
}

/// A permit at a gateway. It ends when this is dropped.
pub(super) struct CheckPermit {
    _claim: Held<DeveloperId>,
    _own: Option<OwnedSemaphorePermit>,
    _gateway: Option<OwnedSemaphorePermit>,
}

impl CheckPermits {
    /// The metrics show the claims.
    pub fn new(metrics: &BudgetMetrics) -> Self {
        let permits = || Arc::new(Semaphore::new(AT_A_GATEWAY));
        Self {
            claims: Budget::new(i64::try_from(CLAIMS).unwrap_or(i64::MAX), metrics.clone()),
            bdt: permits(),
            usd: permits(),
            own: Mutex::default(),
        }
    }

    /// Waits for a permit. `None` if the developer has too many claims already.
    pub(super) async fn enter(&self, currency: Currency, developer: &DeveloperId) -> Option<CheckPermit> {
        let claim = self.claims.take(developer, 1)?;
        let gateway = match currency {
            Currency::Bdt => &self.bdt,
            Currency::Usd | Currency::Other(_) => &self.usd,
        };
        // Take the developer's permit first, so that no check holds the gateway's while it waits for the developer's. Nobody
        // closes a semaphore.
        let own = self.own((currency, developer.clone())).acquire_owned().await.ok();
        let gateway = Arc::clone(gateway).acquire_owned().await.ok();
        Some(CheckPermit { _claim: claim, _own: own, _gateway: gateway })
    }

    fn own(&self, own: Own) -> Arc<Semaphore> {
        let mut all = self.own.lock();
        if all.len() >= CLAIMS {
            // Each check that has or awaits a permit keeps a handle. There are at most as many handles as claims.
            all.retain(|_, permits| Arc::strong_count(permits) > 1);
        }
        Arc::clone(all.entry(own).or_insert_with(|| Arc::new(Semaphore::new(OF_A_DEVELOPER))))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{Instant, sleep};

    use super::*;

    fn developer(nth: u8) -> DeveloperId {
        format!("dev_{nth}").parse().unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_gateway_and_a_developer_with_many_payments_leave_permits_to_others() {
        let permits = Arc::new(CheckPermits::new(&BudgetMetrics::default()));
        let begun = Instant::now();
        let check = |currency, nth, took| {
            let permits = Arc::clone(&permits);
            tokio::spawn(async move {
                let permit = permits.enter(currency, &developer(nth)).await;
                sleep(Duration::from_secs(took)).await;
                permit.map(|_| begun.elapsed().as_secs())
            })
        };
        let many: Vec<_> = (0..CLAIMS).map(|_| check(Currency::Bdt, 1, 10)).collect();
        tokio::task::yield_now().await;
        let (same_gateway, other_gateway) = (check(Currency::Bdt, 2, 10), check(Currency::Usd, 1, 1));
        assert_eq!(same_gateway.await.unwrap(), Some(10));
        // The developer already has its maximum of claims, so this payment comes again later.
        assert_eq!(other_gateway.await.unwrap(), None);
        assert_eq!(check(Currency::Usd, 2, 1).await.unwrap(), Some(11));
        let ended = futures_util::future::join_all(many).await;
        let asked = ended.iter().filter_map(|ended| *ended.as_ref().unwrap()).collect::<Vec<_>>();
        assert_eq!((asked.len(), asked.iter().max()), (CLAIMS / 2, Some(&80)));
    }

    #[tokio::test]
    async fn developers_without_a_permit_are_forgotten() {
        let permits = CheckPermits::new(&BudgetMetrics::default());
        for nth in 0..=u8::MAX {
            assert!(permits.enter(Currency::Usd, &developer(nth)).await.is_some());
        }
        let held = permits.enter(Currency::Bdt, &developer(7)).await;
        assert_eq!(permits.own.lock().len(), 1);
        drop(held);
    }
}
