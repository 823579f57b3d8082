//! A platform that pays merchants out, with a clock of its own.

use std::{
    fs,
    process::{Command, Output},
};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    clock_back::Clock,
    engine::Engine,
    live::Live,
    server::{server_binary, text_of},
};

pub(super) const KEY: &str = "a key of the platform for numbers of accounts";
pub(super) const A_DAY_AND_AN_HOUR: i64 = 25 * 60 * 60;
/// A number of a merchant's bank account.
pub(super) const NUMBER: &str = "1234567890123";

/// A platform with the key for numbers, and a clock that governs its commands, and its server if that has a clock of its own.
pub(super) struct Platform {
    pub(super) live: Live,
    pub(super) clock: Clock,
    engine: Engine,
}

impl Platform {
    pub(super) async fn start(engine: Engine) -> Self {
        Self::start_with(engine, "").await
    }

    pub(super) async fn start_with(engine: Engine, settings: &str) -> Self {
        let settings = format!("gateway-timeout = 1\npayout-key = '{KEY}'\npayout-reserve = ['BDT=10']\n{settings}");
        let mut it = Self { live: Live::start_on(engine, &settings, &[]).await, clock: Clock::new(), engine };
        it.restart();
        it
    }

    pub(super) fn restart(&mut self) {
        match self.engine {
            Engine::Directory => self.clock.govern(&mut self.live),
            Engine::Postgres => self.live.server.crash_and_restart(),
        }
    }

    pub(super) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(server_binary());
        command.arg("payouts").args(arguments).env("PAYMENTS_PAYOUT_KEY", KEY).envs(self.clock.variables());
        match self.live.server.database() {
            Some(url) => command.args(["--database-url", url]),
            None => command.arg("--data-dir").arg(self.live.server.data()),
        };
        command
    }

    pub(super) fn run(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", text_of(&output));
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    pub(super) fn output(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Why a command is refused.
    pub(super) fn refused(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        assert!(!output.status.success(), "{arguments:?}: {}", text_of(&output));
        text_of(&output)
    }

    pub(super) async fn post(&self, path: &str, body: Value) -> (StatusCode, Value) {
        let answer = self.live.request(Method::POST, path).json(&body).send().await.unwrap();
        (answer.status(), answer.json().await.unwrap())
    }

    pub(super) async fn put_destination(&self) {
        let account = json!({"holder": "=Karim, Stores", "bank": "010271234", "number": NUMBER});
        let (status, set) =
            self.post("/payouts/destinations", json!({"currency": "BDT", "bankAccount": account})).await;
        assert_eq!((status, &set["destination"]["last4"]), (StatusCode::OK, &json!("0123")), "{set}");
    }

    /// Requests a payout. Returns its id.
    pub(super) async fn request(&self, body: Value) -> String {
        let (status, payout) = self.post("/payouts", body).await;
        assert_eq!(status, StatusCode::CREATED, "{payout}");
        payout["id"].as_str().unwrap().to_owned()
    }

    /// When the schedule requests the next payout.
    pub(super) async fn next_payout(&self) -> Value {
        let answer = self.live.request(Method::GET, "/payouts/destinations").send().await.unwrap();
        answer.json::<Value>().await.unwrap()[0]["schedule"]["nextAt"].clone()
    }

    pub(super) async fn status(&self, payout: &str) -> Value {
        let answer = self.live.request(Method::GET, &format!("/payouts/{payout}")).send().await.unwrap();
        answer.json::<Value>().await.unwrap()["status"].clone()
    }

    /// The sums of the postings to the merchants, to payouts in transit and to the bank, in minor units. The check finds nothing.
    pub(super) fn books(&self) -> [i64; 3] {
        self.live.server.run(&["check"]);
        let exported = self.live.server.run(&["export", "postings"]);
        let postings: Vec<Value> = exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        ["merchant", "payouts_in_transit", "bank"].map(|account| {
            let of = postings.iter().filter(|it| it["account"] == account && it["environment"] == "live");
            of.map(|it| it["minor"].as_i64().unwrap()).sum()
        })
    }

    /// Writes the bank's answers. Returns the file.
    pub(super) fn answers(&self, rows: &[String]) -> String {
        let path = self.live.server.directory.path().join("answers.csv");
        fs::write(&path, format!("payout,status,reference,reason\n{}\n", rows.join("\n"))).unwrap();
        path.to_str().unwrap().to_owned()
    }
}
