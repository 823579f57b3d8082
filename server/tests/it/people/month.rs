//! A month of a small platform: three merchants, and four people who do everything over the administration API.

use std::cell::RefCell;

use gateway_fakes::{Running, bkash::Bkash, oidc::Oidc};
use reqwest::{Method, RequestBuilder, header};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::{GROUPS, arguments, as_person, sign_in, texts};
use crate::{
    clock_back::Clock,
    engine::Engine,
    live::Live,
    server::{Server, eventually},
};

const KEY: &str = "a key of the platform for numbers of accounts";
const NUMBER: &str = "1234567890123";
const DAY: u64 = 24 * 60 * 60;
const CUSTOMER: [&str; 2] = ["Rina Akter", "rina@example.org"];

/// Somebody who asks the administration API.
struct Somebody {
    /// How the audit log names them.
    name: String,
    /// The cookie of a person's session, or a platform key.
    secret: String,
    is_person: bool,
}

struct Platform {
    live: Live,
    provider: Running<Oidc>,
    clock: Clock,
    /// Where platform keys are taken.
    own_listener: String,
    /// Who did what, oldest first. The audit log must say the same.
    done: RefCell<Vec<(String, String)>>,
    _secret: TempDir,
}

impl Platform {
    async fn start() -> Self {
        let provider = Running::start(Oidc::new(), "127.0.0.1:0").await.unwrap();
        let (mut arguments, secret) = arguments(&provider, &GROUPS);
        let more = ["--admin-listen", "127.0.0.1:0", "--support-refund-cap", "BDT=300", "--gateway-timeout", "1"];
        arguments.extend(more.map(str::to_owned));
        let settings = format!("payout-key = '{KEY}'");
        let mut live = Live::start_by(Bkash::new(), Engine::Directory, &settings, "", &texts(&arguments)).await;
        let clock = Clock::new();
        clock.govern(&mut live);
        let own_listener = own_listener(&live.server);
        Self { live, provider, clock, own_listener, done: RefCell::default(), _secret: secret }
    }

    fn pass(&self, days: u64) {
        self.clock.set(i64::try_from(days * DAY).unwrap());
        self.provider.program().set_clock_ahead(days * DAY);
    }

    async fn person(&self, name: &str, group: &str) -> Somebody {
        self.provider.program().be(name, &[group]);
        let secret = sign_in(&self.live.server).await;
        Somebody { name: format!("{name}@platform.example"), secret, is_person: true }
    }

    /// Sends a request of the administration API. Returns the status and the answer.
    async fn ask(&self, who: &Somebody, method: &str, path: &str, body: Value) -> (u16, Value) {
        let method: Method = method.parse().unwrap();
        let path = format!("/admin/v1{path}");
        let request = if who.is_person {
            let request = self.live.server.keyless(method.clone(), &path);
            request.header(header::COOKIE, &who.secret).header("x-csrf", "1")
        } else {
            reqwest::Client::new()
                .request(method.clone(), format!("{}{path}", self.own_listener))
                .bearer_auth(&who.secret)
        };
        send(if method == Method::GET { request } else { request.json(&body) }).await
    }

    async fn get(&self, who: &Somebody, path: &str) -> Value {
        let (status, answer) = self.ask(who, "GET", path, json!({})).await;
        assert_eq!(status, 200, "{path}: {answer}");
        answer
    }

    /// Makes a change, which the audit log must have under this path.
    async fn act(&self, who: &Somebody, method: &str, route: &str, values: &[&str], body: Value) -> Value {
        let (status, answer) = self.ask(who, method, &filled(route, values), body).await;
        assert_eq!(status, 200, "{} {method} {route} {values:?}: {answer}", who.name);
        self.done.borrow_mut().push((who.name.clone(), format!("{method} /admin/v1{route}")));
        answer
    }

    /// A change that is refused with this code.
    async fn refused(&self, who: &Somebody, method: &str, path: &str, body: Value, code: &str) {
        let (status, answer) = self.ask(who, method, path, body).await;
        assert!(status >= 400 && answer["code"] == code, "{} {method} {path}: {status} {answer}", who.name);
    }

    /// A change that a person makes on a merchant's behalf.
    async fn on_behalf(&self, who: &Somebody, merchant: &Merchant, route: &str, values: &[&str], body: Value) -> Value {
        let request = self.live.server.keyless(Method::POST, &format!("/api/v1{}", filled(route, values)));
        let request =
            as_person(request, &who.secret, &merchant.workspace, "live").header("idempotency-key", body.to_string());
        let (status, answer) = send(request.json(&body)).await;
        assert!(status < 300, "{} {route}: {answer}", who.name);
        self.done.borrow_mut().push((who.name.clone(), format!("POST /api/v1{route}")));
        answer
    }

