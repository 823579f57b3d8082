//! The pending deliveries of one endpoint, and which of them may be sent now.
//!
//! Deliveries are sent in the order of their ids, but a delivery waits while an earlier one of the same payment or payout is in
//! flight. That is known only once the delivery is loaded. So deliveries are loaded in order, and of a waiting one the backlog
//! remembers only the id.

use std::collections::{BTreeMap, HashSet};

use payments_core::DeliveryId;

use super::width::Width;
use crate::{domain::Subject, store::OutboxHead};

/// The deliveries of one endpoint that are in flight or pending.
#[derive(Debug, Default)]
pub(super) struct Backlog {
    deliveries: BTreeMap<DeliveryId, State>,
    /// Whether the backlog has every delivery of the outbox.
    is_full: bool,
}

/// What the backlog knows of a delivery.
#[derive(Debug)]
enum State {
    NotLoaded,
    Loaded(Option<Subject>),
    InFlight(Option<Subject>),
    /// The delivery cannot be loaded and is skipped. It stays in the outbox, where `check` finds it.
    Unreadable,
}

impl Backlog {
    /// Notes that the outbox has new deliveries.
    pub(super) fn request_refill(&mut self) {
        self.is_full = false;
    }

    /// Whether [`next`](Self::next) needs another [`refill`](Self::refill).
    pub(super) fn needs_refill(&self) -> bool {
        !self.is_full
    }

    pub(super) fn is_empty(&self) -> bool {
        self.deliveries.is_empty()
    }

    /// How many ids to read from the outbox. Those known here are still among its first.
    pub(super) fn refill_limit(&self) -> usize {
        self.deliveries.len() + Width::MAX
    }

    /// Takes the first ids of the outbox, at most [`refill_limit`](Self::refill_limit). If the outbox has more, the next
    /// refill reads further, because the limit exceeds the number of deliveries here.
    pub(super) fn refill(&mut self, head: OutboxHead) {
        self.is_full = head.is_all;
        self.deliveries.retain(|id, state| matches!(state, State::InFlight(_)) || head.ids.binary_search(id).is_ok());
        for id in head.ids {
            self.deliveries.entry(id).or_insert(State::NotLoaded);
        }
    }

    /// The first delivery that may be sent, or that must be loaded to decide.
    pub(super) fn next(&self) -> Option<&DeliveryId> {
        let in_flight = self.deliveries.values().filter_map(|state| match state {
            State::InFlight(subject) => subject.as_ref(),
            _ => None,
        });
        let mut blocked: HashSet<&Subject> = in_flight.collect();
        self.deliveries.iter().find_map(|(id, state)| match state {
            State::NotLoaded | State::Loaded(None) => Some(id),
            State::Loaded(Some(subject)) => blocked.insert(subject).then_some(id),
            State::InFlight(_) | State::Unreadable => None,
        })
    }

    /// Records that the next delivery was loaded. Returns whether it may be sent now; otherwise it waits for an earlier one.
    #[must_use]
    pub(super) fn loaded(&mut self, id: &DeliveryId, subject: Option<&Subject>) -> bool {
        self.set(id, State::Loaded(subject.cloned()));
        let may_be_sent = self.next() == Some(id);
        if may_be_sent {
            self.set(id, State::InFlight(subject.cloned()));
        }
        may_be_sent
    }

    pub(super) fn unreadable(&mut self, id: &DeliveryId) {
        self.set(id, State::Unreadable);
    }

    pub(super) fn finished(&mut self, id: &DeliveryId) {
        self.deliveries.remove(id);
    }

    /// Makes a delivery pending again that was in flight but not sent. Later deliveries of its payment wait for it.
    pub(super) fn put_back(&mut self, id: &DeliveryId) {
        if let Some(State::InFlight(subject)) = self.deliveries.remove(id) {
            self.set(id, State::Loaded(subject));
        }
    }

