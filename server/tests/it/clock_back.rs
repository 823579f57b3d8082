//! A server whose clock is set back.

use std::{
    fs,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    process::Command,
};

use gateway_fakes::{Fault, bkash};
use payments_client::{CreateWebhook, Retries, Subscription};
use reqwest::{Method, StatusCode};
use serde_json::json;
use tempfile::TempDir;

use crate::{
    live::Live,
    receiver::{Receiver, Reply},
    server::{eventually, payment_of},
};

const TEN_HOURS: i64 = 36_000;

/// A clock that a test sets.
pub(crate) struct Clock {
    directory: TempDir,
    shim: PathBuf,
}

impl Clock {
    pub(crate) fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let shim = directory.path().join("set_clock.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("it/set_clock.c");
        let mut compile = Command::new("cc");
        compile.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&shim).arg(source).arg("-ldl");
        assert!(compile.status().unwrap().success());
        let clock = Self { directory, shim };
        fs::write(clock.skew(), 0_i64.to_ne_bytes()).unwrap();
        clock
    }

    fn skew(&self) -> PathBuf {
        self.directory.path().join("skew")
    }

    /// Sets the clock ahead of the true time by this many seconds.
    pub(crate) fn set(&self, seconds: i64) {
        // Write once and in place, because the server has mapped the file.
        let file = fs::File::options().write(true).open(self.skew()).unwrap();
        file.write_all_at(&seconds.to_ne_bytes(), 0).unwrap();
    }

    /// Restarts a server with this clock.
    pub(crate) fn govern(&self, live: &mut Live) {
        let variables = self.variables();
        live.server.restart_in(&variables.each_ref().map(|(name, value)| (*name, &**value)));
    }

    /// The variables of a process with this clock.
    pub(crate) fn variables(&self) -> [(&'static str, String); 2] {
        [
            ("LD_PRELOAD", self.shim.to_str().unwrap().to_owned()),
            ("CLOCK_SKEW", self.skew().to_str().unwrap().to_owned()),
        ]
    }
}

/// Work that waits for a time: a delivery for its retry, a refund for its next request to Stripe, an approved payment for a
/// query.
struct Waiting {
    receiver: Receiver,
    refunded: String,
    approved: String,
}

impl Waiting {
    async fn begin(live: &Live) -> Self {
        let statuses = [StatusCode::INTERNAL_SERVER_ERROR, StatusCode::OK];
        let receiver = Receiver::start(Reply::InTurn(statuses.to_vec())).await;
        let params = CreateWebhook::new(receiver.url(), Subscription::All).retries(Retries::Standard);
        live.server.client().webhooks().create(params).await.unwrap();
        let refunded = live.paid(20.0, "USD").await;
        live.server.create(&payment_of(&json!(7))).await;
        eventually("a delivery to wait", async || {
            let list = live.server.client().webhooks().deliveries().await.unwrap();
            list.items.first()?.next_attempt_at
        })
        .await;
        // A cost that is booked at the same moment makes the server ask once more.
        for fault in [Fault::DropBefore; 2] {
            live.stripe.faults().next("refund", fault);
        }
        let refund = live.request(Method::POST, &format!("/payments/{refunded}/refund")).send().await.unwrap();
        assert_eq!(refund.status(), StatusCode::SERVICE_UNAVAILABLE);
        let approved = live.create(7.0, "BDT").await;
        let (_, attempt) = live.pay(&approved).await;
        live.bkash.program().approve(&attempt, bkash::WALLET).unwrap();
        Self { receiver, refunded, approved }
    }

    /// Waits until all of it has happened, which takes seconds.
    async fn end(&self, live: &Live) {
        live.becomes(&self.refunded, "refunded").await;
        live.becomes(&self.approved, "paid").await;
        eventually("the retry", async || (self.receiver.received().len() == 2).then_some(())).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_goes_back_ten_hours_delays_no_refund_payment_or_webhook() {
    let (clock, mut live) = (Clock::new(), Live::start("gateway-timeout = 1").await);
    clock.set(TEN_HOURS);
    clock.govern(&mut live);
    let waiting = Waiting::begin(&live).await;
    assert!(live.payment(&waiting.approved).await["rawStatus"] == "processing");
    clock.set(0);
    waiting.end(&live).await;
    live.server.assert_logs("the clock went back");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_went_back_while_the_server_was_down_delays_nothing() {
    let (clock, mut live) = (Clock::new(), Live::start("gateway-timeout = 1").await);
    clock.set(TEN_HOURS);
    clock.govern(&mut live);
    let waiting = Waiting::begin(&live).await;
    live.server.kill();
    clock.set(0);
    live.server.restart();
    waiting.end(&live).await;
}
