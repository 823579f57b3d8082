//! Retries of deliveries to endpoints that asked for them.
//!
//! An endpoint without retries gets one attempt of each delivery and is never disabled (API specification, "Delivery").

use payments_core::{DeliveryStatus, DisabledReason, Retries, Timestamp};

use super::{Endpoint, Outgoing};

/// How long the next attempt waits after each failed one, in seconds.
const DELAYS_SECONDS: [u32; 6] = [5, 5 * 60, 30 * 60, 2 * 60 * 60, 5 * 60 * 60, 10 * 60 * 60];
/// A random part of the delay, at most this many percent, is added to it. So attempts that failed together are not repeated
/// together.
const JITTER_PERCENT: u64 = 20;
/// An endpoint without a successful attempt for this long is disabled when the last attempt of a delivery fails. One failure
/// after a quiet month does not disable it.
const DISABLED_AFTER_MILLIS: i64 = 5 * 24 * 60 * 60 * 1000;
/// The status of an endpoint that wants no more deliveries.
const GONE: u16 = 410;

impl Endpoint {
    pub fn has_retries(&self) -> bool {
        self.endpoint.retries == Some(Retries::Standard)
    }

    fn disabled(mut self, reason: DisabledReason, now: Timestamp) -> Self {
        self.failing_since = None;
        self.endpoint.is_active = false;
        self.endpoint.disabled_reason = Some(reason);
        self.endpoint.updated_at = now.max(self.endpoint.updated_at);
        self
    }

    /// The endpoint after a failed attempt, which may be the last one of its delivery.
    fn failed(self, response_status: Option<u16>, is_last: bool, now: Timestamp) -> Self {
        // The clock may have gone back since.
        let since = self.failing_since.map_or(now, |since| since.min(now));
        if response_status == Some(GONE) {
            return self.disabled(DisabledReason::Gone, now);
        }
        if is_last && now.as_millis() - since.as_millis() >= DISABLED_AFTER_MILLIS {
            return self.disabled(DisabledReason::Failing, now);
        }
        Self { failing_since: Some(since), ..self }
    }
}

/// Returns the delivery after an attempt, which may wait for the next one, and the endpoint if it changes. `attempted` is the
/// delivery with the attempt's outcome, `random` decides the jitter.
pub fn after_attempt(
    attempted: &Outgoing,
    endpoint: &Endpoint,
    now: Timestamp,
    random: [u8; 4],
) -> (Outgoing, Option<Endpoint>) {
    let mut outgoing = attempted.clone();
    if !endpoint.has_retries() || !endpoint.endpoint.is_active {
        return (outgoing, None);
    }
    let delivery = &mut outgoing.delivery;
    let next = if delivery.status == DeliveryStatus::Success {
        Endpoint { failing_since: None, ..endpoint.clone() }
    } else {
        let delay_millis = delay_millis(delivery.attempts, random);
        let next = endpoint.clone().failed(delivery.response_status, delay_millis.is_none(), now);
        if let Some(delay_millis) = delay_millis.filter(|_| next.endpoint.is_active) {
            delivery.status = DeliveryStatus::Pending;
            delivery.next_attempt_at = Some(now.plus_millis(delay_millis));
        }
        next
    };
    let is_changed = next.failing_since != endpoint.failing_since || !next.endpoint.is_active;
    let changed = is_changed.then(|| Endpoint { version: endpoint.version + 1, ..next });
    (outgoing, changed)
}

/// How long the next attempt waits at most after this many attempts; `None` if no further one follows.
pub(super) fn longest_delay_millis(attempts: u32) -> Option<i64> {
    delay_millis(attempts, [0xff; 4]).map(i64::from)
}

/// How long the next attempt waits after this many attempts, all failed; `None` if no further one follows.
fn delay_millis(attempts: u32, random: [u8; 4]) -> Option<u32> {
    let nth = usize::try_from(attempts.checked_sub(1)?).ok()?;
    let delay = u64::from(*DELAYS_SECONDS.get(nth)?) * 1000;
    let jitter = delay * JITTER_PERCENT / 100 * u64::from(u32::from_le_bytes(random)) / u64::from(u32::MAX);
    u32::try_from(delay + jitter).ok()
}

