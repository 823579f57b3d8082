//! Fan-out: makes one delivery per subscribed endpoint out of an event.

use payments_core::{AppId, DeliveryId, Envelope, EventId, EventKind, RANDOM_BYTES, RawJson, Timestamp, WebhookId};

use super::{Endpoint, Outgoing, Scope, Subject};

/// An event whose fan-out is not finished.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingEvent {
    pub id: EventId,
    pub kind: EventKind,
    pub created_at: Timestamp,
    /// The request body of every delivery of this event.
    pub envelope: RawJson,
    pub subject: Subject,
    /// The app that created the payment.
    pub app_id: Option<AppId>,
    pub scope: Scope,
    /// The last endpoint that fan-out has reached, in the order of endpoint ids.
    pub after: Option<WebhookId>,
}

impl PendingEvent {
    /// An event with the data of its request body.
    pub fn new(
        subject: Subject,
        app_id: Option<AppId>,
        scope: Scope,
        id: EventId,
        kind: EventKind,
        created_at: Timestamp,
        data: &RawJson,
    ) -> Result<Self, serde_json::Error> {
        let envelope = RawJson::of(&Envelope { id: &id, event: kind.clone(), created_at, data })?;
        Ok(Self { id, kind, created_at, envelope, subject, app_id, scope, after: None })
    }
}

/// Makes a delivery for each of `endpoints` that wants the event. `random` makes the delivery ids unique.
pub fn fan_out(
    event: &PendingEvent,
    endpoints: &[Endpoint],
    mut random: impl FnMut() -> [u8; RANDOM_BYTES],
) -> Vec<Outgoing> {
    let subscribed = endpoints.iter().filter(|endpoint| endpoint.wants(&event.kind, event.app_id.as_ref()));
    let delivery = |endpoint: &Endpoint| {
        let id = DeliveryId::new(event.scope.developer_id.slot(), event.created_at, random());
        let (endpoint, envelope) = (&endpoint.endpoint.id, event.envelope.clone());
        let delivery = Outgoing::new(id, &event.scope, endpoint, &event.kind, envelope, event.created_at);
        Outgoing { subject: Some(event.subject.clone()), event: Some(event.id.clone()), ..delivery }
    };
    subscribed.map(delivery).collect()
}

impl Endpoint {
    /// Whether the endpoint wants events of this kind about payments of this app. `None` stands for no app.
    pub fn wants(&self, kind: &EventKind, payment_app: Option<&AppId>) -> bool {
        let Self { endpoint, only_its_app, .. } = self;
        let is_for_another_app = match (&endpoint.app_id, payment_app) {
            (Some(own), Some(of_payment)) => *only_its_app && own != of_payment,
            _ => false,
        };
        endpoint.is_active && endpoint.events.wants(kind) && !is_for_another_app
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads an endpoint from a stored record. `None` leaves `only_its_app` out of the record.
    fn stored(app: Option<&str>, only_its_app: Option<bool>, events: &[&str], is_active: bool) -> Endpoint {
        let mut record = serde_json::json!({"environment": "test", "endpoint": {
            "id": "wh_1", "developerId": "dev_1", "appId": app, "url": "https://a.example/", "secret": "whsec_1",
            "events": events, "isActive": is_active, "createdAt": "2026-03-01T03:30:00.000Z",
            "updatedAt": "2026-03-01T03:30:00.000Z"}});
        if let Some(only_its_app) = only_its_app {
            record["only_its_app"] = only_its_app.into();
        }
        serde_json::from_value(record).unwrap()
    }

    #[test]
    fn an_endpoint_wants_its_subscribed_events_except_those_of_other_apps() {
        let (all, created, refunded) = (&["*"][..], &["payment.created"][..], &["payment.refunded"][..]);
        for (app, only_its_app, events, is_active, payment_app, wants) in [
            // An endpoint without an app gets every payment's events.
            (None, None, all, true, None, true),
            (None, None, all, true, Some("app_1"), true),
            // An endpoint with an app gets the events of its app and of payments without an app.
            (Some("app_1"), Some(true), all, true, Some("app_1"), true),
            (Some("app_1"), Some(true), all, true, None, true),
            (Some("app_1"), Some(true), all, true, Some("app_2"), false),
            // An endpoint stored without the flag gets every payment's events.
            (Some("app_1"), None, all, true, Some("app_2"), true),
            // The subscribed kinds and `is_active` apply as well.
            (Some("app_1"), Some(true), created, true, Some("app_1"), true),
            (Some("app_1"), Some(true), created, true, Some("app_2"), false),
            (Some("app_1"), Some(true), refunded, true, Some("app_1"), false),
            (Some("app_1"), None, refunded, true, Some("app_2"), false),
            (None, None, all, false, None, false),
        ] {
            let endpoint = stored(app, only_its_app, events, is_active);
            let payment_app = payment_app.map(|id| id.parse().unwrap());
            let case = (app, only_its_app, events, is_active, &payment_app);
            assert_eq!(endpoint.wants(&EventKind::PaymentCreated, payment_app.as_ref()), wants, "{case:?}");
        }
    }

    #[test]
    fn fan_out_makes_one_delivery_per_subscribed_endpoint_with_the_id_and_time_of_the_event() {
        let at = Timestamp::from_millis(1_700_000_000_000).unwrap();
        let event = PendingEvent {
            id: EventId::new(payments_core::Slot::FIRST, at, [1; RANDOM_BYTES]),
            kind: EventKind::PaymentCreated,
            created_at: at,
            envelope: RawJson::new("{}").unwrap(),
            subject: "pay_1".parse().unwrap(),
            app_id: None,
            scope: Scope { developer_id: "dev_1".parse().unwrap(), environment: payments_core::Environment::Test },
            after: None,
        };
        let endpoints = [stored(None, None, &["*"], true), stored(None, None, &["payment.refunded"], true)];
        let mut nth = 0;
        let made = fan_out(&event, &endpoints, || {
            nth += 1;
            [nth; RANDOM_BYTES]
        });
        let [made] = &made[..] else { panic!("{made:?}") };
        assert_eq!(made.delivery.id, DeliveryId::new(payments_core::Slot::FIRST, at, [1; RANDOM_BYTES]));
        assert_eq!((&made.subject, &made.event), (&Some(event.subject), &Some(event.id)));
        assert_eq!((&made.delivery.created_at, made.delivery.attempts), (&at, 0));
    }

    #[test]
    fn only_its_app_is_stored_only_if_it_is_set() {
        for only_its_app in [None, Some(true)] {
            let text = serde_json::to_string(&stored(Some("app_1"), only_its_app, &["*"], true)).unwrap();
            assert_eq!(text.contains("only_its_app"), only_its_app.is_some(), "{text}");
            assert_eq!(serde_json::from_str::<Endpoint>(&text).unwrap().only_its_app, only_its_app.is_some());
        }
    }
}
