//! Settlements: a gateway's statement against the books.

use std::{
    fs,
    io::{BufRead as _, BufReader},
    process::{Command, Stdio},
};

use serde_json::Value;

use super::{ENGINES, live};
use crate::{
    engine::Engine,
    live::Live,
    server::{Server, server_binary, text_of},
};

/// Writes a plain statement. Returns its path.
fn statement(server: &Server, name: &str, rows: &[String]) -> String {
    let path = server.directory.path().join(name);
    let header = "id,kind,reference,gross,fee,net,currency,date".to_owned();
    let lines: Vec<String> = [header].into_iter().chain(rows.iter().cloned()).collect();
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    path.to_str().unwrap().to_owned()
}

fn row(id: &str, reference: &str, gross: &str, fee: &str, net: &str) -> String {
    format!("{id},payment,{reference},{gross},{fee},{net},BDT,2026-03-01")
}

fn import(file: &str) -> [&str; 7] {
    ["settlements", "import", "--gateway", "bkash", "--older-than", "0", file]
}

/// Why an import is refused.
fn refused(server: &Server, arguments: &[&str]) -> String {
    let output = server.try_run(arguments);
    assert!(!output.status.success(), "{}", text_of(&output));
    text_of(&output)
}

/// The sums of the postings to these accounts in taka, in minor units.
fn sums<const N: usize>(server: &Server, accounts: [&str; N]) -> [i64; N] {
    let exported = server.run(&["export", "postings"]);
    let postings: Vec<Value> = exported.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |account| postings.iter().filter(move |it| it["account"] == account && it["currency"] == "BDT");
    accounts.map(|account| of(account).map(|it| it["minor"].as_i64().unwrap()).sum())
}

const ACCOUNTS: [&str; 4] = ["gateway_clearing", "bank", "gateway_cost", "suspense"];

