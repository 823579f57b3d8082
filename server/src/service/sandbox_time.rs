//! Advances the time of a developer's sandbox: brings expiries and further attempts closer.

use std::collections::BTreeSet;

use payments_core::{Advanced, Cause, DeliveryId, Page, PageRequest, PaymentId, Status, Timestamp};

use super::{
    Caller, Result, Service,
    payment_list::{Facts, facts},
    retry_on_conflict,
};
use crate::{
    domain::{Scope, Session},
    store::{Change, StoreError, Write},
};

/// How many pages of open sessions, and of deliveries, one request reads at most. The newest come first.
const PAGES: u32 = 10;
const PAGE: u32 = 100;

impl Service {
    /// Advances the time of the open sessions and waiting deliveries in the caller's sandbox.
    pub async fn advance_sandbox(&self, caller: &Caller, seconds: u32) -> Result<Advanced> {
        self.check_own_sandbox(caller).await?;
        // First find them all: a session that expires leaves the list.
        let open = |page| self.store.payments(&caller.scope, Some(&Status::Pending), page);
        let open = first_pages(open).await?.iter().map(facts).collect::<Result<Vec<_>, _>>()?;
        let mut advanced = Advanced::nothing();
        for Facts { id, .. } in open {
            // A session that ended meanwhile does not move.
            if let Some(has_expired) = retry_on_conflict(|| self.advance_session(&id, seconds)).await? {
                advanced.sessions += 1;
                advanced.expired += u32::from(has_expired);
            }
        }
        advanced.retries = self.advance_retries(&caller.scope, seconds).await?;
        Ok(advanced)
    }

    /// Returns how many deliveries came closer to their next attempt.
    async fn advance_retries(&self, scope: &Scope, seconds: u32) -> Result<u32> {
        let listed = first_pages(|page| self.store.deliveries(scope, None, page)).await?;
        let waiting = listed.into_iter().filter(|it| it.next_attempt_at.is_some()).map(|it| it.id);
        let mut moved = 0;
        // A set: new deliveries move others to a later page, where they are listed again.
        for id in waiting.collect::<BTreeSet<_>>() {
            moved += u32::from(retry_on_conflict(|| self.advance_retry(&id, seconds)).await?);
        }
        Ok(moved)
    }

    /// Returns whether the delivery moved; it may have become due meanwhile.
    async fn advance_retry(&self, id: &DeliveryId, seconds: u32) -> Result<bool> {
        let waiting = self.store.outgoing(id).await?;
        let Some(sooner) = waiting.and_then(|it| it.sooner(seconds, self.ambient.now())) else { return Ok(false) };
        self.commit(Change::of(Write::DeliveryChanged(Box::new(sooner)))).await?;
        Ok(true)
    }

    /// Returns whether the session expired; `None` if it was not open.
    async fn advance_session(&self, id: &PaymentId, seconds: u32) -> Result<Option<bool>> {
        let session = self.session(id.as_str()).await?;
        let Some(expires_at) = session.unattempted_expiry() else { return Ok(None) };
        let now = self.ambient.now();
        let earlier = Timestamp::from_millis(expires_at.as_millis() - i64::from(seconds) * 1000);
        let expires_at = earlier.unwrap_or(now).max(session.payment.created_at);
        if expires_at <= now {
            let decision = payments_core::decide(&session.payment, Cause::SessionEnded, now)?;
            self.records().commit_decision(&session, session.next(), decision).await?;
            return Ok(Some(true));
        }
        self.commit_without_event(Session { expires_at, ..session.next() }).await?;
        Ok(Some(false))
    }
}

/// The items of the first pages of a list.
async fn first_pages<T, F>(list: impl Fn(PageRequest) -> F) -> Result<Vec<T>>
where
    F: Future<Output = Result<Page<T>, StoreError>>,
{
    let mut found = Vec::new();
    for page in 1..=PAGES {
        let listed = list(PageRequest::from_query(Some(&page.to_string()), Some(&PAGE.to_string()))?).await?.items;
        let is_last = listed.len() < PAGE as usize;
        found.extend(listed);
        if is_last {
            break;
        }
    }
    Ok(found)
}
