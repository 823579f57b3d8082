//! The traces of recent events, by which a delivery joins the trace of the request that caused it.
//!
//! They are in memory, so that the store does not depend on the feature. After a restart, or on another server, a delivery begins
//! a trace of its own.

use std::collections::{HashMap, VecDeque};

use opentelemetry::trace::SpanContext;
use payments_core::EventId;

const AT_MOST: usize = 65_536;

#[derive(Default)]
pub(super) struct RecentEvents {
    spans: HashMap<EventId, SpanContext>,
    /// The oldest first.
    order: VecDeque<EventId>,
}

impl RecentEvents {
    /// Remembers the span that committed an event, and forgets the oldest event beyond the limit.
    pub(super) fn insert(&mut self, event: EventId, span: SpanContext) {
        if self.spans.insert(event.clone(), span).is_none() {
            self.order.push_back(event);
        }
        if self.order.len() > AT_MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.spans.remove(&oldest);
        }
    }

    pub(super) fn get(&self, event: &EventId) -> Option<SpanContext> {
        self.spans.get(event).cloned()
    }
}

#[cfg(test)]
mod tests {
    use payments_core::{RANDOM_BYTES, Slot, Timestamp};

    use super::*;

    #[test]
    fn the_oldest_event_beyond_the_limit_is_forgotten() {
        let event = |nth: usize| {
            let at = Timestamp::from_millis(i64::try_from(nth).unwrap()).unwrap();
            EventId::new(Slot::FIRST, at, [0; RANDOM_BYTES])
        };
        let mut recent = RecentEvents::default();
        for nth in 0..=AT_MOST {
            recent.insert(event(nth), SpanContext::empty_context());
        }
        assert!(recent.get(&event(0)).is_none());
        assert!(recent.get(&event(1)).is_some() && recent.get(&event(AT_MOST)).is_some());
        assert_eq!((recent.spans.len(), recent.order.len()), (AT_MOST, AT_MOST));
    }
}
