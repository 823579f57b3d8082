//! Payments: their state, their columns, their events and their postings.

use payments_core::Posting;
use tokio_postgres::Row;

use super::{
    super::{
        batch::{PaymentColumns, PaymentRow},
        load::{parse, payment_body, payment_row},
        names,
        read::field,
        transactions::money,
    },
    Check,
};
use crate::{
    domain::{Session, effects, faults},
    store::{
        Result,
        invariants::{event_faults, money_of_events, posting_fault, sum_fault},
    },
};

/// The owner of a payment's developer is computed as `owner_of` does.
pub(super) const PAYMENTS: &str = "SELECT p.id, p.body, p.status, p.expires_at, p.check_at, p.needs_settlement, \
    p.needs_review, p.developer, p.environment, p.version, \
    EXISTS (SELECT FROM record w WHERE w.kind = 'workspace' AND w.parent = left(p.developer, 39)), \
    ARRAY(SELECT o.version FROM posting o WHERE o.payment = p.id ORDER BY o.version), \
    ARRAY(SELECT o.body FROM posting o WHERE o.payment = p.id ORDER BY o.version) FROM payment p ORDER BY p.id";
pub(super) const EVENTS: &str = "SELECT e.id, e.kind, e.payment, e.developer, e.environment, p.body FROM event e \
    LEFT JOIN payment p ON p.id = e.payment AND p.developer = e.developer AND p.environment = e.environment ORDER BY e.id";
const LISTED: &str = "SELECT currency, amount, fee FROM event WHERE id = $1";
/// Balances that differ from what the transactions up to theirs add up to.
pub(super) const CHECKPOINTS: &str = "SELECT c.developer, c.environment, c.number, c.bdt::text, c.usd::text, \
    coalesce(s.bdt, 0)::text, coalesce(s.usd, 0)::text, s.number IS NOT NULL FROM balance_checkpoint c LEFT JOIN (\
    SELECT developer, environment, added_by, number, sum(amount + fee) FILTER (WHERE currency = 'BDT') OVER o AS bdt, \
    sum(amount + fee) FILTER (WHERE currency = 'USD') OVER o AS usd FROM event WHERE amount IS NOT NULL \
    WINDOW o AS (PARTITION BY developer, environment ORDER BY added_by, number)) s \
    USING (developer, environment, added_by, number) ORDER BY 1, 2, c.added_by, 3";
pub(super) const POSTINGS_OF_NONE: &str = "SELECT o.payment, o.version FROM posting o \
    WHERE NOT EXISTS (SELECT FROM payment p WHERE p.id = o.payment) ORDER BY o.payment, o.version";

impl Check<'_> {
    pub(super) fn payment(&mut self, row: &Row) -> Result<()> {
        let id: &str = field(row, 0)?;
        let (versions, bodies): (Vec<i64>, Vec<&str>) = (field(row, 11)?, field(row, 12)?);
        self.checked.payments += 1;
        self.read(1 + bodies.len());
        let key = format!("payment/{id}");
        let Some((_, PaymentRow { session, events, columns })) = self.readable(&key, payment_row(row))? else {
            return Ok(());
        };
        let payment = &session.payment;
        self.expect(id == payment.id.as_str(), &key, "holds another payment");
        for fault in faults(&session) {
            self.find(&key, fault);
        }
        let (developer, environment) = names::scope(&session.scope());
        self.column(&key, "developer", &field(row, 7)?, &&*developer);
        self.column(&key, "environment", &field(row, 8)?, &environment);
        self.column(&key, "version", &field(row, 9)?, &session.version.cast_signed());
        let mut expected = PaymentColumns::default();
        expected.apply(&effects(None, &session, &[]));
        self.column(&key, "status", &columns.status, &expected.status);
        self.column(&key, "expires_at", &columns.expiry, &expected.expiry);
        self.column(&key, "check_at", &columns.gateway_check, &expected.gateway_check);
        self.column(&key, "needs_settlement", &columns.manual_settlement, &expected.manual_settlement);
        self.column(&key, "needs_review", &columns.manual_review, &expected.manual_review);
        self.expect(field(row, 10)?, &key, "belongs to a developer that is not there");
        for fault in event_faults(payment, &events) {
            self.find(&key, fault);
        }
        self.is_found(&key, &session)?;
        let mut changes = Vec::new();
        for (version, body) in versions.into_iter().zip(bodies) {
            changes.push(self.posting(&format!("posting/{id}/{version}"), body, &session)?);
        }
        for (event, expected) in events.iter().zip(money_of_events(payment.currency, &events, &changes)) {
            let listed = self.snapshot.query(LISTED, &[&event.id.as_str()])?;
            let what = format_args!("has the event {}, which is not in the list of events", event.id);
            self.expect(!listed.is_empty(), &key, what);
            for row in &listed {
                let found = money(row, 0)?;
                let what = format_args!("has the event {} with {found:?}, and its postings say {expected:?}", event.id);
                self.expect(found == expected, &key, what);
            }
        }
        if let Some(fault) = posting_fault(payment, &changes) {
            self.find(&key, fault);
        }
        if let Some((day, added)) = effects(None, &session, &changes.concat()).day {
            let name = format!("{developer}/{environment}/{}/{day}", payment.currency);
            *self.days.entry(name).or_default() += added;
        }
        Ok(())
    }

    /// An entry of the list of events is that of an event of its payment.
    pub(super) fn listed_event(&mut self, row: &Row) -> Result<()> {
        self.read(1);
        let id: &str = field(row, 0)?;
        let (kind, body): (&str, Option<&str>) = (field(row, 1)?, field(row, 5)?);
        let payment = body.and_then(|body| payment_body("", body).ok());
        let has_it = payment.is_some_and(|(_, events)| {
            events.iter().any(|event| event.id.as_str() == id && event.event.as_str() == kind)
        });
        self.expect(has_it, &format!("event/{id}"), "is in the list of events, and its payment does not have it");
        Ok(())
    }

    pub(super) fn checkpoint(&mut self, row: &Row) -> Result<()> {
        self.read(1);
        let (developer, environment, number): (&str, &str, i64) = (field(row, 0)?, field(row, 1)?, field(row, 2)?);
        let stored: (&str, &str) = (field(row, 3)?, field(row, 4)?);
        let summed: (&str, &str) = (field(row, 5)?, field(row, 6)?);
        let is_there: bool = field(row, 7)?;
        let key = format!("balance_checkpoint/{developer}/{environment}/{number}");
        self.expect(is_there, &key, "follows no transaction");
        self.expect(stored == summed, &key, format_args!("is {stored:?}, and the transactions come to {summed:?}"));
        Ok(())
    }

    /// The postings of a change sum to zero. Adds them to the derived sums.
    fn posting(&mut self, key: &str, body: &str, session: &Session) -> Result<Vec<Posting>> {
        let postings: Vec<Posting> = self.readable(key, parse(key, body))?.unwrap_or_default();
        if let Some(fault) = sum_fault(&postings) {
            self.find(key, fault);
        }
        let (developer, environment) = names::scope(&session.scope());
        for (name, minor) in names::money(&effects(None, session, &postings)) {
            *self.money.entry((developer.clone(), environment.to_owned(), name)).or_default() += minor;
        }
        Ok(postings)
    }

    pub(super) fn posting_of_none(&mut self, row: &Row) -> Result<()> {
        self.read(1);
        let (payment, version): (&str, i64) = (field(row, 0)?, field(row, 1)?);
        self.find(&format!("posting/{payment}/{version}"), "belongs to a payment that is not there");
        Ok(())
    }
}
