//! Random sequences of what merchants and customers do, with restarts and crashes in between, against a model: a few
//! vectors in memory that say what every answer must be, and at the end what the whole store must hold.
//!
//! Each sequence has a server of its own, with two merchants: one with a test key, and one with a live key, whose
//! gateways are fakes on this machine. A sequence that fails is made as short as it can be and printed.
//! `MODEL_CASES` says how many sequences there are, 24 unless given.

mod agreement;
mod merchant;
mod payments;
mod steps;
mod webhooks;
mod world;

use std::{
    env,
    time::{Duration, Instant},
};

use proptest::{
    strategy::Strategy,
    test_runner::{Config, TestRunner},
};
use serde_json::json;
use tokio::runtime::Runtime;

use self::{
    merchant::{Kept, place_in},
    steps::{Operation, Step, Steps, Who, steps},
    world::{MARGIN, World},
};

/// What a server logs that finds its store as a crash leaves it.
const MENDED: &str = "the server did not shut down cleanly";

impl World {
    async fn step(&mut self, (who, operation): &Step) {
        let who = *who;
        self.let_sessions_end(Instant::now() + MARGIN).await;
        match operation {
            Operation::Create { amount, currency, key } => self.create(who, amount, currency, *key).await,
            Operation::Replay { place } => {
                let kept = &self.of(who).kept;
                let Some(place) = place_in(kept, *place) else { return };
                let Kept { path, key, body, .. } = &kept[place];
                let (path, key, body) = (path.clone(), *key, body.clone());
                assert!(self.post(who, &path, Some(key), &body).await.is_none());
            }
            Operation::Simulate { payment, outcome } => {
                let body = json!({"action": match *outcome {
                    "paid" => "success",
                    "failed" => "fail",
                    _ => "cancel",
                }});
                self.simulate(who, *payment, "simulate", &body, outcome).await;
            }
            Operation::Pay { payment, outcome } if who == Who::Live => self.pay(*payment, outcome).await,
            Operation::Pay { payment, .. } => self.simulate(who, *payment, "pay", &json!({}), "paid").await,
            Operation::Refund { payment, reason, key } => self.refund(who, *payment, *reason, *key).await,
            Operation::Read { payment } => {
                if let Some(place) = place_in(&self.of(who).payments, *payment) {
                    self.read(who, place).await;
                }
            }
            Operation::List { status, page, limit } => self.list(who, *status, *page, *limit).await,
            Operation::Account => self.account(who).await,
            Operation::Subscribe { events, is_dead, key } => self.subscribe(who, events, *is_dead, *key).await,
            Operation::Unsubscribe { endpoint } => self.unsubscribe(who, *endpoint).await,
            Operation::Ping { endpoint, key } => self.ping(who, *endpoint, *key).await,
            Operation::Endpoints => self.endpoints(who).await,
            Operation::Deliveries { endpoint, page, limit } => {
                let endpoints = &self.of(who).endpoints;
                let endpoint = endpoint.and_then(|endpoint| place_in(endpoints, endpoint));
                self.deliveries(who, endpoint, *page, *limit).await;
            }
            Operation::Restart => {
                assert!(self.live.server.terminate().success());
                let crashes = self.live.server.log().matches(MENDED).count();
                self.live.server.restart();
                assert_eq!(
                    self.live.server.log().matches(MENDED).count(),
                    crashes,
                    "an end in order leaves all in order"
                );
            }
            Operation::Crash => self.live.server.crash_and_restart(),
            Operation::LetSessionsEnd => self.let_sessions_end(Instant::now() + self.life).await,
        }
    }
}

/// Follows random sequences on servers whose sessions live so long.
fn follow(cases: u32, life: Duration, steps: impl Strategy<Value = Steps>) {
    let runtime = Runtime::new().unwrap();
    let config = Config { cases, max_shrink_time: 180_000, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&steps, |steps| {
        runtime.block_on(async {
            let mut world = World::new(life).await;
            for step in &steps.0 {
                world.step(step).await;
            }
            world.agrees().await;
        });
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

fn cases() -> u32 {
    env::var("MODEL_CASES").map_or(24, |text| text.parse().expect("MODEL_CASES is a number"))
}

#[test]
fn random_operations_match_the_model() {
    follow(cases(), Duration::from_secs(3600), steps(false));
}

#[test]
fn random_operations_match_the_model_when_sessions_expire() {
    // Fewer, since time must pass in each.
    follow(cases().div_ceil(8), Duration::from_secs(4), steps(true));
}
