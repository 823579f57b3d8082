//! The notices: one for each state that somebody must look at, and the events that tell the platform's webhook of it.

use payments_core::{DeveloperId, EventId, Notice, NoticeKind, Timestamp};
use serde::{Deserialize, Serialize};

use super::{is_first, retries::longest_delay_millis};

/// How many closed notices wait for their event at most.
const MAX_CLOSED: usize = 100;
/// A notice about a gateway or about coverage closes after its state has been gone for this long. Servers see gateways
/// differently, and books change with each payment.
const UNSTEADY_MILLIS: i64 = 2 * 60 * 1000;

/// All notices of a store.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notices {
    #[serde(default, skip_serializing_if = "is_first")]
    pub version: u64,
    pub notices: Vec<KnownNotice>,
}

/// A notice with what only the server knows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownNotice {
    pub notice: Notice,
    /// Whose it is; `None` if it is the platform's alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub developer_id: Option<DeveloperId>,
    /// Since when no look has found it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    gone_since: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub closed_at: Option<Timestamp>,
    /// The event of its last change, until the platform's webhook has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untold: Option<Untold>,
}

/// An event that the platform's webhook has not got.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Untold {
    pub event: EventId,
    tries: u32,
    pub next_at: Timestamp,
}

impl KnownNotice {
    pub fn new(notice: Notice, developer_id: Option<DeveloperId>) -> Self {
        Self { notice, developer_id, gone_since: None, closed_at: None, untold: None }
    }

    fn is_of(&self, other: &Self) -> bool {
        self.closed_at.is_none() && self.notice.kind == other.notice.kind && self.notice.subject == other.notice.subject
    }

    /// Whether it is kept: it is open, or its end must be told.
    fn counts(&self) -> bool {
        self.closed_at.is_none() || self.untold.is_some()
    }
}

impl Notices {
    pub fn open(&self) -> impl Iterator<Item = &KnownNotice> {
        self.notices.iter().filter(|known| known.closed_at.is_none())
    }

    /// The notices after a look that found `present`. `event` makes the id of an event for the platform's webhook, if it has
    /// one.
    pub fn after(&self, present: &[KnownNotice], now: Timestamp, event: impl Fn() -> Option<EventId>) -> Self {
        let untold = || event().map(|event| Untold { event, tries: 0, next_at: now });
        let mut next = self.clone();
        for known in next.notices.iter_mut().filter(|known| known.closed_at.is_none()) {
            if let Some(found) = present.iter().find(|found| known.is_of(found)) {
                known.gone_since = None;
                (known.notice.due_at, known.notice.more) = (found.notice.due_at, found.notice.more);
                continue;
            }
            let since = *known.gone_since.get_or_insert(now);
            let is_unsteady = matches!(known.notice.kind, NoticeKind::GatewayDown | NoticeKind::NotCovered);
            if !is_unsteady || now.as_millis() - since.as_millis() >= UNSTEADY_MILLIS {
                known.closed_at = Some(now);
                // Nobody was told of it, so nobody is told of its end.
                known.untold = if known.untold.is_some() { None } else { untold() };
            }
        }
        let new = present.iter().filter(|found| !self.notices.iter().any(|known| known.is_of(found)));
        next.notices.extend(new.map(|found| KnownNotice { untold: untold(), ..found.clone() }));
        next.notices.retain(KnownNotice::counts);
        let mut closed = next.notices.iter().filter(|known| known.closed_at.is_some()).count();
        next.notices.retain(|known| {
            let is_too_many = known.closed_at.is_some() && closed > MAX_CLOSED;
            closed -= usize::from(is_too_many);
            !is_too_many
        });
        next
    }

