//! What payments are found by.

use tokio_postgres::Row;

use super::{
    super::{load::payment_body, names, read::field},
    Check,
};
use crate::{
    domain::{Session, lookups},
    store::Result,
};

pub(super) const LOOKUPS: &str = "SELECT l.kind, l.value, l.payment, p.body FROM payment_lookup l LEFT JOIN payment p \
    ON p.id = l.payment AND p.developer = l.developer AND p.environment = l.environment \
    ORDER BY l.developer, l.environment, l.kind, l.value, l.payment";
const IS_FOUND: &str = "SELECT FROM payment_lookup WHERE developer = $1 AND environment = $2 AND kind = $3 AND value = $4 \
    AND payment = $5";

impl Check<'_> {
    /// Each of a payment's values finds it.
    pub(super) fn is_found(&mut self, key: &str, session: &Session) -> Result<()> {
        let (developer, environment) = names::scope(&session.scope());
        for lookup in lookups(&session.payment) {
            let (kind, id) = (lookup.kind.as_str(), session.payment.id.as_str());
            let found = self.snapshot.query(IS_FOUND, &[&developer, &environment, &kind, &lookup.value, &id])?;
            self.expect(!found.is_empty(), key, format_args!("is not found by its {kind}"));
        }
        Ok(())
    }

    /// Each payment that a value finds has the value.
    pub(super) fn lookup(&mut self, row: &Row) -> Result<()> {
        self.read(1);
        let (kind, value, payment): (&str, &str, &str) = (field(row, 0)?, field(row, 1)?, field(row, 2)?);
        let body: Option<&str> = field(row, 3)?;
        // An unreadable body is reported with its payment.
        let values = body.and_then(|body| payment_body("", body).ok()).map(|(session, _)| lookups(&session.payment));
        let has_it = values.is_some_and(|values| values.iter().any(|it| it.kind.as_str() == kind && it.value == value));
        self.expect(has_it, &format!("payment/{payment}"), format_args!("is found by a {kind} that it does not have"));
        Ok(())
    }
}
