//! Exports of payments, deliveries, refunds and ledger postings.

use reqwest::Method;
use serde_json::{Value, json};

use crate::{
    check::filled,
    server::{Server, payment_of},
};

fn export(server: &Server, arguments: &[&str]) -> String {
    server.run(&[&["export"], arguments].concat())
}

#[tokio::test]
async fn exported_json_lines_equal_the_api_with_and_without_a_running_server() {
    let mut server = filled().await;
    let offline = export(&server, &["payments"]);
    server.restart();
    assert_eq!(export(&server, &["payments"]), offline);
    let ids: Vec<Value> =
        offline.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()["id"].take()).collect();
    assert_eq!(ids.len(), 4);
    for (line, id) in offline.lines().zip(&ids) {
        let shown = server.request(Method::GET, &format!("/payments/{}", id.as_str().unwrap())).send().await.unwrap();
        assert_eq!(shown.text().await.unwrap(), line);
    }
    assert_eq!(export(&server, &["deliveries"]).lines().count(), 6);
    assert_eq!(export(&server, &["refunds"]), "");
    let leftovers = std::fs::read_dir(server.data()).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(!leftovers.into_iter().any(|name| name.to_string_lossy().starts_with("copy-")));
}

#[tokio::test]
async fn exported_postings_sum_to_zero_and_a_time_range_filters_them() {
    let server = filled().await;
    let csv = export(&server, &["postings", "--format", "csv"]);
    let mut rows = csv::Reader::from_reader(csv.as_bytes());
    let head: Vec<_> = rows.headers().unwrap().iter().map(str::to_owned).collect();
    assert_eq!(head, ["at", "payment", "developerId", "environment", "account", "amount", "minor", "currency"]);
    let rows: Vec<csv::StringRecord> = rows.records().map(Result::unwrap).collect();
    assert_eq!(rows.len(), 6);
    assert_eq!(rows.iter().map(|row| row[6].parse::<i64>().unwrap()).sum::<i64>(), 0);
    assert_eq!((&rows[0][4], &rows[0][5], &rows[0][6]), ("gateway_clearing", "-100.5", "-10050"));
    let from_second = &rows[3][0];
    let later = export(&server, &["postings", "--since", from_second]);
    assert_eq!(later.lines().count(), 3);
    let earlier = export(&server, &["postings", "--until", from_second]);
    assert_eq!(earlier.lines().count(), 3);
    for (flag, date, lines) in
        [("--since", "1970-01-01", 6), ("--until", "1970-01-01", 0), ("--since", "9999-01-01", 0)]
    {
        assert_eq!(export(&server, &["postings", flag, date]).lines().count(), lines, "{flag} {date}");
    }
}

#[tokio::test]
async fn csv_export_escapes_spreadsheet_formulas() {
    let server = Server::start();
    let mut payment = payment_of(&json!(1));
    payment["description"] = json!("=HYPERLINK(\"https://evil.example\"), \"tea\"");
    server.create(&payment).await;
    let csv = export(&server, &["payments", "--format", "csv"]);
    let row = csv::Reader::from_reader(csv.as_bytes()).records().next().unwrap().unwrap();
    assert_eq!(&row[12], "'=HYPERLINK(\"https://evil.example\"), \"tea\"");
    assert!(export(&server, &["payments"]).contains("\"description\":\"=HYPERLINK"));
}
