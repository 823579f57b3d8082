//! From an event to its deliveries: one for each endpoint that wants it.
//!
//! An event is committed with the change that it tells of, as untold. Its deliveries are made in the batches after that, so
//! many at a time; so a payment does not wait for its own, however many endpoints its developer has, and anyone else's for
//! no more than one batch of them.
//! What is untold at a crash is told at the next start.

use payments_core::{DeliveryId, PaymentId, WebhookId};
use serde::{Deserialize, Serialize};

use super::{
    journal::{self, Writes},
    keys,
    tables::{self, Stored, View, unreadable},
};
use crate::{
    ambient::Ambient,
    domain::{Endpoint, Outgoing},
    store::StoreError,
};

/// An event whose endpoints have not all been given a delivery.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Untold {
    /// The payment that it is an event of.
    pub(super) payment: PaymentId,
    /// The last endpoint that had its turn.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) after: Option<WebhookId>,
}

/// What a step has done.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// The endpoint of each delivery that was made.
    pub(super) owed: Vec<WebhookId>,
    /// Whether there may be more to tell.
    pub(super) is_more: bool,
}

/// Whether a batch has an event that is to be told.
pub(super) fn is_owed_in(writes: &Writes) -> bool {
    journal::under(writes, keys::UNTOLD).any(|(_, value)| value.is_some())
}

/// Adds the deliveries of untold events to a batch, those of the oldest first, to so many endpoints.
pub(super) fn tell(view: &mut View<'_>, at_most: usize, ambient: &dyn Ambient) -> Told {
    let mut told = Told::default();
    let mut left = at_most;
    for entry in view.records().under(keys::UNTOLD) {
        if left == 0 {
            break;
        }
        let outcome = view.stage(|view| {
            let (key, value) = entry?;
            tell_one(view, &key, tables::parse(&key, &value)?, &mut left, ambient)
        });
        match outcome {
            Ok(owed) => told.owed.extend(owed),
            Err(error) => tracing::error!(%error, "an event cannot be told; run check"),
        }
    }
    told.is_more = left == 0;
    told
}

fn tell_one(
    view: &mut View<'_>,
    key: &[u8],
    Untold { payment, mut after }: Untold,
    left: &mut usize,
    ambient: &dyn Ambient,
) -> Result<Vec<WebhookId>, StoreError> {
    let missing = |what: &str| unreadable(key, serde::de::Error::custom(format_args!("its {what} is not there")));
    let stored: Stored = view.read(&keys::session(&payment))?.ok_or_else(|| missing("payment"))?;
    let id = keys::untold_event(key).ok_or_else(|| missing("name"))?;
    let event = stored.events.iter().find(|event| event.id == id).ok_or_else(|| missing("event"))?;
    let envelope = stored.envelope(&id).ok_or_else(|| missing("event"))?.map_err(|source| unreadable(key, source))?;

    let scope = stored.session.scope();
    let mut owed = Vec::new();
    let all = keys::endpoints_of(&scope);
    let from = after.as_ref().map_or_else(|| all.clone(), |last| keys::endpoint_of(&scope, last));
    for entry in view.records().under_after(&all, &from) {
        let (found, _) = entry?;
        if *left == 0 {
            view.put(key.to_vec(), &Untold { payment, after })?;
            return Ok(owed);
        }
        *left -= 1;
        let Ok(endpoint) = String::from_utf8_lossy(&found[all.len()..]).parse::<WebhookId>() else { continue };
        let known: Option<Endpoint> = view.read(&keys::endpoint(&endpoint))?;
        if known.is_some_and(|known| known.wants(&event.event, stored.session.payment.app_id.as_ref())) {
            let delivery = DeliveryId::new(event.created_at, ambient.id_bytes());
            let of = Outgoing::new(delivery, &scope, &endpoint, &event.event, envelope.clone(), event.created_at);
            let outgoing = Outgoing { payment: Some(payment.clone()), event: Some(id.clone()), ..of };
            view.delivery(&outgoing)?;
            owed.push(endpoint.clone());
        }
        after = Some(endpoint);
    }
    view.remove(key.to_vec());
    Ok(owed)
}
