//! Checks each record by itself, and that it has its entries.

use payments_core::{Payment, Payout, PayoutId, RawJson};

use super::{
    super::{
        booking::{StoredBooking, StoredMoney},
        delivery::StoredDelivery,
        entry::Record,
        event::{StoredEvent, whole_events},
        idempotency::{ClaimOn, ResponseOf, ResponseRecord},
        keys,
        merchants::{KeyOf, TokenOf},
        payment::StoredPayment,
        payout::StoredPayout,
        reads::parse,
    },
    Check,
    sums::StatementOf,
};
use crate::{
    EventWrite, Migration, StoreError,
    domain::{
        ApiKey, App, AuditRecord, BooksEntry, Coverage, Destination, Endpoint, GatewayPause, LogPart, Notices,
        PersonSession, PlatformKey, Scope, Session, SettledRow, Subject, Workspace, delivery_faults, endpoint_faults,
        faults, owner_of,
    },
    invariants::{Effect, booking_fault, claim_faults, effect_of, event_faults},
};

impl Check<'_> {
    pub(super) async fn record(&mut self, kind: &str, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        match kind {
            "payment" => self.payment(key, value).await,
            "event" => self.event(key, value).await,
            "booking" => self.booking(key, value).await,
            "payout" => self.payout(key, value).await,
            "delivery" => self.delivery(key, value).await,
            "response" => self.response(key, value).await,
            "claim" => self.claim(key, value).await,
            "workspace" => self.plain::<Workspace>(key, value).await,
            "api-key" => self.api_key(key, value).await,
            "app" => {
                let Some(app) = self.parse::<App>(key, value) else { return Ok(()) };
                self.has_workspace(key, &app.app.developer_id).await?;
                self.stands(key, &app).await
            }
            "endpoint" => {
                let Some(found) = self.parse::<Endpoint>(key, value) else { return Ok(()) };
                endpoint_faults(&found).into_iter().for_each(|fault| self.find(key, fault));
                self.stands(key, &found).await
            }
            "gateway-token" => {
                let Some(token) = self.parse(key, value) else { return Ok(()) };
                let gateway = keys::rest_of(key).unwrap_or_default().to_owned();
                self.stands(key, &TokenOf { gateway, token }).await
            }
            "settled-row" => self.plain::<SettledRow>(key, value).await,
            "books" => self.plain::<BooksEntry>(key, value).await,
            "audit" => self.plain::<AuditRecord>(key, value).await,
            "platform-key" => self.plain::<PlatformKey>(key, value).await,
            "gateway-pause" => self.plain::<GatewayPause>(key, value).await,
            "notices" => self.plain::<Notices>(key, value).await,
            "person-session" => self.plain::<PersonSession>(key, value).await,
            "coverage" => self.plain::<Coverage>(key, value).await,
            "destination" => self.plain::<Destination>(key, value).await,
            "log" => self.plain::<LogPart>(key, value).await,
            "migration" => self.plain::<Migration>(key, value).await,
            "redacted-up-to" => {
                self.parse::<payments_core::DeliveryId>(key, value);
                Ok(())
            }
            _ => {
                self.find(key, "is of no kind that this version writes");
                Ok(())
            }
        }
    }

    async fn plain<R: Record + serde::de::DeserializeOwned>(
        &mut self,
        key: &[u8],
        value: &[u8],
    ) -> Result<(), StoreError> {
        match self.parse::<R>(key, value) {
            Some(record) => self.stands(key, &record).await,
            None => Ok(()),
        }
    }

    /// Checks that a record is under its own key and has its entries.
    async fn stands(&mut self, key: &[u8], record: &impl Record) -> Result<(), StoreError> {
        self.expect(key == record.key(), key, "holds another record");
        self.has_entries(key, record.entries()).await
    }

    async fn payment(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.checked.payments += 1;
        let stored = match StoredPayment::parse(key, value) {
            Ok(stored) => stored,
            Err(error) => {
                self.find(key, error);
                return Ok(());
            }
        };
        let payment = &stored.session.payment;
        let is_served = serde_json::to_string(payment).is_ok_and(|json| json == stored.json.as_str());
        self.expect(is_served, key, "holds a payment that would be written otherwise");
        for fault in faults(&stored.session) {
            self.find(key, fault);
        }
        self.has_workspace(key, &payment.developer_id).await?;
        self.events_of(key, &stored, payment).await?;
        self.settled_rows_of(key, &stored.session).await?;
        self.stands(key, &stored).await
    }

    /// Checks that the record of each settled row of a payment names this payment and the same money. So no row counts twice.
    async fn settled_rows_of(&mut self, key: &[u8], session: &Session) -> Result<(), StoreError> {
        for it in &session.settled {
            let gateway = session.attempt.as_ref().map(|attempt| attempt.gateway);
            let row = match gateway {
                Some(gateway) => self.directory.json::<SettledRow>(keys::settled_row(gateway, &it.row)).await,
                None => Ok(None),
            };
            let is_its = match row {
                Ok(row) => row.is_some_and(|row| {
                    row.payment.as_ref() == Some(&session.payment.id)
                        && row.resolved_at.is_some() == it.is_resolved
                        && (row.row.net, row.row.kind) == (it.net, it.kind)
                }),
                Err(StoreError::Corrupt { .. }) => false,
                Err(error) => return Err(error),
            };
            let what = format_args!("has the settled row {}, whose record is missing or says otherwise", it.row);
            self.expect(is_its, key, what);
        }
        Ok(())
    }

    /// Checks that a payment has the events and the bookings of its state.
    async fn events_of(&mut self, key: &[u8], stored: &StoredPayment<'_>, payment: &Payment) -> Result<(), StoreError> {
        let whole = match whole_events(self.reads, &stored.events).await {
            Ok(whole) => whole,
            Err(StoreError::Corrupt { record, what }) => {
                self.find(key, format_args!("has an event that cannot be read: {record}: {what}"));
                return Ok(());
            }
            Err(error) => return Err(error),
        };
        let mut bookings = Vec::new();
        let mut events = Vec::new();
        for it in whole {
            self.expect(
                it.event.subject.payment() == Some(&payment.id),
                key,
                format_args!("has {}, an event of another payment", it.event.id),
            );
            let moves_money = crate::domain::moves_money(&it.event.event);
            let what =
                format_args!("has the event {}, which has a booking and should have none, or the reverse", it.event.id);
            self.expect(moves_money == it.event.money.is_some(), key, what);
            bookings.extend(it.event.money.map(|money| money.booking));
            let StoredEvent { id, event: kind, created_at, .. } = it.event;
            events.push(EventWrite { id, kind, created_at, data: it.data });
        }
        for fault in event_faults(payment, &events) {
            self.find(key, fault);
        }
        for id in &stored.bookings {
            let booking: Option<StoredBooking> = self.other(&keys::booking(id)).await?;
            let its = booking.filter(|it| it.subject.payment() == Some(&payment.id));
            self.expect(
                its.is_some(),
                key,
                format_args!("has the booking {id}, which is not there or of another payment"),
            );
            bookings.extend(its.map(|it| it.money.booking));
        }
        if let Some(fault) = booking_fault(&stored.session, bookings) {
            self.find(key, fault);
        }
        Ok(())
    }

    async fn event(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let Some(event) = self.parse::<StoredEvent>(key, value) else { return Ok(()) };
        let is_its = match &event.subject {
            Subject::Payment(id) => self.stored_payment(id).await?.is_some_and(|payment| {
                payment.events.contains(&event.id)
                    && payment.session.scope() == event.scope
                    && (event.data.is_some() || payment.data_of(&event.id).is_some())
            }),
            Subject::Payout(id) => self.stored_payout(id).await?.is_some_and(|payout| {
                payout.events.contains(&event.id) && payout.record.scope == event.scope && event.data.is_some()
            }),
        };
        self.expect(is_its, key, "is no event of its payment or payout, or has no data");
        event.money.iter().for_each(|money| self.money(key, &event.scope, money));
        self.stands(key, &event).await
    }

    async fn booking(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let Some(booking) = self.parse::<StoredBooking>(key, value) else { return Ok(()) };
        let is_its = match &booking.subject {
            Subject::Payment(id) => self
                .stored_payment(id)
                .await?
                .is_some_and(|it| it.bookings.contains(&booking.id) && it.session.scope() == booking.scope),
            Subject::Payout(id) => self
                .stored_payout(id)
                .await?
                .is_some_and(|it| it.bookings.contains(&booking.id) && it.record.scope == booking.scope),
        };
        self.expect(is_its, key, "is no booking of its payment or payout");
        self.money(key, &booking.scope, &booking.money);
        self.stands(key, &booking).await
    }

    /// Checks a payout, its events and bookings, and that its statement closes.
    async fn payout(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let Some(stored) = self.parse::<StoredPayout>(key, value) else { return Ok(()) };
        let StoredPayout { record, to, events, bookings, .. } = &stored;
        record.faults().into_iter().for_each(|fault| self.find(key, fault));
        self.has_workspace(key, &record.scope.developer_id).await?;
        let (mut kinds, mut booked) = (Vec::new(), Vec::new());
        for id in events {
            kinds.extend(self.other::<StoredEvent>(&keys::event(id)).await?.map(|event| event.event));
        }
        for id in bookings {
            booked.extend(self.other::<StoredBooking>(&keys::booking(id)).await?.map(|booking| booking.money.booking));
        }
        self.expect(kinds == record.expected_events(), key, "has other events than its state requires");
        self.expect(booked == record.expected_bookings(), key, "has other bookings than its state requires");
        let Payout { currency, statement, .. } = &record.payout;
        let net = statement.closing_balance.as_minor() - statement.opening_balance.as_minor();
        let (scope, positions) = (record.scope.clone(), record.from..=*to);
        let (currency, ends) = (*currency, record.ends_statement);
        self.sums.statement(key, StatementOf { scope, positions, currency, net, ends });
        self.stands(key, &stored).await
    }

    async fn stored_payout(&self, id: &PayoutId) -> Result<Option<StoredPayout>, StoreError> {
        let key = keys::payout(id);
        Ok(self.get(&key).await?.and_then(|record| parse(&key, &record).ok()))
    }

    fn money(&mut self, key: &[u8], scope: &Scope, money: &StoredMoney) {
        self.expect(money.is_listed_as_booked(), key, "is another transaction than its booking says");
        self.sums.money(scope, money);
    }

    pub(super) async fn stored_payment(
        &self,
        id: &payments_core::PaymentId,
    ) -> Result<Option<StoredPayment<'static>>, StoreError> {
        let key = keys::payment(id);
        Ok(self.get(&key).await?.and_then(|record| StoredPayment::parse(&key, &record).ok()))
    }

    async fn delivery(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let Some(stored) = self.parse::<StoredDelivery>(key, value) else { return Ok(()) };
        let outgoing = &stored.delivery;
        if let Some(event) = &outgoing.event {
            let is_there = self.other::<StoredEvent>(&keys::event(event)).await?.is_some();
            self.expect(is_there, key, "sends an event that is not there");
        }
        delivery_faults(outgoing).into_iter().for_each(|fault| self.find(key, fault));
        self.stands(key, &stored).await
    }

    /// Checks that a stored response is about a record that exists.
    async fn response(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let Some(kept) = self.parse::<ResponseRecord>(key, value) else { return Ok(()) };
        let is_there = match (&kept.body, &kept.event) {
            (None, Some(event)) => self.other::<StoredEvent>(&keys::event(event)).await?.is_some(),
            (Some(body), None) => self.has_effect(key, body).await?,
            _ => false,
        };
        self.expect(is_there, key, "tells of an effect that is not there");
        match keys::idempotency_key(key) {
            Some(of) => self.stands(key, &ResponseOf { key: of, kept }).await,
            None => {
                self.find(key, "is of no idempotency key");
                Ok(())
            }
        }
    }

    async fn has_effect(&mut self, key: &[u8], body: &RawJson) -> Result<bool, StoreError> {
        let effect = effect_of(body).map_err(|error| self.find(key, format_args!("cannot be read: {error}")));
        Ok(match effect {
            Err(()) | Ok(None) => false,
            Ok(Some(Effect::Endpoint)) => true,
            Ok(Some(Effect::Delivery(id))) => match id.parse() {
                Ok(id) => self.get(&keys::delivery(&id)).await?.is_some(),
                Err(_) => false,
            },
            Ok(Some(Effect::Payout(id))) => match id.parse() {
                Ok(id) => self.stored_payout(&id).await?.is_some(),
                Err(_) => false,
            },
            Ok(Some(Effect::Payment(id))) => match id.parse() {
                Ok(id) => self.stored_payment(&id).await?.is_some(),
                Err(_) => false,
            },
        })
    }

    /// Checks that a claimed key has no valid response, and a lease that ends after it begins.
    async fn claim(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let Some(claim) = self.parse(key, value) else { return Ok(()) };
        let Some(of) = keys::idempotency_key(key) else {
            self.find(key, "is on no idempotency key");
            return Ok(());
        };
        let response: Option<ResponseRecord> = self.other(&keys::response(&of)).await?;
        for fault in claim_faults(&claim, response.map(|it| it.created_at)) {
            self.find(key, fault);
        }
        self.stands(key, &ClaimOn { key: of, claim }).await
    }

    async fn api_key(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        let Some(api_key) = self.parse::<ApiKey>(key, value) else { return Ok(()) };
        let workspace: Option<Workspace> = self.other(&keys::workspace(&api_key.workspace_id)).await?;
        let is_its = workspace.is_some_and(|it| it.developer_id == owner_of(&api_key.scope.developer_id));
        self.expect(is_its, key, "is of a workspace that is not there, or of another developer");
        match keys::hash_of(key) {
            Some(hash) => self.stands(key, &KeyOf { hash, key: api_key }).await,
            None => {
                self.find(key, "is under no hash");
                Ok(())
            }
        }
    }

    async fn has_workspace(&mut self, key: &[u8], developer: &payments_core::DeveloperId) -> Result<(), StoreError> {
        let is_there = self.get(&keys::workspace_of(&owner_of(developer))).await?.is_some();
        self.expect(is_there, key, "belongs to a developer that is not there");
        Ok(())
    }
}