/// The invariants of attempts that a delivery violates.
pub fn delivery_faults(outgoing: &Outgoing) -> Vec<&'static str> {
    let delivery = &outgoing.delivery;
    let logged = delivery.attempt_log.as_ref().map(Vec::len);
    let attempts = usize::try_from(delivery.attempts).unwrap_or(usize::MAX);
    let rules = [
        (logged.is_none_or(|logged| logged == attempts), "the log of its attempts does not match their number"),
        (delivery.next_attempt_at.is_none() || outgoing.is_pending(), "has ended and names a next attempt"),
        (delivery.next_attempt_at.is_none() || attempts > 0, "waits for a next attempt without a first one"),
    ];
    rules.into_iter().filter(|(holds, _)| !holds).map(|(_, fault)| fault).collect()
}

/// The invariants of retries that an endpoint violates.
pub fn endpoint_faults(endpoint: &Endpoint) -> Vec<&'static str> {
    let is_active = endpoint.endpoint.is_active;
    let rules = [
        (endpoint.endpoint.disabled_reason.is_none() || !is_active, "is active and names why it was disabled"),
        (endpoint.failing_since.is_none() || endpoint.has_retries(), "counts failed attempts without retries"),
    ];
    rules.into_iter().filter(|(holds, _)| !holds).map(|(_, fault)| fault).collect()
}

#[cfg(test)]
mod tests {
    use payments_core::{EventKind, RawJson};

    use super::*;
    use crate::domain::Scope;

