//! The next deliveries of one endpoint, and which of them may be sent now.
//!
//! They are sent in the order of their ids, except that a delivery is held back while an earlier one of the same payment
//! is in flight. Which payment a delivery belongs to is known once it has been loaded; so they are loaded in order, and
//! what is held back is remembered by its name alone.

use std::collections::{HashMap, HashSet, VecDeque};

use payments_core::{DeliveryId, PaymentId};

use super::width::Width;
use crate::store::OutboxHead;

/// The deliveries of one endpoint that are in flight or next.
#[derive(Debug)]
pub(super) struct Backlog {
    waiting: VecDeque<Waiting>,
    in_flight: HashMap<DeliveryId, Option<PaymentId>>,
    /// Whether the outbox may hold deliveries that are not here.
    is_behind: bool,
}

#[derive(Debug)]
struct Waiting {
    id: DeliveryId,
    known: Known,
}

/// What is known of a delivery that waits.
#[derive(Debug, Clone)]
enum Known {
    Nothing,
    Of(Option<PaymentId>),
    /// It cannot be loaded. It stays in the outbox, for `check` to find, and is passed over.
    Unreadable,
}

impl Backlog {
    /// One that has not looked into the outbox yet.
    pub(super) fn new() -> Self {
        Self { waiting: VecDeque::new(), in_flight: HashMap::new(), is_behind: true }
    }

    /// Something was put into the outbox.
    pub(super) fn fall_behind(&mut self) {
        self.is_behind = true;
    }

    /// Whether the outbox is to be read before there can be a [`next`](Self::next).
    pub(super) fn is_behind(&self) -> bool {
        self.is_behind
    }

    /// How many names to ask the outbox for: those that are here are still among its first.
    pub(super) fn reach(&self) -> usize {
        self.waiting.len() + self.in_flight.len() + Width::MOST
    }

    /// Takes the first names of the outbox: as many as [`reach`](Self::reach) asked for, or fewer. Only the outbox can say
    /// that there are no others. Where it does not, the next reading brings others: those that are here are too few for it.
    pub(super) fn refill(&mut self, head: OutboxHead) {
        self.is_behind = !head.is_all;
        let known: HashMap<DeliveryId, Known> = self.waiting.drain(..).map(|one| (one.id, one.known)).collect();
        self.waiting = head
            .ids
            .into_iter()
            .filter(|id| !self.in_flight.contains_key(id))
            .map(|id| Waiting { known: known.get(&id).cloned().unwrap_or(Known::Nothing), id })
            .collect();
    }

    /// The first delivery that may be sent, or that must be loaded to know.
    pub(super) fn next(&self) -> Option<&DeliveryId> {
        let mut held: HashSet<&PaymentId> = self.in_flight.values().flatten().collect();
        self.waiting.iter().find_map(|one| match &one.known {
            Known::Nothing | Known::Of(None) => Some(&one.id),
            Known::Of(Some(payment)) => held.insert(payment).then_some(&one.id),
            Known::Unreadable => None,
        })
    }

    /// The next delivery was loaded. True if it is to be sent; false if it is held back.
    #[must_use]
    pub(super) fn loaded(&mut self, id: &DeliveryId, payment: Option<&PaymentId>) -> bool {
        self.learn(id, Known::Of(payment.cloned()));
        if self.next() != Some(id) {
            return false;
        }
        self.waiting.retain(|one| one.id != *id);
        self.in_flight.insert(id.clone(), payment.cloned());
        true
    }

    /// The next delivery could not be loaded.
    pub(super) fn unreadable(&mut self, id: &DeliveryId) {
        self.learn(id, Known::Unreadable);
    }

    /// A delivery has left the outbox.
    pub(super) fn ended(&mut self, id: &DeliveryId) {
        self.in_flight.remove(id);
    }

    /// A delivery is no longer in flight and still in the outbox. What comes after it must not pass it by.
    pub(super) fn not_sent(&mut self, id: &DeliveryId) {
        let payment = self.in_flight.remove(id).flatten();
        self.waiting.push_front(Waiting { id: id.clone(), known: Known::Of(payment) });
        self.waiting.make_contiguous().sort_by(|one, other| one.id.cmp(&other.id));
    }