    /// Records a try to tell an event. After the last one it is given up: then the result is false.
    pub fn told(&mut self, event: &EventId, is_taken: bool, now: Timestamp) -> bool {
        let mut goes_on = true;
        for known in &mut self.notices {
            let Some(untold) = known.untold.as_mut().filter(|untold| untold.event == *event) else { continue };
            untold.tries += 1;
            match longest_delay_millis(untold.tries).filter(|_| !is_taken) {
                Some(delay) => untold.next_at = Timestamp::from_millis(now.as_millis() + delay).unwrap_or(now),
                None => (known.untold, goes_on) = (None, is_taken),
            }
        }
        self.notices.retain(KnownNotice::counts);
        goes_on
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use payments_core::UnknownFields;

    use super::*;
    use crate::domain::samples::at;

    fn notice(kind: NoticeKind, subject: &str) -> KnownNotice {
        let subject = subject.to_owned();
        let unknown = UnknownFields::new();
        let (payment, environment, since) = (None, None, at(0));
        KnownNotice::new(Notice { kind, subject, payment, environment, since, due_at: None, more: None, unknown }, None)
    }

    fn told_to(nth: &Cell<u32>) -> Option<EventId> {
        nth.set(nth.get() + 1);
        format!("evt_{}", nth.get()).parse().ok()
    }

    /// The subjects of the notices, each with whether it is closed and its event.
    fn shown(notices: &Notices) -> Vec<(&str, bool, Option<&str>)> {
        let notices = notices.notices.iter().map(|KnownNotice { notice, closed_at, untold, .. }| {
            (notice.subject.as_str(), closed_at.is_some(), untold.as_ref().map(|untold| untold.event.as_str()))
        });
        notices.collect()
    }

    #[test]
    fn a_state_opens_one_notice_however_often_it_is_found_and_its_end_closes_it_once() {
        let nth = Cell::new(0);
        let wallet = notice(NoticeKind::EndpointDisabled, "wh_1");
        let opened = Notices::default().after(std::slice::from_ref(&wallet), at(1), || told_to(&nth));
        assert_eq!(shown(&opened), [("wh_1", false, Some("evt_1"))]);
        assert_eq!(opened.after(std::slice::from_ref(&wallet), at(9), || told_to(&nth)), opened);
        let mut told = opened.clone();
        assert!(told.told(&"evt_1".parse().unwrap(), true, at(9)));
        assert_eq!(shown(&told), [("wh_1", false, None)]);
        let mut closed = told.after(&[], at(10), || told_to(&nth));
        assert_eq!(shown(&closed), [("wh_1", true, Some("evt_2"))]);
        assert_eq!(closed.open().count(), 0);
        let again = closed.after(&[wallet], at(11), || told_to(&nth));
        assert_eq!(shown(&again), [("wh_1", true, Some("evt_2")), ("wh_1", false, Some("evt_3"))]);
        closed.told(&"evt_2".parse().unwrap(), true, at(12));
        assert_eq!(shown(&closed), []);
        // Its beginning was not told, so its end is not.
        assert_eq!(shown(&opened.after(&[], at(2), || told_to(&nth))), []);
        assert_eq!(shown(&told.after(&[], at(10), || None)), [], "there is no webhook");
    }

    #[test]
    fn a_gateway_that_one_server_sees_and_another_does_not_keeps_its_notice() {
        let down = [notice(NoticeKind::GatewayDown, "bkash")];
        let mut notices = Notices::default().after(&down, at(0), || None);
        for minute in 1..20 {
            let seen = if minute % 2 == 0 { &down[..] } else { &[] };
            notices = notices.after(seen, at(minute * 60), || None);
            assert_eq!(notices.open().count(), 1, "minute {minute}");
        }
        notices = notices.after(&[], at(21 * 60), || None);
        assert_eq!(notices.open().count(), 0);
    }

    #[test]
    fn an_event_is_tried_with_growing_intervals_and_then_given_up() {
        let notices =
            Notices::default().after(&[notice(NoticeKind::BackupOld, "backup")], at(0), || "evt_1".parse().ok());
        let (mut notices, mut now, mut tries) = (notices, at(0), 1);
        while notices.told(&"evt_1".parse().unwrap(), false, now) {
            let next = notices.notices[0].untold.as_ref().unwrap().next_at;
            assert!(next > now);
            (now, tries) = (next, tries + 1);
        }
        assert_eq!((tries, shown(&notices)), (7, vec![("backup", false, None)]));
    }

    #[test]
    fn closed_notices_that_nobody_takes_are_bounded() {
        let nth = Cell::new(0);
        let mut notices = Notices::default();
        for second in 0..300 {
            let present = notice(NoticeKind::PayoutWaiting, &format!("po_{second}"));
            notices = notices.after(&[present], at(second), || told_to(&nth));
            let event = notices.notices.last().unwrap().untold.as_ref().unwrap().event.clone();
            notices.told(&event, true, at(second));
        }
        assert_eq!(notices.notices.len(), MAX_CLOSED + 1);
    }
}