    const NO_JITTER: [u8; 4] = [0; 4];
    const ALL_JITTER: [u8; 4] = [0xff; 4];
    const HOUR: i64 = 60 * 60 * 1000;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(1_700_000_000_000 + millis).unwrap()
    }

    fn endpoint(retries: &str) -> Endpoint {
        serde_json::from_value(serde_json::json!({"environment": "test", "endpoint": {
            "id": "wh_1", "developerId": "dev_1", "url": "https://a.example/", "secret": "whsec_1", "events": ["*"],
            "isActive": true, "retries": retries, "createdAt": at(0), "updatedAt": at(0)}}))
        .unwrap()
    }

    fn attempted(attempts: u32, response_status: Option<u16>) -> Outgoing {
        let scope = Scope { developer_id: "dev_1".parse().unwrap(), environment: payments_core::Environment::Test };
        let (id, endpoint, body) = ("del_1".parse().unwrap(), "wh_1".parse().unwrap(), RawJson::new("{}").unwrap());
        let mut outgoing = Outgoing::new(id, &scope, &endpoint, &EventKind::PaymentCreated, body, at(0));
        let is_success = response_status.is_some_and(|status| (200..300).contains(&status));
        outgoing.delivery.status = if is_success { DeliveryStatus::Success } else { DeliveryStatus::Failed };
        outgoing.delivery.response_status = response_status;
        outgoing.delivery.attempts = attempts;
        outgoing
    }

    #[test]
    fn a_failed_delivery_waits_longer_after_each_attempt_until_the_seventh_ends_it() {
        let endpoint = endpoint("standard");
        let waits = |attempts, random| {
            let (next, _) = after_attempt(&attempted(attempts, None), &endpoint, at(0), random);
            assert_eq!(next.waits_until().is_some(), next.is_pending());
            next.waits_until().map(|until| (until.as_millis() - at(0).as_millis()) / 1000)
        };
        let seconds = [5, 300, 1_800, 7_200, 18_000, 36_000];
        assert_eq!([1, 2, 3, 4, 5, 6].map(|attempts| waits(attempts, NO_JITTER)), seconds.map(Some));
        let longest = seconds.map(|seconds| Some(seconds * 6 / 5));
        assert_eq!([1, 2, 3, 4, 5, 6].map(|attempts| waits(attempts, ALL_JITTER)), longest);
        assert_eq!([7, 8, u32::MAX].map(|attempts| waits(attempts, NO_JITTER)), [None; 3]);
    }

    #[test]
    fn a_delivery_that_waits_is_in_the_outbox_again_when_it_is_due() {
        let (waiting, _) = after_attempt(&attempted(1, Some(500)), &endpoint("standard"), at(0), NO_JITTER);
        assert!(!waiting.is_in_outbox());
        let due = waiting.clone().due().unwrap();
        assert_eq!((due.is_in_outbox(), due.waits_until(), due.version), (true, None, waiting.version + 1));
        assert_eq!((due.retry_at(), waiting.retry_at()), (Some(at(5_000)), Some(at(5_000))));
        assert!(due.due().is_none());
    }

    #[test]
    fn the_next_attempt_of_a_waiting_delivery_can_be_moved_earlier_but_not_into_the_past() {
        let (waiting, _) = after_attempt(&attempted(1, Some(500)), &endpoint("standard"), at(0), NO_JITTER);
        let until = |seconds, now| {
            let sooner = waiting.clone().sooner(seconds, at(now))?;
            assert_eq!((sooner.version, sooner.is_in_outbox()), (waiting.version + 1, false));
            Some(sooner.waits_until().unwrap().as_millis() - at(0).as_millis())
        };
        assert_eq!([until(1, 1_000), until(4, 1_000), until(5, 1_000)], [Some(4_000), Some(1_000), Some(1_000)]);
        assert_eq!(until(u32::MAX, 4_999), Some(4_999));
        assert_eq!([until(1, 5_000), until(1, 6_000)], [None; 2], "it is due");
        assert!(waiting.clone().due().unwrap().sooner(1, at(0)).is_none());
    }

    #[test]
    fn without_retries_a_delivery_has_one_attempt_and_nothing_disables_the_endpoint() {
        for status in [None, Some(500), Some(410), Some(200)] {
            let failing = Endpoint { failing_since: Some(at(0)), ..endpoint("none") };
            let (next, changed) = after_attempt(&attempted(1, status), &failing, at(1_000 * HOUR), NO_JITTER);
            assert!(!next.is_pending() && changed.is_none(), "{status:?}");
        }
    }

    #[test]
    fn an_endpoint_that_is_gone_or_failed_for_five_days_is_disabled_and_a_success_restarts_the_days() {
        let new = endpoint("standard");
        let (_, failing) = after_attempt(&attempted(1, Some(500)), &new, at(0), NO_JITTER);
        let failing = failing.unwrap();
        assert_eq!((failing.failing_since, failing.version, failing.endpoint.is_active), (Some(at(0)), 1, true));
        assert!(after_attempt(&attempted(7, None), &failing, at(120 * HOUR - 1), NO_JITTER).1.is_none());
        assert!(
            after_attempt(&attempted(1, None), &failing, at(900 * HOUR), NO_JITTER).1.is_none(),
            "not the last attempt"
        );

        let (delivery, disabled) = after_attempt(&attempted(7, None), &failing, at(120 * HOUR), NO_JITTER);
        let disabled = disabled.unwrap().endpoint;
        assert_eq!((disabled.is_active, disabled.disabled_reason), (false, Some(DisabledReason::Failing)));
        assert!(!delivery.is_pending() && disabled.updated_at == at(120 * HOUR));

        let (_, well) = after_attempt(&attempted(2, Some(204)), &failing, at(HOUR), NO_JITTER);
        assert_eq!(well.unwrap().failing_since, None);
        assert!(after_attempt(&attempted(1, Some(204)), &new, at(HOUR), NO_JITTER).1.is_none());

        let (delivery, gone) = after_attempt(&attempted(1, Some(410)), &new, at(HOUR), NO_JITTER);
        let gone = gone.unwrap().endpoint;
        assert_eq!((gone.is_active, gone.disabled_reason), (false, Some(DisabledReason::Gone)));
        assert_eq!(delivery.delivery.status, DeliveryStatus::Failed);
    }

    #[test]
    fn a_delivery_whose_log_and_number_of_attempts_differ_is_found() {
        let (waiting, _) = after_attempt(&attempted(1, None), &endpoint("standard"), at(0), NO_JITTER);
        assert_eq!(delivery_faults(&waiting), [""; 0]);
        let mut odd = waiting;
        odd.delivery.status = DeliveryStatus::Failed;
        odd.delivery.attempts = 0;
        odd.delivery.attempt_log = Some(Vec::new());
        assert_eq!(delivery_faults(&odd).len(), 2);
    }

    #[test]
    fn an_active_endpoint_with_a_disabled_reason_and_failures_without_retries_are_found() {
        let mut odd = endpoint("standard");
        odd.failing_since = Some(at(0));
        assert_eq!(endpoint_faults(&odd), [""; 0]);
        odd.endpoint.retries = None;
        odd.endpoint.disabled_reason = Some(DisabledReason::Failing);
        assert_eq!(endpoint_faults(&odd).len(), 2);
        assert_eq!(endpoint_faults(&endpoint("standard").disabled(DisabledReason::Gone, at(0))), [""; 0]);
    }
}