    fn learn(&mut self, id: &DeliveryId, known: Known) {
        if let Some(one) = self.waiting.iter_mut().find(|one| one.id == *id) {
            one.known = known;
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

    /// What the test does next.
    #[derive(Debug, Clone)]
    enum Step {
        /// An event of this payment comes into the outbox, as a delivery whose id says this time.
        Add(usize),
        /// A free slot is filled.
        Send,
        /// One of the requests in flight ends, or is given back unsent.
        End(usize, bool),
        /// The next reading of the outbox names so many deliveries at most, as if others had ended meanwhile.
        Cut(usize),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            (0..6_usize).prop_map(Step::Add),
            Just(Step::Send),
            (any::<usize>(), prop::bool::weighted(0.8)).prop_map(|(which, is_over)| Step::End(which, is_over)),
            (1..=Width::MOST).prop_map(Step::Cut),
        ];
        prop::collection::vec(step, 0..300)
    }

    /// A lane with an outbox of its own; checks at each step that order is kept.
    #[derive(Default)]
    struct World {
        outbox: BTreeMap<DeliveryId, Option<PaymentId>>,
        in_flight: Vec<DeliveryId>,
        sent: usize,
        cut: Option<usize>,
    }

    /// The head of an outbox that holds these, as far as it is read.
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
                    if !backlog.is_behind() {
                        return false;
                    }
                    let at_most = backlog.reach().min(self.cut.take().unwrap_or(usize::MAX));
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

        fn end(&mut self, backlog: &mut Backlog, which: usize, is_over: bool) {
            if self.in_flight.is_empty() {
                return;
            }
            let id = self.in_flight.swap_remove(which % self.in_flight.len());
            if is_over {
                self.outbox.remove(&id);
                backlog.ended(&id);
            } else {
                self.sent -= 1;
                backlog.not_sent(&id);
            }
        }
    }

    proptest! {
        #[test]
        fn no_delivery_passes_an_earlier_one_of_its_payment_by_and_all_are_sent(steps in steps()) {
            let (mut backlog, mut world, mut added) = (Backlog::new(), World::default(), 0);
            for step in steps {
                match step {
                    Step::Add(payment) => {
                        // An event may come late, with an id before those of other payments.
                        let payment = (payment > 0).then(|| format!("pay_{payment}").parse().unwrap());
                        let last = world.outbox.iter().rev().find(|(_, of)| payment.is_some() && **of == payment);
                        let after = last.map_or(0, |(id, _)| id.as_str()[4..].parse::<usize>().unwrap());
                        let free = (after + 1..).find(|number| *number % 7 == added % 7 && !world.outbox.contains_key(&delivery(*number)));
                        world.outbox.insert(delivery(free.unwrap()), payment);
                        added += 1;
                        backlog.fall_behind();
                    }
                    Step::Send => drop(world.send(&mut backlog)),
                    Step::End(which, is_over) => world.end(&mut backlog, which, is_over),
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
    fn a_lane_goes_on_after_a_reading_that_was_cut_at_whatever_length() {
        for cut in 1..=Width::MOST {
            let (mut backlog, mut world) = (Backlog::new(), World::default());
            world.outbox.extend((0..2 * Width::MOST).map(|number| (delivery(number), None)));
            world.cut = Some(cut);
            while world.send(&mut backlog) {
                world.end(&mut backlog, 0, true);
            }
            assert!(world.outbox.is_empty(), "after a cut at {cut}, {} stay in the outbox", world.outbox.len());
        }
    }

    #[test]
    fn a_delivery_without_a_payment_waits_for_none_and_one_that_cannot_be_loaded_is_passed_over() {
        let mut backlog = Backlog::new();
        backlog.refill(head((0..3).map(delivery), 32));
        backlog.unreadable(&delivery(0));
        assert!(backlog.loaded(&delivery(1), None) && backlog.loaded(&delivery(2), None));
        assert_eq!((backlog.next(), backlog.is_behind()), (None, false));
    }

    #[test]
    fn a_lane_remembers_few_names_whatever_its_outbox_holds() {
        let (mut backlog, all): (_, Vec<_>) = (Backlog::new(), (0..10_000).map(delivery).collect());
        for next in 0..5_000 {
            while backlog.next().is_none() {
                backlog.refill(head(all[next..].iter().cloned(), backlog.reach()));
            }
            assert!(backlog.loaded(&delivery(next), None));
            backlog.ended(&delivery(next));
            assert!(backlog.waiting.len() <= 2 * Width::MOST);
        }
    }
}
