//! Deliveries, the outbox and pending events, and what servers note about their work.

use payments_core::{DeliveryId, EventId, PaymentId, Timestamp, WebhookId};
use tokio_postgres::Row;

use super::{
    super::{load::parse, names, read::field},
    Check, has_event,
};
use crate::{
    domain::{Outgoing, delivery_faults},
    store::Result,
};

pub(super) const DELIVERIES: &str = "SELECT d.id, d.developer, d.environment, d.endpoint, d.payment, d.version, \
    d.is_pending, d.body, p.body, d.retry_at FROM delivery d LEFT JOIN payment p ON p.id = d.payment ORDER BY d.id";
pub(super) const PENDING_EVENTS: &str = "SELECT e.id, e.after, p.body FROM pending_event e \
    LEFT JOIN payment p ON p.id = e.payment ORDER BY e.id";
pub(super) const REDACTION: &str = "SELECT up_to FROM redaction";
pub(super) const LEASES: &str = "SELECT queue, work FROM lease ORDER BY queue, work";

impl Check<'_> {
    pub(super) fn delivery(&mut self, row: &Row) -> Result<()> {
        self.read(1);
        let (id, body): (&str, &str) = (field(row, 0)?, field(row, 7)?);
        let key = format!("delivery/{id}");
        let Some(outgoing) = self.readable(&key, parse::<Outgoing>(&key, body))? else { return Ok(()) };
        let delivery = &outgoing.delivery;
        self.expect(id == delivery.id.as_str(), &key, "holds another delivery");
        let (developer, environment) = names::scope(&outgoing.scope());
        self.column(&key, "developer", &field(row, 1)?, &&*developer);
        self.column(&key, "environment", &field(row, 2)?, &environment);
        self.column(&key, "endpoint", &field(row, 3)?, &delivery.webhook_id.as_str());
        self.column(&key, "payment", &field(row, 4)?, &outgoing.payment.as_ref().map(PaymentId::as_str));
        self.column(&key, "version", &field(row, 5)?, &outgoing.version.cast_signed());
        let is_listed: bool = field(row, 6)?;
        let retry_at = outgoing.retry_at().map(Timestamp::as_millis);
        self.column(&key, "retry_at", &field(row, 9)?, &retry_at);
        delivery_faults(&outgoing).into_iter().for_each(|fault| self.find(&key, fault));
        match (is_listed, outgoing.is_in_outbox()) {
            (false, true) => self.find(&key, "is pending and not in the outbox: it will never be sent"),
            (true, false) => self.find(&key, "is in the outbox, and has ended"),
            _ => {}
        }
        if let Some(event) = &outgoing.event {
            self.expect(has_event(field(row, 8)?, event), &key, "sends an event that is not there");
        }
        Ok(())
    }

    /// A pending event exists.
    pub(super) fn pending_event(&mut self, row: &Row) -> Result<()> {
        self.read(1);
        let (id, after, body): (&str, Option<&str>, Option<&str>) = (field(row, 0)?, field(row, 1)?, field(row, 2)?);
        let key = format!("pending_event/{id}");
        let is_there = id.parse().is_ok_and(|event: EventId| has_event(body, &event));
        self.expect(is_there, &key, "names an event that does not exist");
        let is_id = after.is_none_or(|after| after.parse::<WebhookId>().is_ok());
        self.expect(is_id, &key, "has reached an endpoint whose id cannot be read");
        Ok(())
    }

    pub(super) fn redaction(&mut self, row: &Row) -> Result<()> {
        self.read(1);
        let up_to: &str = field(row, 0)?;
        self.expect(up_to.parse::<DeliveryId>().is_ok(), "redaction", "names a delivery whose id cannot be read");
        Ok(())
    }

    pub(super) fn lease(&mut self, row: &Row) -> Result<()> {
        self.read(1);
        let (queue, work): (&str, &str) = (field(row, 0)?, field(row, 1)?);
        let is_known = names::known_work(queue, work).is_some();
        self.expect(is_known, &format!("lease/{queue}/{work}"), "is on work that cannot be read");
        Ok(())
    }
}
