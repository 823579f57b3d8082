//! Notices: each state opens one, and its end closes it, for the merchant, the operator and the platform's webhook.

use std::{collections::BTreeMap, process::Command};

use payments_client::{Client, CreateWebhook, NoticeKind, Retries, Subscription, UpdateWebhook, WebhookId};
use reqwest::StatusCode;
use serde_json::Value;

use crate::{
    engine::Engine,
    live::Live,
    receiver::{Receiver, Reply},
    server::{eventually, server_binary, text_of},
};

const SECRET: &str = "whsec_of_the_platform";

fn client(live: &Live, key: &str) -> Client {
    Client::builder(key).base_url(&live.server.url).build().unwrap()
}

/// The kinds and the subjects of the open notices of a workspace.
async fn open(client: &Client) -> Vec<(NoticeKind, String)> {
    client.account().notices().await.unwrap().into_iter().map(|it| (it.kind, it.subject)).collect()
}

async fn opens(client: &Client, expected: &[(NoticeKind, String)]) {
    let what = format!("the notices {expected:?}");
    eventually(&what, async || (open(client).await == expected).then_some(())).await;
}

/// The events that the platform's webhook got: their kinds, and the kinds of their notices. A server that dies sends some again.
fn events(platform: &Receiver) -> Vec<(String, String)> {
    let event = |received: crate::receiver::Received| {
        let event = received.verified_with(SECRET);
        let data: Value = serde_json::from_str(event.data().as_str()).unwrap();
        (event.id().clone(), (event.kind().to_string(), data["kind"].as_str().unwrap().to_owned()))
    };
    platform.received().into_iter().map(event).collect::<BTreeMap<_, _>>().into_values().collect()
}

async fn a_disabled_endpoint_has_a_notice(engine: Engine) {
    let platform = Receiver::start(Reply::InTurn(vec![StatusCode::OK])).await;
    let settings = format!(
        "gateway-timeout = 5\nnotices-webhook = '{}'\nnotices-secret = '{SECRET}'\nnotices-every = 1",
        platform.url()
    );
    let mut live = Live::start_on(engine, &settings, &[]).await;
    let (own, stranger) = (client(&live, &live.key), client(&live, &live.server.new_key("Other shop", "live")));
    assert_eq!(open(&own).await, []);
    // It takes what comes after its owner mends it.
    let gone = Receiver::start(Reply::InTurn(vec![StatusCode::GONE, StatusCode::OK])).await;
    let params = CreateWebhook::new(gone.url(), Subscription::All).retries(Retries::Standard);
    let endpoint: WebhookId = own.webhooks().create(params).await.unwrap().id;
    live.create(750.0, "BDT").await;
    let disabled = (NoticeKind::EndpointDisabled, endpoint.to_string());
    opens(&own, std::slice::from_ref(&disabled)).await;
    // It stays one notice, also after a restart.
    live.server.crash_and_restart();
    let paid = live.paid(100.0, "USD").await;
    let arguments = ["disputes", "open", &paid, "--amount", "100", "--reference", "CB-1", "--evidence-due"];
    let due = payments_client::Timestamp::from_millis(now() + 2 * 24 * 60 * 60 * 1000).unwrap().to_string();
    live.server.run(&[&arguments[..], &[&due]].concat());
    let disputed = live.payment(&paid).await["dispute"]["id"].as_str().unwrap().to_owned();
    opens(&own, &[disabled.clone(), (NoticeKind::DisputeDue, disputed.clone())]).await;
    let notice = own.account().notices().await.unwrap().pop().unwrap();
    assert_eq!((notice.payment.as_deref(), notice.due_at.map(|it| it.to_string())), (Some(&*paid), Some(due)));
    assert_eq!(open(&stranger).await, []);
    let list = live.server.run(&["notices", "list"]);
    assert_eq!((list.lines().count(), list.contains(endpoint.as_str())), (3, true), "{list}");
    let rows: Value = serde_json::from_str(&live.server.run(&["notices", "list", "--json"])).unwrap();
    assert_eq!(rows["notices"][1]["subject"], *disputed);
    let metrics = live.server.metrics().await;
    for (kind, count) in [("endpoint_disabled", 1), ("dispute_due", 1), ("payout_waiting", 0)] {
        assert!(metrics.contains(&format!("payments_notices_open{{kind=\"{kind}\"}} {count}\n")), "{kind}");
    }

    live.server.run(&["disputes", "close", &disputed, "--as", "won"]);
    opens(&own, std::slice::from_ref(&disabled)).await;
    own.webhooks().update(&endpoint, UpdateWebhook::default().is_active(true)).await.unwrap();
    opens(&own, &[]).await;
    let told = eventually("four events", async || {
        let told = events(&platform);
        (told.len() >= 4).then_some(told)
    })
    .await;
    let of = |event: &str, kind: &str| told.iter().filter(|it| (&*it.0, &*it.1) == (event, kind)).count();
    for kind in ["endpoint_disabled", "dispute_due"] {
        assert_eq!((of("notice.opened", kind), of("notice.closed", kind)), (1, 1), "{told:?}");
    }
}

fn now() -> i64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    i64::try_from(since.as_millis()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_opens_one_notice_and_its_end_closes_it() {
    a_disabled_endpoint_has_a_notice(Engine::Directory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_state_opens_one_notice_and_its_end_closes_it_on_postgresql() {
    a_disabled_endpoint_has_a_notice(Engine::Postgres).await;
}

#[test]
fn a_webhook_for_notices_needs_its_secret_which_is_in_no_argument() {
    let directory = tempfile::tempdir().unwrap();
    for (arguments, expected) in [
        (["--notices-webhook", "https://ops.example/notices"], "need each other"),
        (["--notices-secret", "hush"], "put the key in PAYMENTS_NOTICES_SECRET"),
    ] {
        let mut command = Command::new(server_binary());
        command.args(["serve", "--listen", "127.0.0.1:0", "--data-dir"]).arg(directory.path().join("data"));
        let output = command.args(arguments).output().unwrap();
        let said = text_of(&output);
        assert!(!output.status.success() && said.contains(expected) && !said.contains("hush"), "{said}");
    }
}
