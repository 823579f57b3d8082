//! What happens in a world, decided by its seed.

use payments_core::{
    CreatePayment, Decision, DeveloperId, Environment, EventKind, FeeRate, Money, NewPayment, Payment, PaymentId,
    RANDOM_BYTES, Slot, Timestamp,
};

use super::moves::{MOVES, Move};

/// The orders of a world, and what happens to them.
#[derive(Debug, Clone)]
pub(super) struct History {
    pub(super) orders: Vec<Money>,
    pub(super) steps: Vec<Step>,
}

#[derive(Debug, Clone)]
pub(super) struct Step {
    /// The step's place in the whole history. Webhooks name the step that led to them.
    pub(super) id: usize,
    pub(super) order: usize,
    pub(super) what: What,
    /// After how many polls of the shop the step happens, although the shop still handles an earlier one.
    pub(super) overlap: Option<u32>,
    /// After how many polls the shop is cut off.
    pub(super) cut: Option<u32>,
    /// How the API answers the next requests.
    pub(super) faults: Vec<Fault>,
}

#[derive(Debug, Clone)]
pub(super) enum What {
    Minutes(u32),
    Moved(Move),
    Ordered,
    Returned { lies: bool },
    Webhook { of: usize, event: EventKind, sent: Sent },
    Tick,
}

/// How an event's webhook is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    AsItIs,
    Forged,
    ADayOld,
    WithAnotherHeader,
}

/// How the API answers a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    NotConnected,
    Limited,
    Unavailable,
    Lost,
    HalfABody,
}

const FAULTS: [Fault; 5] = [Fault::NotConnected, Fault::Limited, Fault::Unavailable, Fault::Lost, Fault::HalfABody];
/// The time at which each world begins: 2026-03-01.
pub(super) const BEGIN: u64 = 1_772_323_200;

/// The platform's fee: 2.5 %.
const FEE: FeeRate = match FeeRate::from_basis_points(250) {
    Ok(rate) => rate,
    Err(_) => unreachable!(),
};

/// Creates a payment by the API's own rules.
pub(super) fn create(params: CreatePayment, now: Timestamp, random: [u8; RANDOM_BYTES]) -> Decision {
    let id = PaymentId::new(Slot::FIRST, now, random);
    let new = NewPayment {
        checkout_url: format!("https://pay.example/checkout/{id}"),
        id,
        developer_id: DeveloperId::new(Slot::FIRST, now, random),
        app_id: None,
        environment: Environment::Live,
        fee_rate: FEE,
        now,
    };
    payments_core::create(params, new)
}

impl History {
    /// The history of a seed.
    pub(super) fn of(seed: u64) -> Self {
        let mut random = fastrand::Rng::with_seed(seed);
        let money = |random: &mut fastrand::Rng| match random.bool() {
            true => Money::paisa(random.u64(100..100_000)),
            false => Money::cents(random.u64(100..10_000)),
        };
        let orders: Vec<_> = (0..random.usize(1..=3)).map(|_| money(&mut random)).collect();
        let steps = random.usize(6..=24);
        let mut plan =
            Plan { random, payments: vec![None; orders.len()], orders, steps: Vec::new(), later: Vec::new() };
        for _ in 0..steps {
            plan.step();
            plan.send_until(plan.steps.len());
        }
        plan.send_until(usize::MAX);
        Self { orders: plan.orders, steps: plan.steps }
    }
}

/// A history in the making. Its payments are those of a shop that creates one for each order.
struct Plan {
    random: fastrand::Rng,
    orders: Vec<Money>,
    payments: Vec<Option<Payment>>,
    steps: Vec<Step>,
    /// Webhooks, and the number of steps before which they do not arrive.
    later: Vec<(usize, usize, What)>,
}

impl Plan {
    fn step(&mut self) {
        let order = self.random.usize(..self.orders.len());
        let drawn = random_bytes(&mut self.random);
        let of = self.steps.len();
        let Some(payment) = self.payments[order].clone() else {
            let params = CreatePayment::of(self.orders[order]).success_url("").cancel_url("");
            self.payments[order] = Some(create(params, Timestamp::UNIX_EPOCH, drawn).payment);
            self.add(order, What::Ordered);
            return self.tell(of, order, EventKind::PaymentCreated);
        };
        let what = match self.random.u32(..100) {
            0..60 => {
                let decide = |by: Move| by.decide(&payment, drawn, payment.updated_at);
                let possible = MOVES.iter().map(|(by, often)| (*by, *often, decide(*by)));
                let possible = possible.filter(|(.., decisions)| !decisions.is_empty());
                let possible: Vec<_> = possible.flat_map(|it| std::iter::repeat_n((it.0, it.2), it.1)).collect();
                let Some((by, decisions)) = self.random.choice(possible) else { return };
                self.add(order, What::Moved(by));
                for decision in decisions {
                    self.payments[order] = Some(decision.payment);
                    if let Some(event) = decision.event {
                        self.tell(of, order, event);
                    }
                }
                return;
            }
            60..74 => What::Returned { lies: self.random.bool() },
            74..82 => What::Ordered,
            82..94 => What::Tick,
            _ => What::Minutes(1 << self.random.u32(1..=11)),
        };
        self.add(order, what);
    }