    fn set(&mut self, id: &DeliveryId, state: State) {
        self.deliveries.insert(id.clone(), state);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn delivery(number: usize) -> DeliveryId {
        format!("del_{number:04}").parse().unwrap()
    }

    /// One step of the test.
    #[derive(Debug, Clone)]
    enum Step {
        /// A delivery for this payment enters the outbox.
        Add(usize),
        /// The lane uses a free permit.
        Send,
        /// A request in flight finishes, or is put back unsent.
        End(usize, bool),
        /// The next read of the outbox returns at most this many ids.
        Cut(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            (0..6_usize).prop_map(Step::Add),
            Just(Step::Send),
            (any::<usize>(), prop::bool::weighted(0.8)).prop_map(|(which, is_finished)| Step::End(which, is_finished)),
            (1..=Width::MAX).prop_map(Step::Cut),
        ];
        prop::collection::vec(step, 0..300)
    }

    /// A lane with its own outbox. Checks the order at each step.
    #[derive(Default)]
    struct World {
        outbox: BTreeMap<DeliveryId, Option<Subject>>,
        in_flight: Vec<DeliveryId>,
        sent: usize,
        cut: Option<usize>,
    }

    /// The first `at_most` ids of an outbox.
    fn head(ids: impl Iterator<Item = DeliveryId>, at_most: usize) -> OutboxHead {
        let mut ids: Vec<_> = ids.take(at_most + 1).collect();
        let is_all = ids.len() <= at_most;
        ids.truncate(at_most);
        OutboxHead { ids, is_all }
    }

    impl World {
        fn send(&mut self, backlog: &mut Backlog) -> bool {
            loop {
                let Some(id) = backlog.next().cloned() else {
                    if !backlog.needs_refill() {
                        return false;
                    }
                    let at_most = backlog.refill_limit().min(self.cut.take().unwrap_or(usize::MAX));
                    backlog.refill(head(self.outbox.keys().cloned(), at_most));
                    continue;
                };
                let payment = self.outbox[&id].clone();
                if backlog.loaded(&id, payment.as_ref()) {
                    if payment.is_some() {
                        let earlier = self.outbox.range(..&id).find(|(_, other)| **other == payment);
                        assert!(earlier.is_none(), "{id} passes {earlier:?} by");
                    }
                    assert!(!self.in_flight.contains(&id), "{id} is sent twice at once");
                    self.in_flight.push(id);
                    self.sent += 1;
                    return true;
                }
            }
        }

        fn end(&mut self, backlog: &mut Backlog, which: usize, is_finished: bool) {
            if self.in_flight.is_empty() {
                return;
            }
            let id = self.in_flight.swap_remove(which % self.in_flight.len());
            if is_finished {
                self.outbox.remove(&id);
                backlog.finished(&id);
            } else {
                self.sent -= 1;
                backlog.put_back(&id);
            }
        }
    }

    proptest! {
        #[test]
        fn every_delivery_is_sent_after_earlier_ones_of_its_payment(steps in steps()) {
            let (mut backlog, mut world, mut added) = (Backlog::default(), World::default(), 0);
            for step in steps {
                match step {
                    Step::Add(payment) => {
                        // An event may be late: its id may precede those of other payments.
                        let payment = (payment > 0).then(|| format!("pay_{payment}").parse().unwrap());
                        let last = world.outbox.iter().rev().find(|(_, of)| payment.is_some() && **of == payment);
                        let after = last.map_or(0, |(id, _)| id.as_str()[4..].parse::<usize>().unwrap());
                        let free = (after + 1..).find(|number| *number % 7 == added % 7 && !world.outbox.contains_key(&delivery(*number)));
                        world.outbox.insert(delivery(free.unwrap()), payment);
                        added += 1;
                        backlog.request_refill();
                    }
                    Step::Send => drop(world.send(&mut backlog)),
                    Step::End(which, is_finished) => world.end(&mut backlog, which, is_finished),
                    Step::Cut(length) => world.cut = Some(length),
                }
            }
            while world.send(&mut backlog) || !world.in_flight.is_empty() {
                world.end(&mut backlog, 0, true);
            }
            prop_assert_eq!(world.sent, added);
            prop_assert!(world.outbox.is_empty());
        }
    }

    #[test]
    fn a_lane_empties_its_outbox_after_a_read_of_any_length() {
        for cut in 1..=Width::MAX {
            let (mut backlog, mut world) = (Backlog::default(), World::default());
            world.outbox.extend((0..2 * Width::MAX).map(|number| (delivery(number), None)));
            world.cut = Some(cut);
            while world.send(&mut backlog) {
                world.end(&mut backlog, 0, true);
            }
            assert!(world.outbox.is_empty(), "after a cut at {cut}, {} stay in the outbox", world.outbox.len());
        }
    }

    #[test]
    fn deliveries_without_a_payment_do_not_wait_and_unreadable_ones_are_skipped() {
        let mut backlog = Backlog::default();
        backlog.refill(head((0..3).map(delivery), 32));
        backlog.unreadable(&delivery(0));
        assert!(backlog.loaded(&delivery(1), None) && backlog.loaded(&delivery(2), None));
        assert_eq!((backlog.next(), backlog.needs_refill()), (None, false));
    }

    #[test]
    fn a_lane_remembers_few_ids_of_a_long_outbox() {
        let (mut backlog, all): (_, Vec<_>) = (Backlog::default(), (0..10_000).map(delivery).collect());
        for next in 0..5_000 {
            while backlog.next().is_none() {
                backlog.refill(head(all[next..].iter().cloned(), backlog.refill_limit()));
            }
            assert!(backlog.loaded(&delivery(next), None));
            backlog.finished(&delivery(next));
            assert!(backlog.deliveries.len() <= 2 * Width::MAX);
        }
    }
}
