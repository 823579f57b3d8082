//! Runs random operations of merchants and customers, with restarts, crashes and migrations, and compares every
//! response and the final state with a model in memory.
//!
//! Each sequence has its own server with two merchants: one with a test key and one with a live key and fake gateways.
//! A failing sequence is shrunk and printed. `MODEL_CASES` sets the number of sequences, 16 by default.

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
    merchant::{Stored, index_in},
    steps::{Operation, Step, Steps, Who, steps},
    world::{MARGIN, World},
};
use crate::engine::Engine;

/// What a server logs after a crash.
const UNCLEAN: &str = "the server did not shut down cleanly";

impl World {
    async fn step(&mut self, (who, operation): &Step) {
        let who = *who;
        self.wait_for_expiry(Instant::now() + MARGIN).await;
        match operation {
            Operation::Create { amount, currency, key } => self.create(who, amount, currency, *key).await,
            Operation::Replay { index } => {
                let stored = &self.of(who).stored;
                let Some(index) = index_in(stored, *index) else { return };
                let Stored { path, key, body, .. } = &stored[index];
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
            Operation::Leave { payment } => self.leave(*payment).await,
            Operation::Pay { payment, outcome } if who == Who::Live => self.pay(*payment, outcome).await,
            Operation::Pay { payment, .. } => self.simulate(who, *payment, "pay", &json!({}), "paid").await,
            Operation::Refund { payment, percent, reason, key } => {
                self.refund(who, *payment, *percent, *reason, *key).await;
            }
            Operation::Read { payment } => {
                if let Some(index) = index_in(&self.of(who).payments, *payment) {
                    self.read(who, index).await;
                }
            }
            Operation::List { status, page, limit } => self.list(who, *status, *page, *limit).await,
            Operation::Account => self.account(who).await,
            Operation::Subscribe { events, is_down, key } => self.subscribe(who, events, *is_down, *key).await,
            Operation::Update { endpoint, events, is_active, is_down } => {
                self.update(who, *endpoint, events, *is_active, *is_down).await;
            }
            Operation::Rotate { endpoint, overlaps, key } => self.rotate(who, *endpoint, *overlaps, *key).await,
            Operation::Unsubscribe { endpoint } => self.unsubscribe(who, *endpoint).await,
            Operation::Ping { endpoint, key } => self.ping(who, *endpoint, *key).await,
            Operation::Resend { delivery, key } => self.resend(who, *delivery, *key).await,
            Operation::Recover { endpoint } => self.recover(who, *endpoint).await,
            Operation::Endpoints => self.endpoints(who).await,
            Operation::Deliveries { endpoint, page, limit } => {
                let endpoints = &self.of(who).endpoints;
                let endpoint = endpoint.and_then(|endpoint| index_in(endpoints, endpoint));
                self.deliveries(who, endpoint, *page, *limit).await;
            }
            Operation::Restart => {
                assert!(self.live.server.terminate().success());
                let crashes = self.live.server.log().matches(UNCLEAN).count();
                self.live.server.restart();
                assert_eq!(
                    self.live.server.log().matches(UNCLEAN).count(),
                    crashes,
                    "a clean shutdown was reported as unclean"
                );
            }
            Operation::Crash => self.live.server.crash_and_restart(),
            Operation::Migrate => self.live.server.migrate(),
            Operation::WaitForExpiry => self.wait_for_expiry(Instant::now() + self.session_ttl).await,
        }
    }
}

/// Runs random sequences on servers with this session lifetime.
fn run(engine: Engine, cases: u32, session_ttl: Duration, steps: impl Strategy<Value = Steps>) {
    let runtime = Runtime::new().unwrap();
    let config = Config { cases, max_shrink_time: 180_000, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&steps, |steps| {
        runtime.block_on(async {
            let mut world = World::new(engine, session_ttl).await;
            for step in &steps.0 {
                world.step(step).await;
            }
            world.assert_matches().await;
        });
        Ok(())
    });
    if let Err(failure) = outcome {
        panic!("{failure}");
    }
}

fn cases() -> u32 {
    env::var("MODEL_CASES").map_or(16, |text| text.parse().expect("MODEL_CASES is a number"))
}

#[test]
fn random_operations_match_the_model() {
    run(Engine::Directory, cases(), Duration::from_secs(3600), steps(false));
}

#[test]
fn random_operations_match_the_model_on_postgresql() {
    run(Engine::Postgres, cases().div_ceil(4), Duration::from_secs(3600), steps(false));
}

#[test]
fn random_operations_match_the_model_when_sessions_expire() {
    // Run fewer sequences, because each one waits.
    run(Engine::Directory, cases().div_ceil(8), Duration::from_secs(4), steps(true));
}

#[test]
fn random_operations_match_the_model_when_sessions_expire_on_postgresql() {
    run(Engine::Postgres, cases().div_ceil(8), Duration::from_secs(4), steps(true));
}