    /// Decides how often and how late an event's webhook arrives.
    fn tell(&mut self, of: usize, order: usize, event: EventKind) {
        let mut due = of;
        for copy in 0..[0, 0, 1, 1, 1, 1, 1, 2, 2, 3][self.random.usize(..10)] {
            let sent = match self.random.u32(..20) {
                0 | 1 => Sent::Forged,
                2 => Sent::ADayOld,
                3 | 4 => Sent::WithAnotherHeader,
                _ => Sent::AsItIs,
            };
            // Half of the copies come together with the one before.
            if copy == 0 || self.random.bool() {
                due = of + [0, 0, 0, 0, 1, 2, 4, 8, 16, 32][self.random.usize(..10)];
            }
            self.later.push((due, order, What::Webhook { of, event: event.clone(), sent }));
        }
    }

    fn send_until(&mut self, now: usize) {
        while let Some(place) = self.later.iter().position(|(due, ..)| *due <= now) {
            let (_, order, webhook) = self.later.remove(place);
            let of = |what: &What| if let What::Webhook { of, .. } = what { Some(*of) } else { None };
            let is_copy = self.steps.last().is_some_and(|last| of(&last.what) == of(&webhook));
            self.add(order, webhook);
            if let Some(copy) = self.steps.last_mut().filter(|_| is_copy) {
                copy.overlap = Some(self.random.u32(1..=4));
            }
        }
    }

    fn add(&mut self, order: usize, what: What) {
        let random = &mut self.random;
        let mut step = Step { id: self.steps.len(), order, what, overlap: None, cut: None, faults: Vec::new() };
        step.overlap = (random.u32(..100) < 25).then(|| polls(random));
        if !matches!(step.what, What::Moved(_) | What::Minutes(_)) {
            step.cut = (random.u32(..100) < 20).then(|| polls(random));
            let faults = if random.u32(..100) < 20 { random.usize(1..=4) } else { 0 };
            step.faults = random.choose_multiple(FAULTS.iter().cycle().take(4 * FAULTS.len()).copied(), faults);
        }
        self.steps.push(step);
    }
}

/// A number of polls. Few are more likely than many.
fn polls(random: &mut fastrand::Rng) -> u32 {
    let at_most = 1 << random.u32(0..=5);
    random.u32(1..=at_most)
}

pub(super) fn random_bytes(random: &mut fastrand::Rng) -> [u8; RANDOM_BYTES] {
    let mut bytes = [0; RANDOM_BYTES];
    random.fill(&mut bytes);
    bytes
}

/// The number of an order.
pub(super) fn number(order: usize) -> String {
    format!("order-{}", order + 1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_move_input_and_fault_happens_in_200_worlds() {
        let (mut steps, mut faults, mut cuts, mut overlaps) = (BTreeSet::new(), 0, 0, 0);
        for seed in 1..=200 {
            for step in History::of(seed).steps {
                overlaps += usize::from(step.overlap.is_some());
                cuts += usize::from(step.cut.is_some());
                faults |= step.faults.iter().fold(0, |all, fault| all | 1 << *fault as u8);
                steps.insert(match step.what {
                    What::Webhook { sent, event, .. } => format!("{event} {sent:?}"),
                    What::Minutes(_) => "time".into(),
                    what => format!("{what:?}"),
                });
            }
        }
        assert_eq!((faults, steps.len()), (0b1_1111, MOVES.len() + 5 + 4 * 7), "{steps:?}");
        assert!(cuts > 200 && overlaps > 200, "{cuts} cuts, {overlaps} overlaps");
    }

    #[test]
    fn the_same_seed_gives_the_same_history() {
        let of = |seed| History::of(seed).words();
        assert!(of(7) == of(7) && of(7) != of(8));
    }
}
