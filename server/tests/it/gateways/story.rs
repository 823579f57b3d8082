//! The story of the books: what happens to two merchants' payments, and what every account says after each step.

use std::{
    collections::BTreeMap,
    fmt::Write as _,
    fs,
    time::{Duration, Instant},
};

use gateway_fakes::{bkash, stripe};
use reqwest::Method;
use serde_json::{Value, json};

use super::{
    ENGINES,
    platform::{A_DAY_AND_AN_HOUR, Platform},
};
use crate::{engine::Engine, failing_calls::shim, server::text_of};

/// How long a step may take, with everything that the server learns by asking again.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a server is waited for that has answered.
const LONG: Duration = Duration::from_secs(5);
/// A process dies at one of so many commits.
const DEATHS_AT: usize = 3;
const ACCOUNTS: [&str; 8] =
    ["gateway_clearing", "bank", "merchant", "platform_fee", "payouts_in_transit", "gateway_cost", "suspense", "owner"];

type Accounts = [i64; ACCOUNTS.len()];

/// What is not done yet, and will be tried again.
type Step = Result<(), String>;

struct Story {
    it: Platform,
    /// The ids of payments, payouts and gateways' records by their names in the story.
    ids: BTreeMap<&'static str, String>,
    /// Where the customers of payments come back.
    backs: BTreeMap<&'static str, String>,
    begun: Instant,
    /// Variables with which the server dies at its next commit after its start, and the file that allows it.
    death: Option<(Vec<(&'static str, String)>, std::path::PathBuf)>,
    deaths: usize,
}

impl Story {
    async fn begin(engine: Engine) -> Self {
        let it = Platform::start(engine).await;
        it.put_destination().await;
        // bKash grants two tokens an hour. This one serves the story.
        it.live.pay(&it.live.create(1.0, "BDT").await).await;
        Self { it, ids: BTreeMap::new(), backs: BTreeMap::new(), begun: Instant::now(), death: None, deaths: 0 }
    }

    /// Makes each process of the server die while it makes a commit durable: the first one its first commit, or a later one, the
    /// next one its second, and so on.
    fn die_at_commits(&mut self) {
        let directory = self.it.live.server.directory.path();
        let (armed, journal) = (directory.join("armed"), self.it.live.server.data().join("journal"));
        let of_clock = self.it.clock.variables();
        let preloads = format!("{}:{}", of_clock[0].1, shim(directory).display());
        let variables = vec![
            of_clock[1].clone(),
            ("LD_PRELOAD", preloads),
            ("FAIL_UNDER", journal.display().to_string()),
            ("FAIL_CALL", "sync".to_owned()),
            ("FAIL_WHEN", armed.display().to_string()),
            ("FAIL_BY", "kill".to_owned()),
        ];
        self.death = Some((variables, armed));
        self.restart();
    }

    fn restart(&mut self) {
        self.begun = Instant::now();
        let Some((variables, armed)) = &self.death else { return self.it.restart() };
        let _ = fs::remove_file(armed);
        // A process that always dies at its first commit gets nowhere.
        let at = (self.deaths % DEATHS_AT + 1).to_string();
        let mut variables: Vec<_> = variables.iter().map(|(name, value)| (*name, &**value)).collect();
        variables.push(("FAIL_AT", &at));
        self.it.live.server.restart_in(&variables);
        fs::write(armed, "").unwrap();
    }

    fn id(&self, name: &str) -> String {
        self.ids[name].clone()
    }

    fn run(&self, arguments: &[&str]) -> Step {
        let output = self.it.live.server.try_run(arguments);
        if output.status.success() { Ok(()) } else { Err(text_of(&output)) }
    }

    async fn call(&self, method: Method, path: &str, key: &str, body: Value) -> Result<Value, String> {
        let request = self.it.live.request(method, path).header("idempotency-key", key);
        let answer = request.json(&body).send().await.map_err(|error| error.to_string())?;
        let (status, body) = (answer.status(), answer.text().await.map_err(|error| error.to_string())?);
        if status.is_success() { Ok(serde_json::from_str(&body).unwrap()) } else { Err(body) }
    }

    /// A new payment that its customer pays at the gateway.
    async fn paid(&mut self, name: &'static str, amount: u32, currency: &str) -> Step {
        let body = json!({"amount": amount, "currency": currency, "success_url": "https://shop.example/paid",
            "cancel_url": "https://shop.example/cart"});
        let created = self.call(Method::POST, "/payments", name, body).await?;
        let id = created["id"].as_str().unwrap().to_owned();
        self.ids.insert(name, id.clone());
        if !self.backs.contains_key(name) {
            let back = self.at_gateway(&id, currency).await?;
            self.backs.insert(name, back);
        }
        let server = &self.it.live.server;
        let path = self.backs[name].strip_prefix(&server.url).unwrap();
        server.keyless(Method::GET, path).send().await.map(drop).map_err(|error| error.to_string())
    }

    /// The customer chooses the gateway and pays there. Returns the address at which the customer comes back.
    async fn at_gateway(&self, id: &str, currency: &str) -> Result<String, String> {
        let live = &self.it.live;
        let pay = live.server.keyless(Method::POST, &format!("/api/v1/checkout/{id}/pay")).send();
        let paying: Value = pay.await.map_err(|error| error.to_string())?.json().await.unwrap_or_default();
        let url = paying["redirectUrl"].as_str().ok_or(paying.to_string())?;
        let attempt = url.rsplit('/').next().unwrap();
        let back = match currency {
            "BDT" => live.bkash.program().approve(attempt, bkash::WALLET),
            _ => live.stripe.program().pay(attempt, stripe::CARD),
        };
        back.ok_or_else(|| format!("{attempt} cannot be paid"))
    }

    async fn refunded(&self, name: &str, amount: u32) -> Step {
        let path = format!("/payments/{}/refund", self.id(name));
        self.call(Method::POST, &path, &format!("{name}-{amount}"), json!({"amount": amount})).await.map(drop)
    }

    /// Does something at the gateway, which happens once.
    fn once(&mut self, name: &'static str, act: impl FnOnce(&Self) -> String) -> Step {
        if !self.ids.contains_key(name) {
            let id = act(self);
            self.ids.insert(name, id);
        }
        Ok(())
    }

    fn statement(&self) -> Step {
        let file = self.it.live.server.directory.path().join("may.csv");
        let row = format!("r1,payment,{},1000,18.5,981.5,BDT,2026-03-01", self.id("tea"));
        let other = "r2,payment,TX9,7,0,7,BDT,2026-03-01";
        fs::write(&file, format!("id,kind,reference,gross,fee,net,currency,date\n{row}\n{other}\n")).unwrap();
        self.run(&["settlements", "import", "--gateway", "bkash", file.to_str().unwrap()])
    }

    /// Imports what Stripe paid to the bank. A command beside a server on a database has no API of Stripe, so it gets a file.
    async fn stripe_settles(&self) -> Step {
        let import = ["settlements", "import", "--gateway", "stripe"];
        let Some(_) = self.it.live.server.database() else {
            let stripe = self.it.live.stripe.program();
            stripe.make_available();
            stripe.pay_out();
            return self.run(&import);
        };
        let url = format!("{}/v1/balance_transactions?limit=100", self.it.live.stripe.url());
        let answer = reqwest::Client::new().get(url).bearer_auth(stripe::SECRET_KEY).send().await.unwrap();
        let mut file = "id,kind,reference,gross,fee,net,currency,date\n".to_owned();
        for row in answer.json::<Value>().await.unwrap()["data"].as_array().unwrap() {
            let [gross, fee, net] = ["amount", "fee", "net"].map(|name| row[name].as_f64().unwrap() / 100.0);
            let (payment, id) = (self.id(if gross.abs() == 50.0 { "hat" } else { "bag" }), row["id"].as_str().unwrap());
            let kind = match row["reporting_category"].as_str().unwrap() {
                "charge" => "payment",
                kind if kind.starts_with("dispute") => "dispute",
                _ => "refund",
            };
            writeln!(file, "{id},{kind},{payment},{gross},{fee},{net},USD,2026-03-01").unwrap();
        }
        let path = self.it.live.server.directory.path().join("stripe.csv");
        fs::write(&path, file).unwrap();
        self.run(&[&import[..], &[path.to_str().unwrap()]].concat())
    }

    async fn payout(&mut self, name: &'static str) -> Step {
        let payout = self.call(Method::POST, "/payouts", name, json!({"currency": "BDT", "amount": 400})).await?;
        self.ids.insert(name, payout["id"].as_str().unwrap().to_owned());
        Ok(())
    }

    fn payout_command(&self, arguments: &[&str]) -> Step {
        let output = self.it.output(arguments);
        if output.status.success() { Ok(()) } else { Err(text_of(&output)) }
    }

    async fn paid_out(&mut self, name: &'static str) -> Step {
        // The answer to the request may have been lost.
        if !self.ids.contains_key(name) {
            self.payout(name).await?;
        }
        let id = self.id(name);
        // Nothing goes to a destination that is new.
        self.it.clock.set(A_DAY_AND_AN_HOUR);
        // If it was sent already, it cannot be approved again.
        let _ = self.payout_command(&["approve", &id, "--by", "Asha"]);
        self.payout_command(&["send", "--batch", name])?;
        self.payout_command(&["paid", &id, "--reference", name])
    }

    /// Takes a step. `Ok` means that nothing failed, and not yet that its effect is there.
    async fn take(&mut self, step: usize) -> Step {
        match step {
            0 => self.paid("tea", 1000, "BDT").await,
            1 => self.refunded("tea", 300).await,
            2 => self.run(&["refunds", "settle", &self.id("tea"), "--reference", "TRX1"]),
            3 => self.paid("cup", 7, "BDT").await,
            4 => self.paid("bag", 100, "USD").await,
            5 => self
                .once("by hand", |it| it.it.live.stripe.program().refund_part_by_hand(&it.id("bag"), 2_000).unwrap()),
            6 => self.refunded("bag", 10).await,
            7 => self.once("failed", |it| {
                let stripe = it.it.live.stripe.program();
                let own = stripe.refunds().into_iter().find(|refund| *refund != it.id("by hand")).unwrap();
                stripe.fail_refund(&own);
                own
            }),
            8 => self.once("to win", |it| {
                it.it.live.stripe.program().open_dispute(&it.id("bag"), 3_000, "fraudulent", false).unwrap()
            }),
            9 => self.once("won", |it| it.it.live.stripe.program().close_dispute(&it.id("to win"), true).to_string()),
            10 => self.paid("hat", 50, "USD").await,
            11 => self.once("lost", |it| {
                let stripe = it.it.live.stripe.program();
                let dispute = stripe.open_dispute(&it.id("hat"), 0, "product_not_received", false).unwrap();
                stripe.close_dispute(&dispute, false);
                dispute
            }),
            12 => self.statement(),
            13 => self.run(&["settlements", "resolve", "r2", "--payment", &self.id("cup")]),
            14 => self.stripe_settles().await,
            15 => self.run(&["books", "paid-in", "50", "--currency", "USD", "--reference", "FT1"]),
            16 => self.payout("first").await,
            17 => self.paid_out("first").await,
            18 => self.payout_command(&["returned", &self.id("first"), "--reason", "closed"]),
            19 => self.payout("second").await,
            _ => self.paid_out("second").await,
        }
    }

    /// What the accounts say of a currency.
    fn accounts(&self) -> Result<[Accounts; 2], String> {
        let output = self.it.live.server.try_run(&["export", "postings"]);
        if !output.status.success() {
            return Err(text_of(&output));
        }
        let exported = String::from_utf8(output.stdout).unwrap();
        let mut sums = [[0; ACCOUNTS.len()]; 2];
        for posting in exported.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
            let account = ACCOUNTS.iter().position(|it| posting["account"] == *it).unwrap();
            sums[usize::from(posting["currency"] == "USD")][account] += posting["minor"].as_i64().unwrap();
        }
        Ok(sums)
    }

    /// Takes a step until the accounts say that it is done.
    async fn take_until(&mut self, step: usize, expected: [Accounts; 2]) {
        let (begun, mut outcome) = (Instant::now(), Ok(()));
        loop {
            if !self.it.live.server.is_running() {
                self.deaths += 1;
                self.restart();
            }
            let books = self.accounts();
            if books.as_ref() == Ok(&expected) {
                return;
            }
            assert!(begun.elapsed() < PATIENCE, "step {step}: {books:?} {outcome:?}\n{}", self.it.live.server.log());
            outcome = self.take(step).await;
            // A server reads what Stripe kept, and what no event told, soon after its start.
            if self.begun.elapsed() > LONG && begun.elapsed() > LONG {
                self.restart();
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Plays the story. After each step the accounts are as the table says.
    async fn play(&mut self, after_step: impl Fn(&mut Self)) {
        for (step, row) in TABLE.iter().enumerate() {
            let before = step.checked_sub(1).map_or([[0; ACCOUNTS.len()]; 2], |it| TABLE[it].1);
            assert_ne!(row.1, before, "{}", row.0);
            self.take_until(step, row.1).await;
            after_step(self);
        }
    }
}

/// The accounts in taka and in dollars after each step, in minor units. The fee is 5 percent. Stripe keeps 2.9 percent and 0.30 of
/// a payment, and 15.00 of a dispute.
#[rustfmt::skip]
const TABLE: [(&str, [Accounts; 2]); 21] = [
    //                                              clearing     bank merchant   fee  payout    cost susp. owner
    ("tea is paid: 1000",                        [[-100_000,       0,  95_000, 5_000,      0,      0,   0, 0], NONE]),
    ("300 of it is refunded",                    [[ -70_000,       0,  66_500, 3_500,      0,      0,   0, 0], NONE]),
    ("the bank sends the refund",                [[-100_000,  30_000,  66_500, 3_500,      0,      0,   0, 0], NONE]),
    ("a cup is paid: 7",                         [CUP, NONE]),
    ("a bag is paid: 100",                       [CUP, [ -9_680,       0,   9_500,   500,      0,   -320,   0, 0]]),
    ("20 of it is refunded in the dashboard",    [CUP, [ -7_680,       0,   7_600,   400,      0,   -320,   0, 0]]),
    ("10 of it is refunded",                     [CUP, [ -6_680,       0,   6_650,   350,      0,   -320,   0, 0]]),
    ("that refund fails",                        [CUP, [ -7_680,       0,   7_600,   400,      0,   -320,   0, 0]]),
    ("30 of the bag is disputed",                [CUP, [ -3_180,       0,   4_600,   400,      0, -1_820,   0, 0]]),
    ("that dispute is won",                      [CUP, [ -6_180,       0,   7_600,   400,      0, -1_820,   0, 0]]),
    ("a hat is paid: 50",                        [CUP, [-11_005,       0,  12_350,   650,      0, -1_995,   0, 0]]),
    ("the hat's dispute is lost",                [CUP, [ -4_505,       0,   7_350,   650,      0, -3_495,   0, 0]]),
    ("bKash's statement, with a row not ours",   [[    -700, -68_850,  67_165, 3_535,      0, -1_850, 700, 0], HAT]),
    ("that row is the cup's",                    [[       0, -68_850,  67_165, 3_535,      0, -1_850,   0, 0], HAT]),
    ("Stripe's payout to the bank",              [TEA, [      0,  -4_505,   7_350,   650,      0, -3_495,   0, 0]]),
    ("the owner pays in 50",                     [TEA, OWNED]),
    ("the merchant asks for 400",                [[       0, -68_850,  27_165, 3_535, 40_000, -1_850,   0, 0], OWNED]),
    ("the bank pays it",                         [[       0, -28_850,  27_165, 3_535,      0, -1_850,   0, 0], OWNED]),
    ("the bank returns it",                      [TEA, OWNED]),
    ("the merchant asks again",                  [[       0, -68_850,  27_165, 3_535, 40_000, -1_850,   0, 0], OWNED]),
    ("the bank pays that",                       [[       0, -28_850,  27_165, 3_535,      0, -1_850,   0, 0], OWNED]),
];
#[rustfmt::skip]
const CUP: Accounts = [-100_700,  30_000,  67_165, 3_535, 0, 0, 0, 0];
#[rustfmt::skip]
const HAT: Accounts = [  -4_505,       0,   7_350,   650, 0, -3_495, 0, 0];
#[rustfmt::skip]
const TEA: Accounts = [       0, -68_850,  67_165, 3_535, 0, -1_850, 0, 0];
#[rustfmt::skip]
const OWNED: Accounts = [     0,  -9_505,   7_350,   650, 0, -3_495, 0, 5_000];
const NONE: Accounts = [0; 8];

#[tokio::test(flavor = "multi_thread")]
async fn every_account_is_as_a_table_says_after_each_step_of_a_story() {
    for engine in ENGINES {
        let mut story = Story::begin(engine).await;
        story
            .play(|it| {
                it.it.live.server.run(&["check"]);
            })
            .await;
        assert_eq!(story.deaths, 0);
        story.it.live.server.run(&["settlements", "report"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_dies_at_commit_after_commit_of_the_story_loses_and_doubles_nothing() {
    let play = async |deaths| {
        let mut story = Story::begin(Engine::Directory).await;
        story.deaths = deaths;
        story.die_at_commits();
        story.play(|_| ()).await;
        story.it.live.server.kill();
        story.it.live.server.run(&["check"]);
        story.it.live.server.run(&["settlements", "report"]);
        story.deaths - deaths
    };
    let (first, second) = tokio::join!(play(0), play(2));
    assert!(first + second > 2 * TABLE.len(), "{first} and {second} deaths");
}

/// A server on a database dies after each step, and the next one takes over.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_on_a_database_that_dies_after_each_step_of_the_story_loses_and_doubles_nothing() {
    let mut story = Story::begin(Engine::Postgres).await;
    story.play(|it| it.restart()).await;
    story.it.live.server.run(&["check"]);
}
