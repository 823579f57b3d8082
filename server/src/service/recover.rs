//! Resends the deliveries that an endpoint missed.

use std::time::Duration;

use payments_core::{DeliveryStatus, RecoverWebhook, Recovered, Timestamp, WebhookId};
use tokio::time::{Instant, sleep};

use super::{Caller, Directory, Result, Service, ServiceError, records::Records, webhooks::NO_WEBHOOK};
use crate::{
    domain::{Endpoint, Outgoing},
    store::DeliveriesFrom,
};

/// How many deliveries a request examines at most, and how many of them are in memory at a time.
const MAX_EXAMINED: usize = 1000;
const AT_A_TIME: usize = 50;
/// An endpoint with this many pending deliveries gets no more. Its lane sends them as fast as the endpoint answers.
const MAX_PENDING: usize = 100;
/// How long a request waits for fewer pending deliveries, and how often it looks.
const MAX_WAIT: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(100);

impl Service {
    /// Resends the failed deliveries of a time range, except test events and deliveries that were resent already. Examines a
    /// part of the deliveries.
    pub async fn recover_webhook(&self, caller: &Caller, id: &str, params: &RecoverWebhook) -> Result<Recovered> {
        let endpoint = self.own_endpoint(caller, id).await?;
        loop {
            match self.recoveries.begin(&endpoint.endpoint.id, params) {
                Ok(recovery) => {
                    let give_up_at = Some(Instant::now() + MAX_WAIT);
                    let recovered = self.records().recover_part(&endpoint, params, give_up_at).await?;
                    recovery.end(recovered.clone());
                    return Ok(recovered);
                }
                Err(running) => {
                    if let Some(recovered) = running.answer(params).await {
                        return Ok(recovered);
                    }
                }
            }
        }
    }
}

impl Directory {
    /// Does the same as [`recover_webhook`](Service::recover_webhook) for an operator, in all parts. Returns how many were
    /// resent.
    pub(super) async fn recover_any_webhook(
        &self,
        id: &str,
        since: Timestamp,
        until: Option<Timestamp>,
    ) -> Result<u32> {
        let endpoint = self.store.endpoint(&id.parse().map_err(|_| NO_WEBHOOK)?).await?.ok_or(NO_WEBHOOK)?;
        let mut params = RecoverWebhook::since(since);
        // Deliveries that fail meanwhile are left to another command.
        params.until = Some(until.unwrap_or_else(|| self.ambient.now()));
        let mut resent = 0;
        loop {
            let part = self.records().recover_part(&endpoint, &params, None).await?;
            resent += part.resent;
            match part.next {
                Some(next) => params = params.after(next),
                None => return Ok(resent),
            }
        }
    }
}

impl Records<'_> {
    /// Resends the failed deliveries of a part. Waits for room in the outbox until `give_up_at`. With `None` it does not
    /// wait: perhaps no server is running that makes room.
    async fn recover_part(
        self,
        endpoint: &Endpoint,
        params: &RecoverWebhook,
        give_up_at: Option<Instant>,
    ) -> Result<Recovered> {
        let (scope, endpoint) = (endpoint.scope(), &endpoint.endpoint);
        if !endpoint.is_active {
            return Err(ServiceError::NotResent("its webhook endpoint is not active"));
        }
        let now = self.ambient.now();
        // A resent delivery that fails at once is not resent again.
        let until = params.until.map_or(now, |until| until.min(now));
        let mut from = DeliveriesFrom { since: params.since, after: params.after.clone() };
        let mut resent = 0;
        for _ in 0..MAX_EXAMINED / AT_A_TIME {
            if let Some(give_up_at) = give_up_at
                && !self.has_room(&endpoint.id, give_up_at).await?
            {
                // If no delivery was examined yet, there is no part to return.
                let Some(after) = from.after else { return Err(ServiceError::TooManyPending { at_most: MAX_PENDING }) };
                return Ok(Recovered::part(resent, Some(after)));
            }
            let found = self.store.deliveries_from(&scope, &endpoint.id, &from, AT_A_TIME).await?;
            let is_last = found.len() < AT_A_TIME;
            for outgoing in found {
                from.after = Some(outgoing.delivery.id.clone());
                let created_at = outgoing.delivery.created_at;
                if created_at >= params.since && created_at < until && self.recover(outgoing).await? {
                    resent += 1;
                }
            }
            // The list may be out of order by some seconds.
            if is_last || from.earliest() > until {
                return Ok(Recovered::part(resent, None));
            }
        }
        Ok(Recovered::part(resent, from.after))
    }

    /// Waits until the endpoint's outbox is short. Returns false if it is still long at `give_up_at`.
    async fn has_room(self, endpoint: &WebhookId, give_up_at: Instant) -> Result<bool> {
        loop {
            let pending = self.store.outbox(endpoint, MAX_PENDING).await?;
            if pending.is_all && pending.ids.len() < MAX_PENDING {
                return Ok(true);
            }
            if Instant::now() >= give_up_at {
                return Ok(false);
            }
            sleep(POLL).await;
        }
    }

    /// Resends a delivery if it failed and was not resent. Returns whether it did.
    async fn recover(self, outgoing: Outgoing) -> Result<bool> {
        let has_failed = outgoing.delivery.status == DeliveryStatus::Failed;
        if !has_failed || outgoing.resent_as.is_some() || outgoing.subject.is_none() {
            return Ok(false);
        }
        match self.resend(outgoing, None).await {
            Ok(_) => Ok(true),
            // Another request resent it, or its payload was deleted.
            Err(ServiceError::Conflict | ServiceError::NotResent(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }
}
