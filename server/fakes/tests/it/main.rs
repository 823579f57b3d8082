//! The fakes refuse invalid requests as the gateways do, and independent clients work with them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod any;
mod bkash_v2;
mod sslcommerz;

use std::{path::Path, process::Command, time::Duration};

use gateway_fakes::{Fault, Running, bkash, bkash::Bkash, stripe, stripe::Stripe};
use serde_json::{Value, json};

fn run(command: &mut Command) {
    let status = command.status().unwrap_or_else(|error| panic!("{command:?}: {error}; install python3"));
    assert!(status.success(), "{command:?} failed; install python3 and python3-venv");
}

/// Runs a script with these packages in an environment of its own.
async fn python(environment: &str, packages: &[&'static str], script: &str, arguments: Vec<String>) {
    let venv = Path::new(env!("CARGO_TARGET_TMPDIR")).join(environment);
    let interpreter = venv.join("bin/python");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it").join(script);
    let packages = packages.to_vec();
    tokio::task::spawn_blocking(move || {
        if !interpreter.exists() {
            run(Command::new("python3").args(["-m", "venv"]).arg(&venv));
        }
        if !packages.is_empty() {
            let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
            run(Command::new(&interpreter).args(pip).args(packages));
        }
        run(Command::new(&interpreter).arg(script).args(arguments));
    })
    .await
    .unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn independent_gateway_clients_work_with_the_fakes() {
    let bkash = Running::start(Bkash::new(), "127.0.0.1:0").await.unwrap();
    let stripe = Running::start(Stripe::new(), "127.0.0.1:0").await.unwrap();
    let bkash_v2 = Running::start(Bkash::v2(), "127.0.0.1:0").await.unwrap();
    let known = [bkash::APP_KEY, bkash::APP_SECRET, bkash::USERNAME, bkash::PASSWORD].map(str::to_owned);
    let mut arguments = vec![bkash.url(), stripe.url()];
    arguments.extend(known.clone());
    arguments.extend([stripe::SECRET_KEY, stripe::WEBHOOK_SECRET].map(str::to_owned));
    python("gateway-clients", &["stripe==16.1.0", "bkash-pgw-tokenized==1.0.0"], "clients.py", arguments).await;
    let arguments = std::iter::once(bkash_v2.url()).chain(known).collect();
    python("gateway-clients", &[], "bkash_v2.py", arguments).await;
    for fake in [bkash, bkash_v2] {
        assert_eq!(fake.program().books().iter().filter(|entry| entry.taken == 1).count(), 1);
    }
}

/// A version of bKash's API: its base path, and the path of its token call.
struct Version {
    base: &'static str,
    token: &'static str,
}

const V1: Version = Version { base: "/v1.2.0-beta/tokenized/checkout", token: "/token/grant" };
const V2: Version = Version { base: "/v2/tokenized-checkout", token: "/auth/grant-token" };

/// A client of the bKash fake with a token.
struct Caller {
    http: reqwest::Client,
    base: String,
    token: String,
}

impl Caller {
    async fn new(fake: &Running<Bkash>, version: &Version) -> Self {
        let mut caller = Self::without_token(fake, version);
        let granted = caller.ask_for_token(version.token, json!({})).await;
        caller.token = granted["id_token"].as_str().unwrap().to_owned();
        caller
    }

    fn without_token(fake: &Running<Bkash>, version: &Version) -> Self {
        let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_millis(500)).build().unwrap();
        Self { http, base: format!("{}{}", fake.url(), version.base), token: String::new() }
    }

    async fn ask_for_token(&self, path: &str, mut body: Value) -> Value {
        body["app_key"] = json!(bkash::APP_KEY);
        body["app_secret"] = json!(bkash::APP_SECRET);
        let request = self.request(path, &body);
        read(request.header("username", bkash::USERNAME).header("password", bkash::PASSWORD)).await.unwrap()
    }

    fn request(&self, path: &str, body: &Value) -> reqwest::RequestBuilder {
        let request = self.http.post(format!("{}{path}", self.base)).header("content-type", "application/json");
        request.body(body.to_string())
    }

    async fn call(&self, path: &str, body: &Value) -> Option<Value> {
        read(self.authorized(path, body, &self.token)).await
    }

    fn authorized(&self, path: &str, body: &Value, token: &str) -> reqwest::RequestBuilder {
        self.request(path, body).header("authorization", token).header("x-app-key", bkash::APP_KEY)
    }
}

async fn read(request: reqwest::RequestBuilder) -> Option<Value> {
    let text = request.send().await.ok()?.text().await.ok()?;
    serde_json::from_str(&text).ok()
}

fn order(invoice: &str) -> Value {
    json!({"mode": "0011", "payerReference": "x", "callbackURL": "https://shop.example/back", "amount": "15.00",
        "currency": "BDT", "intent": "sale", "merchantInvoiceNumber": invoice})
}

#[tokio::test]
async fn the_bkash_fake_refuses_invalid_requests_as_the_gateway_does() {
    let fake = Running::start(Bkash::new(), "127.0.0.1:0").await.unwrap();
    let caller = Caller::new(&fake, &V1).await;
    for (field, value, code) in [
        ("mode", json!("0001"), "2063"),
        ("mode", Value::Null, "2065"),
        ("amount", json!(15), "2065"),
        ("amount", json!("0"), "2006"),
        ("amount", json!("-1"), "2006"),
        ("amount", json!("1.005"), "2006"),
        ("currency", json!("USD"), "2007"),
        ("intent", json!("authorization"), "2008"),
        ("callbackURL", json!("/back"), "2049"),
        ("payerReference", json!("x".repeat(256)), "2048"),
        ("merchantInvoiceNumber", json!("i&1"), "2031"),
    ] {
        let mut wrong = order("i-1");
        wrong[field] = value;
        let answer = caller.call("/create", &wrong).await.unwrap();
        assert_eq!(answer["statusCode"], code, "{wrong}");
    }
    let bearer = caller.authorized("/create", &order("i-1"), &format!("Bearer {}", caller.token));
    let refused = read(bearer).await.unwrap();
    assert_eq!(refused, json!({"message": "Unauthorized"}), "bKash takes the token without a scheme");
    let keyless = caller.request("/create", &order("i-1")).header("authorization", &caller.token);
    assert!(read(keyless).await.unwrap()["message"].as_str().unwrap().contains("app key"));
    assert_eq!(caller.call("/execute", &json!({"paymentID": "?"})).await.unwrap()["errorCode"], "2002");

    let made = caller.call("/create", &order("i-1")).await.unwrap();
    let id = &made["paymentID"];
    fake.program().cancel(id.as_str().unwrap()).unwrap();
    assert_eq!(caller.call("/execute", &json!({"paymentID": id})).await.unwrap()["statusCode"], "2069");
    assert_eq!(fake.program().approve(id.as_str().unwrap(), bkash::WALLET), None, "the payment is cancelled");
    let made = caller.call("/create", &order("i-2")).await.unwrap();
    let id = made["paymentID"].as_str().unwrap();
    assert!(fake.program().approve(id, bkash::BLOCKED_WALLET).unwrap().contains("status=failure"));
    fake.program().approve(id, bkash::POOR_WALLET).unwrap();
    assert_eq!(caller.call("/execute", &json!({"paymentID": id})).await.unwrap()["statusCode"], "2023");
    assert!(fake.program().books().iter().all(|entry| entry.taken == 0));
}

#[tokio::test]
async fn each_fault_loses_the_answer_and_takes_money_only_when_it_comes_after_the_effect() {
    let fake = Running::start(Bkash::new(), "127.0.0.1:0").await.unwrap();
    let caller = Caller::new(&fake, &V1).await;
    for (number, (name, fault)) in Fault::ALL.into_iter().enumerate() {
        let made = caller.call("/create", &order(&format!("i-{number}"))).await.unwrap();
        let id = made["paymentID"].as_str().unwrap().to_owned();
        fake.program().approve(&id, bkash::WALLET).unwrap();
        fake.faults().next("execute", fault);
        let answer = caller.call("/execute", &json!({"paymentID": id})).await;
        assert!(answer.is_none_or(|answer| answer.get("trxID").is_none()), "{name}");
        let taken = fake.program().books().into_iter().find(|entry| entry.id == id).unwrap().taken;
        let has_effect =
            !matches!(fault, Fault::HangBefore | Fault::DropBefore | Fault::ErrorBefore | Fault::Before(_));
        assert_eq!(taken == 1, has_effect, "{name}");
        let again = caller.call("/execute", &json!({"paymentID": id})).await.unwrap();
        assert_eq!(again["statusCode"], if has_effect { "2062" } else { "0000" }, "{name}");
    }
    assert!(fake.program().books().iter().all(|entry| entry.taken == 1));
}

#[tokio::test]
async fn random_faults_hit_their_share_of_calls_except_excluded_operations() {
    let fake = Running::start(Bkash::new(), "127.0.0.1:0").await.unwrap();
    let caller = Caller::new(&fake, &V1).await;
    fake.faults().at_random(7, 0.33, &[Fault::DropBefore], &["status"]);
    let mut lost = 0;
    for number in 0..300 {
        lost += u32::from(caller.call("/create", &order(&format!("i-{number}"))).await.is_none());
        assert!(caller.call("/payment/status", &json!({"paymentID": "?"})).await.is_some());
    }
    assert!((60..140).contains(&lost), "{lost} of 300");
    fake.faults().none();
    assert!(caller.call("/create", &order("after")).await.is_some());
}
