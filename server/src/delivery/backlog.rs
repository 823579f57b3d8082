//! The pending deliveries of one endpoint, and which of them may be sent now.
//!
//! Deliveries are sent in the order of their ids, but a delivery waits while an earlier one of the same payment is in
//! flight. A delivery must be loaded to know its payment. So deliveries are loaded in order, and the backlog remembers a
//! waiting one by its id alone.

use std::collections::{HashMap, HashSet, VecDeque};

use payments_core::{DeliveryId, PaymentId};

use super::width::Width;
use crate::store::OutboxHead;

/// The deliveries of one endpoint that are in flight or pending.
#[derive(Debug)]
pub(super) struct Backlog {
    pending: VecDeque<Pending>,
    in_flight: HashMap<DeliveryId, Option<PaymentId>>,
    /// Whether the outbox may hold deliveries that are missing here.
    needs_refill: bool,
}

#[derive(Debug)]
struct Pending {
    id: DeliveryId,
    state: State,
}

/// What the backlog knows of a pending delivery.
#[derive(Debug, Clone)]
enum State {
    NotLoaded,
    Loaded(Option<PaymentId>),
    /// It cannot be loaded. It stays in the outbox, where `check` finds it, and is skipped.
    Unreadable,
}

impl Backlog {
    /// An empty backlog that must be refilled.
    pub(super) fn new() -> Self {
        Self { pending: VecDeque::new(), in_flight: HashMap::new(), needs_refill: true }
    }

    /// The outbox has new deliveries.
    pub(super) fn request_refill(&mut self) {
        self.needs_refill = true;
    }

    /// Whether [`next`](Self::next) needs another [`refill`](Self::refill).
    pub(super) fn needs_refill(&self) -> bool {
        self.needs_refill
    }

    /// How many ids to read from the outbox: those known here are still among its first.
    pub(super) fn refill_limit(&self) -> usize {
        self.pending.len() + self.in_flight.len() + Width::MAX
    }

    /// Takes the first ids of the outbox, at most [`refill_limit`](Self::refill_limit). If the outbox holds more, the next
    /// refill reads further, because the limit exceeds what is here.
    pub(super) fn refill(&mut self, head: OutboxHead) {
        self.needs_refill = !head.is_all;
        let states: HashMap<DeliveryId, State> = self.pending.drain(..).map(|one| (one.id, one.state)).collect();
        self.pending = head
            .ids
            .into_iter()
            .filter(|id| !self.in_flight.contains_key(id))
            .map(|id| Pending { state: states.get(&id).cloned().unwrap_or(State::NotLoaded), id })
            .collect();
    }

    /// The first delivery that may be sent, or that must be loaded to decide.
    pub(super) fn next(&self) -> Option<&DeliveryId> {
        let mut blocked: HashSet<&PaymentId> = self.in_flight.values().flatten().collect();
        self.pending.iter().find_map(|one| match &one.state {
            State::NotLoaded | State::Loaded(None) => Some(&one.id),
            State::Loaded(Some(payment)) => blocked.insert(payment).then_some(&one.id),
            State::Unreadable => None,
        })
    }

    /// Records that the next delivery was loaded. True if it may be sent; false if it must wait for an earlier one.
    #[must_use]
    pub(super) fn loaded(&mut self, id: &DeliveryId, payment: Option<&PaymentId>) -> bool {
        self.set_state(id, State::Loaded(payment.cloned()));
        if self.next() != Some(id) {
            return false;
        }
        self.pending.retain(|one| one.id != *id);
        self.in_flight.insert(id.clone(), payment.cloned());
        true
    }

    /// Records that the next delivery could not be loaded.
    pub(super) fn unreadable(&mut self, id: &DeliveryId) {
        self.set_state(id, State::Unreadable);
    }

    /// Records that a delivery has left the outbox.
    pub(super) fn finished(&mut self, id: &DeliveryId) {
        self.in_flight.remove(id);
    }

    /// Makes a delivery pending again that was in flight but not sent. Later ones of its payment wait for it.
    pub(super) fn put_back(&mut self, id: &DeliveryId) {
        let payment = self.in_flight.remove(id).flatten();
        self.pending.push_front(Pending { id: id.clone(), state: State::Loaded(payment) });
        self.pending.make_contiguous().sort_by(|one, other| one.id.cmp(&other.id));
    }

    fn set_state(&mut self, id: &DeliveryId, state: State) {
        if let Some(one) = self.pending.iter_mut().find(|one| one.id == *id) {
            one.state = state;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

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
        /// The lane uses a free slot.
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

    /// A lane with its own outbox; checks the order at each step.
    #[derive(Default)]
    struct World {
        outbox: BTreeMap<DeliveryId, Option<PaymentId>>,
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
            let (mut backlog, mut world, mut added) = (Backlog::new(), World::default(), 0);
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
            let (mut backlog, mut world) = (Backlog::new(), World::default());
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
        let mut backlog = Backlog::new();
        backlog.refill(head((0..3).map(delivery), 32));
        backlog.unreadable(&delivery(0));
        assert!(backlog.loaded(&delivery(1), None) && backlog.loaded(&delivery(2), None));
        assert_eq!((backlog.next(), backlog.needs_refill()), (None, false));
    }

    #[test]
    fn a_lane_remembers_few_ids_of_a_long_outbox() {
        let (mut backlog, all): (_, Vec<_>) = (Backlog::new(), (0..10_000).map(delivery).collect());
        for next in 0..5_000 {
            while backlog.next().is_none() {
                backlog.refill(head(all[next..].iter().cloned(), backlog.refill_limit()));
            }
            assert!(backlog.loaded(&delivery(next), None));
            backlog.finished(&delivery(next));
            assert!(backlog.pending.len() <= 2 * Width::MAX);
        }
    }
}
