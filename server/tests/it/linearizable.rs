//! Concurrent operations on one payment are linearizable: each takes effect at one moment between its request and its answer,
//! even while servers and databases are killed.

mod clients;
mod payment;

use std::time::Duration;

use futures_util::{StreamExt, stream};
use gateway_fakes::{Running, bkash::Bkash};
use tempfile::TempDir;
use todc_utils::{History, WGLChecker};
use tokio::{task::JoinHandle, time::sleep};

use self::{
    clients::{Merchant, Platform},
    payment::{Actions, PaymentSpec},
};
use crate::{
    server::{Server, write_settings},
    trio::Trio,
};

/// How many payments a test plays concurrently.
const AT_A_TIME: usize = 8;

/// How many payments a test plays. `LINEARIZABLE_PAYMENTS` overrides it.
fn payments() -> usize {
    std::env::var("LINEARIZABLE_PAYMENTS").map_or(AT_A_TIME, |text| text.parse().unwrap())
}

/// A while in which clients work undisturbed.
async fn peace() {
    sleep(Duration::from_millis(200 + fastrand::u64(..400))).await;
}

/// Servers that use one gateway.
struct Servers {
    all: Vec<Server>,
    bkash: Running<Bkash>,
    _config: TempDir,
}

impl Servers {
    async fn start(count: usize, arguments: &[&str]) -> Self {
        let bkash = Running::start(Bkash::new(), "127.0.0.1:0").await.unwrap();
        let config = TempDir::new().unwrap();
        let file = config.path().join("payments.toml");
        write_settings(&file, &bkash.settings());
        let arguments = [&["--config", file.to_str().unwrap()], arguments].concat();
        Self { all: (0..count).map(|_| Server::start_with(&arguments)).collect(), bkash, _config: config }
    }

    /// Creates one merchant for each payment, so that a list has one payment or none.
    fn merchants(&self, count: usize) -> Vec<Merchant> {
        (0..count).map(|number| Merchant::new(&self.all[0], number)).collect()
    }

    async fn platform(&self) -> Platform {
        let urls = self.all.iter().map(|server| server.url.clone()).collect();
        let platform = Platform::new(urls, self.bkash.program().clone());
        platform.warm_up(Merchant::new(&self.all[0], 1000)).await;
        platform
    }
}

/// Starts to play all merchants, some concurrently. Returns the requests and answers about each payment.
fn play(platform: Platform, merchants: Vec<Merchant>) -> JoinHandle<Vec<Actions>> {
    tokio::spawn(async move {
        let platform = &platform;
        stream::iter(merchants).map(|merchant| platform.play(merchant)).buffer_unordered(AT_A_TIME).collect().await
    })
}

fn is_linearizable(actions: &Actions) -> bool {
    WGLChecker::<PaymentSpec>::is_linearizable(History::from_actions(actions.clone()))
}

/// Asserts that each history has an order.
fn assert_linearizable(histories: &[Actions]) {
    let operations: usize = histories.iter().map(|actions| actions.len() / 2).sum();
    eprintln!("{} payments, {operations} operations", histories.len());
    for actions in histories {
        assert!(actions.len() <= 400, "a history of {} actions takes too long to check", actions.len());
        assert!(is_linearizable(actions), "no order explains these answers:\n{}", payment::lines(actions));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_on_a_payment_are_linearizable_while_the_server_is_killed() {
    let mut servers = Servers::start(1, &[]).await;
    let (merchants, platform) = (servers.merchants(payments()), servers.platform().await);
    let playing = play(platform, merchants);
    let mut kills = 0;
    // A kill during a capture costs its payment five seconds, so the number of kills is limited.
    while kills < 4 || kills < 2 * payments() && !playing.is_finished() {
        peace().await;
        servers.all[0].crash_and_restart();
        kills += 1;
    }
    let histories = playing.await.unwrap();
    eprintln!("{kills} kills");
    assert_linearizable(&histories);
}

#[tokio::test(flavor = "multi_thread")]
async fn operations_on_a_payment_are_linearizable_while_servers_and_databases_are_killed() {
    let mut trio = Trio::start();
    let mut servers = Servers::start(2, &["--database-url", &trio.url()]).await;
    let (merchants, platform) = (servers.merchants(payments()), servers.platform().await);
    let playing = play(platform, merchants);
    let mut faults = 0;
    while faults < 4 || faults < payments() && !playing.is_finished() {
        peace().await;
        match faults % 4 {
            0 => fail_over_with_unseen_commits(&mut trio).await,
            1 => servers.all[0].crash_and_restart(),
            2 => {
                trio.kill_postmaster();
                trio.restart_primary();
            }
            _ => servers.all[1].crash_and_restart(),
        }
        faults += 1;
    }
    let histories = playing.await.unwrap();
    eprintln!("{faults} faults");
    assert_linearizable(&histories);
}

/// Restarts the primary in place with commits that no standby has. A second later, promotes a standby.
async fn fail_over_with_unseen_commits(trio: &mut Trio) {
    trio.wait_for_standbys();
    trio.cut_standbys_off();
    // In this time each client that writes begins to wait.
    sleep(Duration::from_millis(500)).await;
    let lost = trio.primary();
    // Kill all processes at once. If only the postmaster dies, PostgreSQL releases a commit that waits for a standby, and a
    // process that is reading at that moment still returns it. No client can recognise this answer.
    trio.kill_primary();
    trio.restart_primary();
    sleep(Duration::from_secs(1)).await;
    trio.kill_primary();
    trio.fail_over();
    trio.rebuild(lost);
}

/// Proves that the check can fail.
#[tokio::test(flavor = "multi_thread")]
async fn clients_that_sometimes_read_an_old_answer_are_detected() {
    let servers = Servers::start(1, &[]).await;
    let merchants = servers.merchants(AT_A_TIME);
    let histories = play(servers.platform().await.with_cache(), merchants).await.unwrap();
    let found = histories.iter().filter(|actions| !is_linearizable(actions)).count();
    eprintln!("{found} of {} histories have no order", histories.len());
    assert!(found > 0, "no stale read was found");
}
