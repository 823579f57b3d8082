//! The views of a database have the same data as the API, for a role that may read nothing else.

use std::process::Command;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    engine::{Engine, run_sql},
    live::Live,
    receiver::{Receiver, Reply},
    server::eventually,
};

const VIEWS: [&str; 7] = ["payment", "refund", "dispute", "event", "delivery", "transaction", "balance"];

/// Reads from the database as a role.
fn read(database: &str, role: &str, sql: &str) -> String {
    run_sql(&database.replace("postgres@", &format!("{role}@")), sql)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_that_may_read_only_the_views_sees_the_same_data_as_the_api() {
    let live = Live::start_on(Engine::Postgres, "gateway-timeout = 1", &[]).await;
    let receiver = Receiver::start(Reply::Status(StatusCode::OK, String::new())).await;
    let hook = json!({"url": receiver.url(), "events": "*"});
    assert!(live.request(Method::POST, "/webhooks").json(&hook).send().await.unwrap().status().is_success());
    let get = async |path: &str| live.request(Method::GET, path).send().await.unwrap().json::<Value>().await.unwrap();
    // PostgreSQL's `jsonb` cannot have this text or this number.
    let body = r#"{"amount": 7.25, "currency": "USD", "success_url": "https://shop.example/paid",
        "cancel_url": "https://shop.example/cart", "metadata": {"odd": "a\u0000b", "large": "1e400000"}}"#;
    let odd = live.request(Method::POST, "/payments").header("content-type", "application/json").body(body);
    let odd = odd.send().await.unwrap().json::<Value>().await.unwrap();
    let (refunded, paid) = (live.paid(30.0, "USD").await, live.paid(99.99, "BDT").await);
    let refund = live.request(Method::POST, &format!("/payments/{refunded}/refund"));
    assert_eq!(refund.json(&json!({"reason": "too small"})).send().await.unwrap().status(), StatusCode::OK);
    let open = ["disputes", "open", &paid, "--amount", "40", "--reference", "CB-1", "--reason", "never came"];
    live.server.run(&open);
    live.server.run(&["disputes", "withdraw", &paid, "--amount", "40", "--reference", "W-1"]);
    let sent = "SELECT count(*) FROM payments.delivery WHERE status = 'success'";
    let database = live.server.database().unwrap().to_owned();
    // The refunded payment and the disputed one have three events. All three payments have a `payment.created`.
    eventually("every delivery", async || (run_sql(&database, sent) == "7").then_some(())).await;

    let role = "reporter";
    run_sql(&database, &format!("CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA payments TO {role}"));
    for view in VIEWS {
        run_sql(&database, &format!("GRANT SELECT ON payments.{view} TO {role}"));
    }
    let shown = |sql: &str| read(&database, role, sql);
    let account = get("/account").await;
    for (currency, name) in [("BDT", "bdt"), ("USD", "usd")] {
        let of = format!("FROM payments.balance WHERE environment = 'live' AND currency = '{currency}'");
        let volume: f64 = shown(&format!("SELECT volume {of}")).parse().unwrap();
        let balance: f64 = shown(&format!("SELECT balance {of}")).parse().unwrap();
        let shown = (account["volume"][name].as_f64(), account["balance"][name].as_f64());
        assert_eq!((Some(volume), Some(balance)), shown);
    }
    for id in [odd["id"].as_str().unwrap(), &refunded, &paid] {
        let payment = get(&format!("/payments/{id}")).await;
        let of = format!("FROM payments.payment WHERE id = '{id}'");
        let text = |field: &str| payment[field].as_str().unwrap_or_default().to_owned();
        let row = [text("status"), text("rawStatus"), text("currency"), text("merchantTransactionId")].join("|");
        assert_eq!(shown(&format!("SELECT status, raw_status, currency, reference {of}")), row);
        let amount: f64 = shown(&format!("SELECT amount {of}")).parse().unwrap();
        assert_eq!(Some(amount), payment["amount"].as_f64());
        let metadata: Value = serde_json::from_str(&shown(&format!("SELECT metadata {of}"))).unwrap();
        // PostgreSQL's text cannot have this character.
        let expected = payment["metadata"].to_string().replace("\\u0000", "\u{fffd}");
        assert_eq!(metadata, serde_json::from_str::<Value>(&expected).unwrap());
        let created =
            shown(&format!("SELECT to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.MS\"Z\"') {of}"));
        assert_eq!(created, text("createdAt"));
    }
    let refund = format!("{refunded}|30.00|USD|succeeded|too small");
    assert_eq!(shown("SELECT payment, amount, currency, status, reason FROM payments.refund"), refund);
    let dispute = format!("{paid}|40.00|BDT|needs_response|never came|40.00|0.00|");
    let columns = "payment, amount, currency, status, reason, withdrawn, reinstated, closed_at";
    assert_eq!(shown(&format!("SELECT {columns} FROM payments.dispute")), dispute);
    let moved = "SELECT payment, kind, amount, amount - fee - net FROM payments.transaction ORDER BY created_at";
    let expected = [
        format!("{refunded}|paid|30.00|0.00"),
        format!("{paid}|paid|99.99|0.00"),
        format!("{refunded}|refunded|-30.00|0.00"),
        format!("{paid}|dispute_withdrawn|-40.00|0.00"),
    ];
    assert_eq!(shown(moved), expected.join("\n"));
    let events = get("/events?limit=100").await["items"].as_array().unwrap().len();
    assert_eq!(
        shown("SELECT count(*), count(DISTINCT position), min(position) FROM payments.event"),
        format!("{events}|{events}|0")
    );

    // The role can read every column of every row of the views, and nothing else.
    for view in VIEWS {
        let all =
            format!("SELECT count(r::text) > 0 AND bool_and(position('whsec_' IN r::text) = 0) FROM payments.{view} r");
        assert_eq!(shown(&all), "t", "{view}");
        let untold = format!(
            "SELECT count(*) FROM pg_attribute WHERE attrelid = 'payments.{view}'::regclass AND \
            format_type(atttypid, NULL) NOT IN ('text', 'numeric', 'bigint', 'integer', 'boolean', 'json', 'timestamp with time zone')"
        );
        assert_eq!(shown(&untold), "0", "{view} has columns of no type for people");
    }
    for table in ["record", "entry", "batch", "cell", "request_window", "schema_version"] {
        let url = database.replace("postgres@", &format!("{role}@"));
        let denied =
            Command::new("psql").args(["-c", &format!("SELECT FROM payments.{table}"), &url]).output().unwrap();
        assert!(String::from_utf8_lossy(&denied.stderr).contains("permission denied"), "{table}");
    }
}