    /// Makes a merchant with a key.
    async fn merchant(&self, who: &Somebody, name: &str) -> Merchant {
        let made = self.act(who, "POST", "/workspaces", &[], json!({"name": name})).await;
        let workspace = made["id"].as_str().unwrap().to_owned();
        let body = json!({"environment": "live", "name": format!("the till of {name}")});
        let key = self.act(who, "POST", "/workspaces/{workspace}/keys", &[&workspace], body).await;
        Merchant { workspace, key: key["key"].as_str().unwrap().to_owned() }
    }

    /// A payment that its customer pays.
    async fn paid(&mut self, merchant: &Merchant, amount: f64, currency: &str) -> String {
        let key = std::mem::replace(&mut self.live.key, merchant.key.clone());
        let payment = self.live.paid(amount, currency).await;
        self.live.key = key;
        payment
    }

    async fn payout(&self, who: &Somebody, payout: &str, outcome: Value) -> Value {
        let body = json!({"rows": [{"payout": payout, "outcome": outcome}], "isCheck": false});
        self.ask(who, "POST", "/payouts/outcomes", body).await.1["payouts"].take()
    }

    /// Records what happened to a payout.
    async fn record(&self, who: &Somebody, payout: &str, outcome: Value) {
        let answer = self.payout(who, payout, outcome).await;
        assert_eq!(answer["recorded"][0]["payout"], payout, "{answer}");
        self.done.borrow_mut().push((who.name.clone(), "POST /admin/v1/payouts/outcomes".to_owned()));
    }
}

struct Merchant {
    workspace: String,
    key: String,
}

impl Merchant {
    async fn call(&self, server: &Server, method: Method, path: &str, body: Value) -> Value {
        let request = server.keyless(method.clone(), &format!("/api/v1{path}")).bearer_auth(&self.key);
        let (status, answer) = send(if method == Method::GET { request } else { request.json(&body) }).await;
        assert!(status < 300, "{path}: {answer}");
        answer
    }
}

async fn send(request: RequestBuilder) -> (u16, Value) {
    let answer = request.send().await.unwrap();
    (answer.status().as_u16(), answer.json().await.unwrap())
}

fn filled(route: &str, values: &[&str]) -> String {
    let mut values = values.iter();
    let parts = route.split('/').map(|part| if part.starts_with('{') { values.next().unwrap() } else { part });
    parts.collect::<Vec<_>>().join("/")
}

