//! Stored responses and claims on idempotency keys.

use payments_core::Timestamp;
use tokio_postgres::Row;

use super::{
    super::{
        load::{ResponseBody, parse},
        names,
        read::field,
    },
    Check, has_event,
};
use crate::{
    domain::KeyClaim,
    store::{
        Result, StoreError,
        invariants::{Effect, claim_faults, effect_of},
    },
};

pub(super) const RESPONSES_AND_CLAIMS: &str = "SELECT i.developer, i.environment, i.digest, i.responded_at, i.response, \
    i.claimed_until, i.claim, p.body FROM idempotency i LEFT JOIN payment p ON p.id = i.payment ORDER BY 1, 2, 3";
const PAYMENT: &str = "SELECT FROM payment WHERE id = $1";
const DELIVERY: &str = "SELECT FROM delivery WHERE id = $1";

impl Check<'_> {
    pub(super) fn idempotency(&mut self, row: &Row) -> Result<()> {
        self.read(1);
        let (developer, environment, digest): (&str, &str, &[u8]) = (field(row, 0)?, field(row, 1)?, field(row, 2)?);
        let key = format!("idempotency/{developer}/{environment}/{}", hex::encode(digest));
        let is_key = names::environment(environment).is_some() && digest.len() == 32;
        self.expect(is_key, &key, "is on no idempotency key");
        let (response, claim): (Option<&str>, Option<&str>) = (field(row, 4)?, field(row, 6)?);
        self.expect(response.is_some() || claim.is_some(), &key, "was used and has no response");

        let response =
            response.map(|json| self.readable(&key, parse::<ResponseBody>(&key, json))).transpose()?.flatten();
        let responded_at = response.as_ref().map(|response| response.created_at);
        self.column(&key, "responded_at", &field(row, 3)?, &responded_at.map(Timestamp::as_millis));
        if let Some(response) = &response {
            let is_there = self.tells_of_an_effect(&key, response, field(row, 7)?)?;
            self.expect(is_there, &key, "tells of an effect that is not there");
        }
        let claim = claim.map(|json| self.readable(&key, parse::<KeyClaim>(&key, json))).transpose()?.flatten();
        self.column(&key, "claimed_until", &field(row, 5)?, &claim.as_ref().map(|claim| claim.until.as_millis()));
        for fault in claim.iter().flat_map(|claim| claim_faults(claim, responded_at)) {
            self.find(&key, fault);
        }
        Ok(())
    }

    /// Whether a stored response tells of an effect that exists. `payment` is the body of the payment that its row names.
    fn tells_of_an_effect(&mut self, key: &str, response: &ResponseBody, payment: Option<&str>) -> Result<bool> {
        let body = match (&response.body, &response.event) {
            (None, Some(event)) => return Ok(has_event(payment, event)),
            (Some(body), None) => body,
            _ => return Ok(false),
        };
        let effect = effect_of(body).map_err(|error| StoreError::corrupt(key.as_bytes(), error));
        Ok(match self.readable(key, effect)?.flatten() {
            None => false,
            Some(Effect::Endpoint) => true,
            Some(Effect::Delivery(id)) => self.is_there(DELIVERY, &id)?,
            Some(Effect::Payment(id)) => self.is_there(PAYMENT, &id)?,
        })
    }
}
