//! Parts of the list of events.

use crate::{
    ErrorCode, EventId, EventKind, PaymentId, Timestamp, aliased::aliased_resource, query::Query, validation::Invalid,
};

aliased_resource! {
    /// A part of the list of events, oldest first. The list has all events about payments, even those for which there was no
    /// webhook endpoint.
    #[derive(Debug)]
    pub struct EventPage<E> {
        /// The events, in the order in which they became durable.
        items: Vec<E> = "items",
        /// Whether the list has more events at the moment.
        has_more: bool = "hasMore",
        /// Where the next part begins: pass it as `after`. `null` as long as there is no event. With filters, it may be an
        /// event that they exclude, and a part may be empty although the list goes on.
        next: Option<EventId> = "next",
    }
}

/// The end of the list, in place of an event's id.
const LATEST: &str = "latest";

/// The part of the list of events that a request asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventQuery {
    /// Only events strictly after this one in the list.
    pub after: Option<EventId>,
    /// No events, only the end of the list: where it goes on with later events.
    pub is_latest: bool,
    /// Only events of these kinds. An empty list means all kinds.
    pub events: Vec<EventKind>,
    /// Only events of this payment.
    pub payment: Option<PaymentId>,
    /// Only events that happened at this time or later.
    pub created_after: Option<Timestamp>,
    /// Only events that happened before this time.
    pub created_before: Option<Timestamp>,
    limit: Option<u8>,
}

impl EventQuery {
    /// The default number of items.
    pub const DEFAULT_LIMIT: u8 = 20;
    /// The maximum number of items.
    pub const MAX_LIMIT: u8 = 100;

    /// Parses the query parameters `after` (an event's id, or `latest`), `events` (kinds with commas between them), `paymentId`,
    /// `createdAfter`, `createdBefore` and `limit` (1 to 100, default 20). `parameter` returns a parameter's value.
    ///
    /// # Errors
    /// One sentence per invalid parameter.
    pub fn from_query(parameter: impl Fn(&str) -> Option<String>) -> Result<Self, Invalid> {
        let mut query = Query::of(parameter);
        let is_latest = query.text("after").as_deref() == Some(LATEST);
        let error = "must be the id of an event, or latest";
        let after = if is_latest { None } else { query.parsed("after", ErrorCode::FieldInvalid, error) };
        let payment = query.parsed("paymentId", ErrorCode::FieldInvalid, "must be the id of a payment");
        let mut events = Vec::new();
        for kind in query.text("events").iter().flat_map(|kinds| kinds.split(',')) {
            match EventKind::known(kind) {
                Some(kind) => events.push(kind),
                None => {
                    let error = "must be kinds of events, with commas between";
                    query.invalid.add("events", ErrorCode::FieldInvalid, error, ());
                }
            }
        }
        let (created_after, created_before) = (query.time("createdAfter"), query.time("createdBefore"));
        let limit = query.limit(Self::MAX_LIMIT);
        query.invalid.or(Self { after, is_latest, events, payment, created_after, created_before, limit })
    }

    /// The maximum number of items.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit.unwrap_or(Self::DEFAULT_LIMIT).into()
    }

    /// Whether the query has a filter. The cursor and the number of items are no filters.
    #[must_use]
    pub fn has_filter(&self) -> bool {
        !self.events.is_empty()
            || self.payment.is_some()
            || self.created_after.is_some()
            || self.created_before.is_some()
    }

    /// Whether the filters include an event. Ignores the filter by payment.
    #[must_use]
    pub fn includes(&self, kind: &EventKind, created_at: Timestamp) -> bool {
        (self.events.is_empty() || self.events.contains(kind))
            && self.created_after.is_none_or(|from| created_at >= from)
            && self.created_before.is_none_or(|end| created_at < end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(pairs: &[(&str, &str)]) -> Result<EventQuery, Invalid> {
        EventQuery::from_query(|name| {
            pairs.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned())
        })
    }

    #[test]
    fn a_query_without_parameters_asks_for_the_first_twenty() {
        let query = parsed(&[]).unwrap();
        assert_eq!((query.limit(), &query), (20, &EventQuery::default()));
    }

    #[test]
    fn the_end_of_the_list_has_a_name() {
        let query = parsed(&[("after", "latest")]).unwrap();
        assert!(query.is_latest && query.after.is_none() && !query.has_filter());
    }

    #[test]
    fn filters_include_their_first_moment_and_exclude_their_last() {
        let times = [("createdAfter", "2026-03-01T00:00:00Z"), ("createdBefore", "2026-03-02T00:00:00Z")];
        let query = parsed(&[times[0], times[1], ("events", "payment.created,payment.refunded")]).unwrap();
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        for (kind, time, is_included) in [
            (EventKind::PaymentCreated, "2026-03-01T00:00:00Z", true),
            (EventKind::PaymentRefunded, "2026-03-01T23:59:59.999Z", true),
            (EventKind::PaymentCreated, "2026-03-02T00:00:00Z", false),
            (EventKind::PaymentCreated, "2026-02-28T23:59:59.999Z", false),
            (EventKind::PaymentCompleted, "2026-03-01T12:00:00Z", false),
        ] {
            assert_eq!(query.includes(&kind, at(time)), is_included, "{kind} {time}");
        }
    }

    #[test]
    fn each_invalid_parameter_is_named() {
        let wrong = [
            ("after", "a b"),
            ("paymentId", "/"),
            ("events", "payment.created,payment.lost"),
            ("createdAfter", "yesterday"),
            ("createdBefore", "1"),
            ("limit", "101"),
        ];
        let fields = parsed(&wrong).unwrap_err().fields();
        let mut named: Vec<_> = fields.iter().map(|error| error.field.as_str()).collect();
        named.sort_unstable();
        let mut expected = wrong.map(|(name, _)| name);
        expected.sort_unstable();
        assert_eq!(named, expected);
    }
}