/// The gateway's id of the transaction that paid.
async fn transaction(live: &Live, id: &str) -> String {
    let timeline: Value = live
        .request(reqwest::Method::GET, &format!("/payments/{id}/timeline"))
        .send()
        .await
        .unwrap()
        .json()
        .await
        .unwrap();
    let words = timeline["items"].as_array().unwrap().iter().filter_map(|it| it["description"].as_str());
    let found = words.filter_map(|it| it.split_once("transaction ")).next().unwrap().1;
    found.trim_end_matches('.').to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_statement_is_booked_once_and_compared_with_the_payments() {
    for engine in ENGINES {
        let mut live = Live::start_on(engine, "gateway-timeout = 1", &[]).await;
        let (a, b) = (live.paid(100.0, "BDT").await, live.paid(50.0, "BDT").await);
        let (c, d) = (live.paid(20.0, "BDT").await, live.paid(7.0, "BDT").await);
        let card = live.paid(30.0, "USD").await;
        let by_b = transaction(&live, &b).await;
        let good = [
            row("r1", &a, "100", "1.5", "98.50"),
            row("r2", &by_b, "50", "0.75", "49.25"),
            row("r3", &c, "19", "0", "19"),
            row("r4", "TX9", "7", "0.1", "6.9"),
        ];

        // A file with one wrong row changes nothing.
        for (bad, says) in [
            (row("r5", &d, "7", "0", "6"), "line 6, column \"net\": \"6\" is not the gross less the fee"),
            (row("r5", &d, "7", "0", "7").replace("BDT", "USD"), "row r5: its currency is USD, and that of payment"),
            (row("r5", &card, "30", "0", "30"), "was paid at Stripe, not at bKash"),
            (row("r1", &a, "100", "2", "98"), "row r1 is there twice"),
        ] {
            let file = statement(&live.server, "bad.csv", &[&good[..], &[bad]].concat());
            let error = refused(&live.server, &import(&file));
            assert!(error.contains(says), "{error}");
        }
        assert_eq!(live.server.run(&["settlements", "list", "matched"]), "");
        let before = sums(&live.server, ACCOUNTS);

        let file = statement(&live.server, "good.csv", &good);
        let printed = live.server.run(&import(&file));
        let lines: Vec<&str> = printed.lines().collect();
        assert_eq!(lines[0], format!("matched bkash r1 payment 100 1.5 98.5 BDT 2026-03-01 {a}"));
        assert_eq!(lines[1], format!("matched bkash r2 payment 50 0.75 49.25 BDT 2026-03-01 {b}"));
        assert_eq!(lines[2], format!("differs bkash r3 payment 19 0 19 BDT 2026-03-01 {c} ours is 20"));
        assert_eq!(lines[3], "theirs bkash r4 payment 7 0.1 6.9 BDT 2026-03-01 TX9");
        assert!(lines[4].starts_with(&format!("ours bkash {d} payment 7 BDT ")), "{printed}");
        let counts = "3 matched, 1 of them with another amount; 1 theirs, without a payment of ours; 1 ours, ";
        assert!(lines[5].starts_with(&format!("4 rows, 0 of them imported before: {counts}")), "{printed}");
        let after = sums(&live.server, ACCOUNTS);
        let net = 9_850 + 4_925 + 1_900;
        assert_eq!(after, [before[0] + net + 225, before[1] - net - 690, before[2] - 225, 690]);

        // The same file again changes nothing, with a server or without one. Another amount of a known row is refused.
        let again = live.server.run(&import(&file));
        assert!(again.contains("4 rows, 4 of them imported before"), "{again}");
        assert!(live.server.terminate().success());
        assert_eq!(live.server.run(&import(&file)), again);
        let changed = statement(&live.server, "bad.csv", &[row("r1", &a, "100", "2", "98")]);
        let error = refused(&live.server, &import(&changed));
        assert!(error.contains("row r1: it was imported with another fee, net"), "{error}");
        assert_eq!(sums(&live.server, ACCOUNTS), after);
        live.server.restart();

        // The row without a payment is found.
        let resolve = ["settlements", "resolve", "r4", "--payment", &d];
        assert!(refused(&live.server, &["settlements", "resolve", "r1", "--payment", &d]).contains("is of payment"));
        assert!(refused(&live.server, &["settlements", "resolve", "r9", "--payment", &d]).contains("has row r9"));
        for _ in 0..2 {
            let line = live.server.run(&resolve);
            assert_eq!(line, format!("matched bkash r4 payment 7 0.1 6.9 BDT 2026-03-01 {d}"));
        }
        let last = sums(&live.server, ACCOUNTS);
        assert_eq!(last, [after[0] + 690 + 10, after[1], after[2] - 10, 0]);
        for (list, count) in [("matched", 4), ("theirs", 0), ("ours", 0)] {
            let listed = live.server.run(&["settlements", "list", list]);
            assert_eq!(listed.lines().count(), count, "{list}: {listed}");
        }
        let waiting = live.server.run(&["settlements", "list", "ours", "--older-than", "0"]);
        assert!(waiting.lines().count() == 1 && waiting.contains(&card), "{waiting}");
        assert_eq!(live.server.run(&["export", "settlements", "--format", "csv"]).lines().count(), 5);

        // What bKash owes now is the taka by which the statement differs.
        let report = live.server.run(&["settlements", "report"]);
        let expected = "bkash BDT: 0 owed before + 177 captured - 0 refunded - 0 disputed - 2.35 costs - 173.65 settled = 1 owed \
                        now, as its account says";
        assert_eq!(report.lines().next().unwrap(), expected);
        live.server.run(&["check"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_import_that_is_killed_between_two_batches_is_run_again() {
    for engine in ENGINES {
        let mut live = Live::start_on(engine, "gateway-timeout = 1", &[]).await;
        let id = live.paid(100.0, "BDT").await;
        let mut rows: Vec<String> = (0..6_000).map(|nth| row(&format!("x{nth}"), "TX9", "1", "0", "1")).collect();
        rows.push(row("last", &id, "100", "0", "100"));
        let file = statement(&live.server, "long.csv", &rows);
        let mut command = Command::new(server_binary());
        command.args(import(&file)).stdout(Stdio::piped()).stderr(Stdio::null());
        match live.server.database() {
            Some(url) => command.args(["--database-url", url]),
            None => command.arg("--data-dir").arg(live.server.data()),
        };
        let mut importing = command.spawn().unwrap();
        let mut first = String::new();
        BufReader::new(importing.stdout.take().unwrap()).read_line(&mut first).unwrap();
        assert!(first.starts_with("theirs bkash x0 "), "{first}");
        importing.kill().unwrap();
        importing.wait().unwrap();
        live.server.crash_and_restart();
        let listed = live.server.run(&["settlements", "list", "theirs"]).lines().count();
        assert!((500..6_000).contains(&listed) && listed % 500 == 0, "{listed}");
        live.server.run(&["check"]);
        let printed = live.server.run(&import(&file));
        assert!(printed.contains(": 1 matched, 0 of them with another amount; 6000 theirs"), "{printed}");
        assert_eq!(sums(&live.server, ACCOUNTS), [0, -610_000, 0, 600_000]);
        live.server.run(&["check"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_payouts_of_the_card_processor_are_read_from_its_api() {
    let mut live = live().await;
    let (paid, disputed) = (live.paid(30.0, "USD").await, live.paid(100.0, "USD").await);
    let import = ["settlements", "import", "--gateway", "stripe", "--older-than", "0"];
    let printed = live.server.run(&import);
    assert!(
        printed.ends_with(
            "0 rows, 0 of them imported before: 0 matched, 0 of them with another amount; 0 theirs, without a \
        payment of ours; 2 ours, without a row for more than 0 days"
        ),
        "{printed}"
    );
    let refund = live.request(reqwest::Method::POST, &format!("/payments/{paid}/refund"));
    let refund = refund.header("idempotency-key", "return");
    assert_eq!(refund.json(&serde_json::json!({"amount": 10})).send().await.unwrap().status(), 200);
    live.stripe.program().make_available();
    live.stripe.program().pay_out().unwrap();
    let printed = live.server.run(&import);
    let lines: Vec<&str> = printed.lines().collect();
    assert!(lines[0].starts_with("matched stripe txn_") && lines[0].contains(" refund -10 0 -10 USD "), "{printed}");
    assert!(lines[1].contains(" payment 100 3.2 96.8 USD ") && lines[1].ends_with(&disputed), "{printed}");
    assert!(lines[2].contains(" payment 30 1.17 28.83 USD ") && lines[2].ends_with(&paid), "{printed}");
    assert!(lines[3].starts_with("3 rows, 0 of them imported before: 3 matched"), "{printed}");
    // The server finds the same costs in Stripe's books, and books none twice.
    live.server.crash_and_restart();
    assert!(live.server.run(&import).contains("3 rows, 3 of them imported before"));
    let report = live.server.run(&["settlements", "report", "--json"]);
    let report: Value = serde_json::from_str(&report).unwrap();
    let flows = ["captured", "refunded", "costs", "settled", "owesNow"].map(|name| report[name].as_i64().unwrap());
    assert_eq!((flows, &report["isEqual"]), ([13_000, 1_000, 437, 11_563, 0], &Value::Bool(true)));
    live.server.run(&["check"]);
    let alone = Live::start_on(Engine::Directory, "gateway-timeout = 1", &[]).await;
    let error = refused(&alone.server, &["settlements", "import", "--gateway", "bkash"]);
    assert!(error.contains("bKash has no API for settlements; name a file"), "{error}");
}