fn own_listener(server: &Server) -> String {
    server.assert_logs("/admin/v1 is on ");
    let log = server.log();
    log.rsplit("/admin/v1 is on ").next().and_then(|rest| rest.split_whitespace().next()).unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn four_people_run_a_platform_for_a_month_and_the_audit_log_tells_all_of_it() {
    let mut it = Platform::start().await;
    let asha = it.person("asha", "owners").await;
    let babul = it.person("babul", "accounts").await;
    let chitra = it.person("chitra", "helpdesk").await;
    let dipa = it.person("dipa", "viewers").await;

    // The first day: the merchants, their limits, and a key for Babul's laptop.
    let tea = it.merchant(&asha, "Tea House").await;
    let books = it.merchant(&asha, "Book Shop").await;
    let hats = it.merchant(&asha, "Hat Stall").await;
    let limits = json!({"paymentAtMost": {"BDT": "500"}, "keys": {"set": 3}});
    it.act(&asha, "PUT", "/workspaces/{workspace}/limits", &[&hats.workspace], limits).await;
    let body = json!({"name": "Babul's laptop", "scopes": ["money:write", "server:read"], "expiresAt": "2099-01-01T00:00:00.000Z"});
    let made = it.act(&asha, "POST", "/platform-keys", &[], body).await["platformKeys"].take();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let laptop = Somebody { name: text(&made["id"]), secret: text(&made["key"]), is_person: false };
    it.refused(&babul, "POST", "/workspaces", json!({"name": "Own"}), "permission_missing").await;
    it.refused(&laptop, "POST", "/keys/revoke", json!({"id": laptop.name}), "permission_missing").await;

    // The merchants sell.
    let cups = it.paid(&tea, 1000.0, "BDT").await;
    let atlas = it.paid(&books, 100.0, "USD").await;
    let cap = it.paid(&hats, 400.0, "BDT").await;
    let server = &it.live.server;
    let customer = json!({"name": CUSTOMER[0], "email": CUSTOMER[1]});
    let order = json!({"amount": 50, "success_url": "https://shop.example/paid", "cancel_url": "https://shop.example/cart",
        "customer": customer});
    let unpaid = text(&tea.call(server, Method::POST, "/payments", order).await["id"]);
    let account = json!({"holder": "Karim Stores", "bank": "010271234", "number": NUMBER});
    tea.call(server, Method::POST, "/payouts/destinations", json!({"currency": "BDT", "bankAccount": account})).await;

    // Chitra gives a customer a part back, and Babul sends it by hand.
    it.on_behalf(&chitra, &tea, "/payments/{id}/refund", &[&cups], json!({"amount": 300, "reason": "cold"})).await;
    let due = it.get(&babul, "/refunds").await;
    assert_eq!((due["refunds"].as_array().unwrap().len(), &due["refunds"][0]["payment"]), (1, &json!(cups)));
    let refund = text(&due["refunds"][0]["refund"]);
    let settle = format!("/refunds/{refund}/settle");
    it.refused(&chitra, "POST", &settle, json!({"reference": "TRX1"}), "permission_missing").await;
    it.act(&babul, "POST", "/refunds/{refund}/settle", &[&refund], json!({"reference": "TRX1"})).await;

    // A customer of the book shop complains to the bank, and wins.
    let letter = json!({"amount": "40", "reference": "CB-1", "reason": "never came", "evidenceDueBy": null, "returnsFee": false});
    let opened = it.act(&babul, "POST", "/payments/{payment}/disputes", &[&atlas], letter).await;
    let dispute = text(&opened["dispute"]["dispute"]);
    let withdrawn = json!({"amount": "40", "reference": "CB-2", "isReinstated": false});
    it.act(&babul, "POST", "/disputes/{dispute}/moves", &[&dispute], withdrawn).await;
    it.act(&babul, "POST", "/disputes/{dispute}/close", &[&dispute], json!({"outcome": "lost"})).await;
    assert_eq!(it.get(&dipa, "/disputes").await["disputes"], json!([]));

    // bKash's statement, from the laptop: one row is not ours until Babul finds its payment.
    let row = |id: &str, name: &str, gross: i64| {
        json!({"id": id, "kind": "payment", "references": [name], "gross": gross, "fee": 0, "net": gross, "currency": "BDT",
            "date": "2026-03-01"})
    };
    let statement = json!({"rows": [row("r1", &cups, 100_000), row("r2", "TX-UNKNOWN", 40_000)], "isCheck": false,
        "merchantsBearCosts": false});
    it.act(&laptop, "POST", "/settlements/gateways/{gateway}/rows", &["bkash"], statement).await;
    let theirs = it.get(&dipa, "/settlements/rows?isSuspended=true").await["settlements"].take();
    assert_eq!(theirs["settled"][0]["row"]["id"], "r2");
    let found = json!({"gateway": "bkash", "payment": cap, "merchantsBearCosts": false});
    it.act(&babul, "POST", "/settlements/rows/{row}/resolve", &["r2"], found).await;
    let ours = it.get(&dipa, "/settlements/waiting?olderThanDays=0").await["settlements"]["waiting"].take();
    assert_eq!((ours.as_array().unwrap().len(), &ours[0]["payment"]), (1, &json!(atlas)), "{ours}");

    // Babul asks for the tea house's payout, so somebody else approves it.
    let asked = it.on_behalf(&babul, &tea, "/payouts", &[], json!({"currency": "BDT", "amount": 400})).await;
    let payout = text(&asked["id"]);
    let answer = it.payout(&babul, &payout, json!({"approved": {"by": "Asha"}})).await;
    assert!(answer["why"].as_str().unwrap().contains("somebody else must"), "{answer}");
    it.record(&asha, &payout, json!({"approved": {"by": "Babul"}})).await;
    let listed = it.get(&dipa, "/payouts").await["payouts"].take();
    assert_eq!(listed["listed"][0]["requestedBy"], babul.name, "{listed}");

    // The second day: everybody signs in again. The bank gets the file, pays, and sends the money back.
    it.pass(2);
    let (asha, babul) = (it.person("asha", "owners").await, it.person("babul", "accounts").await);
    it.refused(&chitra, "GET", "/workspaces", json!({}), "unauthorized").await;
    let sent = it.act(&babul, "POST", "/payouts/batches/{batch}", &["june-2"], json!({})).await["payouts"].take();
    assert_eq!((&sent["sent"][0]["payout"], &sent["sent"][0]["number"]), (&json!(payout), &json!(NUMBER)), "{sent}");
    it.record(&babul, &payout, json!({"paid": {"reference": "FT-1"}})).await;
    it.record(&babul, &payout, json!({"returned": {"reason": "the account is closed"}})).await;

    // The laptop is lost: Babul's sessions end, and so does its key.
    let sessions = it.get(&asha, "/sessions").await["sessions"]["rows"].take();
    let of_babul = sessions.as_array().unwrap().iter().filter(|row| row["email"] == *babul.name).count();
    assert_eq!(of_babul, 1, "{sessions}");
    it.act(&asha, "POST", "/people/revoke", &[], json!({"email": babul.name})).await;
    it.act(&asha, "POST", "/platform-keys/{id}/revoke", &[&laptop.name], json!({})).await;
    it.refused(&babul, "GET", "/payouts", json!({}), "unauthorized").await;
    it.refused(&laptop, "GET", "/payouts", json!({}), "unauthorized").await;
    let babul = it.person("babul", "accounts").await;
    let again =
        text(&it.on_behalf(&babul, &tea, "/payouts", &[], json!({"currency": "BDT", "amount": 400})).await["id"]);

    // The last day: a customer wants to be forgotten. The payout goes out again.
    it.pass(29);
    let (asha, babul) = (it.person("asha", "owners").await, it.person("babul", "accounts").await);
    let dipa = it.person("dipa", "viewers").await;
    it.record(&asha, &again, json!({"approved": {"by": "Asha"}})).await;
    it.act(&babul, "POST", "/payouts/batches/{batch}", &["june-29"], json!({})).await;
    it.record(&babul, &again, json!({"paid": {"reference": "FT-2"}})).await;
    let of = json!({"email": CUSTOMER[1]});
    let export = format!("/workspaces/{}/customers/export", tea.workspace);
    it.refused(&babul, "POST", &export, of.clone(), "permission_missing").await;
    let (_, held) = it.ask(&asha, "POST", &export, of).await;
    let held = held["customers"]["held"].to_string();
    assert!(held.contains(&unpaid) && held.contains(CUSTOMER[0]), "{held}");
    eventually("the unpaid order to expire", async || {
        let order = tea.call(&it.live.server, Method::GET, &format!("/payments/{unpaid}"), json!({})).await;
        (order["rawStatus"] == "expired").then_some(())
    })
    .await;
    let erase = json!({"email": CUSTOMER[1], "metadata": false, "lines": false});
    let route = "/workspaces/{workspace}/customers/erase";
    let erased = it.act(&asha, "POST", route, &[&tea.workspace], erase).await["customers"]["erased"].take();
    assert_eq!(erased["payments"], 1, "{erased}");

    // The books close, and the audit log tells who did what.
    let coverage = it.get(&dipa, "/coverage").await;
    assert!(coverage["coverage"]["covers"].as_array().unwrap().len() == 2, "{coverage}");
    let mut log = it.get(&asha, "/audit").await["audit"].as_array().unwrap().clone();
    log.reverse();
    let told: Vec<_> = log.iter().map(|entry| (text(&entry["actor"]["id"]), text(&entry["action"]))).collect();
    let by_people = told.into_iter().filter(|(who, _)| who.contains('@') || *who == laptop.name);
    let mut by_people: Vec<_> = by_people.collect();
    // A row of a statement is found in one commit and booked in the next.
    by_people.dedup_by(|a, b| a == b && a.1.contains("/settlements/"));
    assert_eq!(by_people, *it.done.borrow());
    let whole = Value::from(log.clone()).to_string();
    for secret in [&tea.key, &asha.secret, &laptop.secret, NUMBER, CUSTOMER[0], CUSTOMER[1]] {
        assert!(!whole.contains(secret), "{secret} is in the audit log");
    }
    // Each merchant reads what was done to it, and nothing of another.
    for (merchant, own, others) in [(&tea, &payout, &dispute), (&books, &atlas, &payout)] {
        let log = merchant.call(&it.live.server, Method::GET, "/account/audit?limit=100", json!({})).await.to_string();
        assert!(log.contains(own) && !log.contains(others), "{log}");
    }
    it.live.server.run(&["check"]);
}
