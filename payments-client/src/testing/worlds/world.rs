//! One world: it plays its history to the shop.

use std::{
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::future::LocalBoxFuture;
use payments_core::{EventKind, Payment, Status, Timestamp};
use webhook_verify::testing::Sender;

use super::{
    super::{Double, FixedClock},
    api::{Api, State},
    history::{BEGIN, History, Sent, Step, What, number},
    input::{Input, Order, PlacedOrder, Return, Truth, Webhook},
};
use crate::{Client, inbox::BoxError};

const SECRET: &str = "whsec_worlds";

/// A world with an API of its own, in memory. Clones share it.
#[derive(Debug, Clone)]
pub struct World(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    client: Client,
    api: Arc<Api>,
    clock: FixedClock,
    sender: Sender,
    history: History,
    webhooks_arrive: bool,
}

impl World {
    pub(super) fn new(
        seed: u64,
        history: History,
        http: reqwest::Client,
        webhooks_arrive: bool,
    ) -> Result<Self, BoxError> {
        let clock = FixedClock::at(BEGIN);
        let api = Arc::new(Api::new(seed, history.orders.len(), clock.clone()));
        let mut builder = Client::builder("sk_live_worlds").http(http).clock(clock.clone()).jitter_seed(seed);
        builder.double = Some(Double::World(Arc::clone(&api)));
        let (client, sender) = (builder.build()?, Sender::new(SECRET)?);
        Ok(Self(Arc::new(Inner { client, api, clock, sender, history, webhooks_arrive })))
    }

    /// A client of the world's API. It has a live key, and its waits take no real time.
    #[must_use]
    pub fn client(&self) -> Client {
        self.0.client.clone()
    }

    /// The secret of the shop's webhook endpoint.
    #[must_use]
    pub fn secret(&self) -> &'static str {
        SECRET
    }

    /// The time in the world.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.0.api.now()
    }

    /// Plays the history. `shop` handles each input, and may fail. At the end the world is calm: one more [`Input::Tick`] comes,
    /// and the API answers.
    ///
    /// A cut drops the future of `shop`. What the shop keeps in memory stays; to lose that too, build the shop in the closure,
    /// from its database.
    ///
    /// # Errors
    /// The shop's, if it fails although the world is calm.
    pub async fn play<E>(&self, shop: impl AsyncFn(Input) -> Result<(), E>) -> Result<(), E> {
        let mut running = Vec::new();
        for step in &self.0.history.steps {
            drive(&mut running, step.overlap).await;
            if running.is_empty() {
                self.0.api.state().faults.clear();
            }
            if let Some(input) = self.happen(step) {
                let shop = &shop;
                let future = Box::pin(async move { drop(shop(input).await) });
                // The later one is polled first or last.
                let place = if step.overlap.is_some_and(|polls| polls % 2 == 1) { 0 } else { running.len() };
                running.insert(place, Running { future, polls_left: step.cut });
            }
        }
        drive(&mut running, None).await;
        self.0.api.state().faults.clear();
        if self.0.webhooks_arrive {
            let events = self.0.api.state().events.clone();
            for event in events {
                shop(self.webhook(Sent::AsItIs, &event.kind, event.body.as_str())).await?;
            }
        }
        shop(Input::Tick).await
    }

    /// What is true now. Ask for it after [`play`](Self::play).
    #[must_use]
    pub fn truth(&self) -> Truth {
        let (state, history) = (self.0.api.state(), &self.0.history);
        let mut orders = Vec::new();
        for (order, money) in history.orders.iter().enumerate() {
            if history.steps.iter().any(|step| step.order == order && matches!(step.what, What::Ordered)) {
                let payments = of_order(&state, order).cloned().collect();
                orders.push(PlacedOrder { number: number(order), money: *money, payments });
            }
        }
        Truth { orders, payments: state.payments.iter().map(|(payment, _)| payment.clone()).collect() }
    }

    pub(super) fn unknown_route(&self) -> Option<String> {
        self.0.api.state().unknown_route.clone()
    }

    /// Lets a step happen. Returns what reaches the shop, if anything does.
    fn happen(&self, step: &Step) -> Option<Input> {
        let now = self.now();
        let mut state = self.0.api.state();
        state.present = (step.id, Some(step.order).filter(|_| matches!(step.what, What::Ordered)));
        let payment = of_order(&state, step.order).last();
        let input = match &step.what {
            What::Minutes(minutes) => {
                self.0.clock.advance(Duration::from_secs(u64::from(*minutes) * 60));
                return None;
            }
            What::Moved(by) => {
                // It fails only if a payment cannot be serialized, and then the shop's requests fail too.
                let _ = state.move_order(step.order, *by, now);
                return None;
            }
            What::Tick => Input::Tick,
            What::Ordered => {
                Input::Order(Order { number: number(step.order), money: self.0.history.orders[step.order] })
            }
            What::Returned { lies } => {
                let Payment { id, status, .. } = payment?.clone();
                let status = if *lies { Status::Completed } else { status }.to_string();
                Input::Return(Return { order: number(step.order), payment_id: id, status })
            }
            What::Webhook { of, event, sent, .. } => {
                let recorded = state.events.iter().find(|it| it.of == *of && it.kind == *event)?;
                self.webhook(*sent, &recorded.kind, recorded.body.as_str())
            }
        };
        state.faults.extend(&step.faults);
        Some(input)
    }

    fn webhook(&self, sent: Sent, kind: &EventKind, body: &str) -> Input {
        let completed = EventKind::PaymentCompleted;
        let (signature, kind, body) = match sent {
            Sent::AsItIs => (self.0.sender.good(body.as_bytes()), kind, body.to_owned()),
            Sent::ADayOld => (self.0.sender.stale(body.as_bytes()), kind, body.to_owned()),
            Sent::WithAnotherHeader => (self.0.sender.good(body.as_bytes()), &completed, body.to_owned()),
            Sent::Forged => {
                let body = body.replace(kind.as_str(), completed.as_str()).replace("\"pending\"", "\"completed\"");
                (self.0.sender.forged(body.as_bytes()), &completed, body)
            }
        };
        Input::Webhook(Webhook { signature: signature.to_string(), event: kind.to_string(), body: body.into() })
    }
}

fn of_order(state: &State, order: usize) -> impl DoubleEndedIterator<Item = &Payment> {
    state.payments.iter().filter(move |(_, of)| *of == Some(order)).map(|(payment, _)| payment)
}

/// The shop, while it handles an input.
struct Running<'s> {
    future: LocalBoxFuture<'s, ()>,
    polls_left: Option<u32>,
}

impl Running<'_> {
    /// Polls the shop. Returns whether it goes on: it is neither ready nor cut off.
    fn goes_on(&mut self, context: &mut Context<'_>) -> bool {
        self.polls_left = self.polls_left.map(|left| left.saturating_sub(1));
        self.future.as_mut().poll(context).is_pending() && self.polls_left != Some(0)
    }
}

/// Polls what runs so many times, or until all of it is over.
async fn drive(running: &mut Vec<Running<'_>>, polls: Option<u32>) {
    let mut left = polls;
    std::future::poll_fn(|context| {
        if running.is_empty() || left == Some(0) {
            return Poll::Ready(());
        }
        left = left.map(|left| left - 1);
        running.retain_mut(|it| it.goes_on(context));
        if running.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}
