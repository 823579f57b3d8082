//! Moves the time of a developer's sandbox: what waits for a time there comes earlier.

use std::collections::BTreeSet;

use payments_core::{Advanced, Cause, DeliveryId, PageRequest, PaymentId, Status, Timestamp};

use super::{Caller, Refused, Service, payment_list::facts, retry_on_conflict};
use crate::{
    domain::{Scope, Session},
    store::{Change, Write},
};

/// How many open sessions and how many deliveries one request looks at: the newest.
const PAGES: u32 = 10;
const PAGE: u32 = 100;

impl Service {
    /// Lets a time pass for the open sessions and the waiting deliveries of the caller's sandbox, and for nobody else.
    pub(crate) async fn advance_sandbox(&self, caller: &Caller, seconds: u32) -> Result<Advanced, Refused> {
        self.check_own_sandbox(caller).await?;
        // First find them all: a session that expires leaves the list.
        let mut open = Vec::new();
        for page in 1..=PAGES {
            let request = PageRequest::from_query(Some(&page.to_string()), Some(&PAGE.to_string()))?;
            let listed = self.store.payments(&caller.scope, Some(&Status::Pending), request).await?.items;
            let is_last = listed.len() < PAGE as usize;
            for payment in &listed {
                open.push(facts(payment)?.id);
            }
            if is_last {
                break;
            }
        }
        let mut advanced = Advanced::nothing();
        for id in open {
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
    async fn advance_retries(&self, scope: &Scope, seconds: u32) -> Result<u32, Refused> {
        // A set: new deliveries move others to a later page, where they are listed again.
        let mut waiting = BTreeSet::new();
        for page in 1..=PAGES {
            let request = PageRequest::from_query(Some(&page.to_string()), Some(&PAGE.to_string()))?;
            let listed = self.store.deliveries(scope, None, request).await?.items;
            let is_last = listed.len() < PAGE as usize;
            waiting.extend(listed.into_iter().filter(|it| it.next_attempt_at.is_some()).map(|it| it.id));
            if is_last {
                break;
            }
        }
        let mut moved = 0;
        for id in waiting {
            moved += u32::from(retry_on_conflict(|| self.advance_retry(&id, seconds)).await?);
        }
        Ok(moved)
    }

    /// Returns whether the delivery moved; it may have become due meanwhile.
    async fn advance_retry(&self, id: &DeliveryId, seconds: u32) -> Result<bool, Refused> {
        let waiting = self.store.outgoing(id).await?;
        let Some(sooner) = waiting.and_then(|it| it.sooner(seconds, self.ambient.now())) else { return Ok(false) };
        self.commit(Change::of(Write::DeliveryChanged(Box::new(sooner)))).await?;
        Ok(true)
    }

    /// Returns whether the session expired; `None` if it was not open.
    async fn advance_session(&self, id: &PaymentId, seconds: u32) -> Result<Option<bool>, Refused> {
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
