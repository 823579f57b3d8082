//! Coverage: what merchants are owed against what bank and gateways hold, and the operator's entries in the books.

use std::time::SystemTime;

use payments_core::{Day, Timestamp};
use serde_json::{Value, json};

use super::ENGINES;
use crate::{
    live::Live,
    server::{Server, eventually, text_of},
};

/// Why a command is refused.
fn refused(server: &Server, arguments: &[&str]) -> String {
    let output = server.try_run(arguments);
    assert!(!output.status.success(), "{}", text_of(&output));
    text_of(&output)
}

/// What `coverage` prints for a currency.
fn line(printed: &str, currency: &str) -> String {
    printed.lines().find(|line| line.starts_with(currency)).unwrap_or_default().to_owned()
}

/// The day in Dhaka so many days ago.
fn day(ago: u16) -> String {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap().as_millis();
    Day::in_dhaka(Timestamp::from_millis(i64::try_from(now).unwrap()).unwrap()).minus(ago).to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_sees_whether_the_money_covers_what_merchants_are_owed() {
    for engine in ENGINES {
        let mut live = Live::start_on(engine, "gateway-timeout = 1", &[]).await;
        let id = live.paid(1000.0, "BDT").await;
        live.paid(20.0, "USD").await;
        let printed = live.server.run(&["coverage"]);
        let taka = "BDT: 0 at the bank + 1000 at gateways - 950 owed to merchants - 0 in payouts = 50, covered; merchants owe 0";
        assert_eq!(line(&printed, "BDT"), taka);

        // Fees are taken, but no more than there are. The workspace is in no other entry.
        let fees = ["books", "fees-taken", "50", "--workspace", "Rahim & Sons", "--reference", "FT1"];
        for _ in 0..2 {
            assert!(live.server.run(&fees).starts_with("fees-taken 50 BDT as FT1, recorded at "));
        }
        let more = ["books", "fees-taken", "0.01", "--workspace", "Rahim & Sons", "--reference", "FT2"];
        assert!(refused(&live.server, &more).contains("more fees than the workspace's payments brought"));
        assert!(refused(&live.server, &[&fees[..2], &["49"], &fees[3..]].concat()).contains("with 50 BDT"));
        assert!(refused(&live.server, &["books", "paid-in", "0", "--reference", "FT1"]).contains("more than 0"));
        assert!(refused(&live.server, &["books", "paid-in", "1", "--reference", "a\nb"]).contains("one line"));
        let covered = line(&live.server.run(&["coverage"]), "BDT");
        assert!(covered.starts_with("BDT: -50 at the bank + 1000 at gateways - 950 owed") && covered.contains("= 0,"));

        // A bank's charge is not covered until the owner pays in. The command says so by its exit code, and a metric.
        live.server.run(&["books", "bank-charge", "1.50", "--reference", "FT3"]);
        assert!(refused(&live.server, &["coverage"]).contains("do not cover what merchants are owed in BDT"));
        let short = "payments_coverage_surplus{currency=\"BDT\"} -150";
        assert!(live.server.metrics().await.contains(short));
        let json: Value = serde_json::from_slice(&live.server.try_run(&["coverage", "--json"]).stdout).unwrap();
        let taka = json!({"currency": "BDT", "owedToMerchants": 95_000, "inTransit": 0, "owedByMerchants": 0, "bank": -5_150,
            "gateways": 100_000, "surplus": -150});
        assert_eq!((&json["covers"][0], &json["day"]), (&taka, &Value::Null));
        live.server.run(&["books", "paid-in", "2", "--reference", "FT4"]);
        live.server.run(&["books", "taken-out", "0.50", "--reference", "FT4"]);
        assert!(live.server.run(&["coverage"]).contains("= 0, covered"));

        // What a merchant owes covers nothing.
        live.server.run(&["disputes", "open", &id, "--amount", "1000", "--reference", "CB-1"]);
        live.server.run(&["disputes", "withdraw", &id, "--amount", "1000", "--reference", "W-1"]);
        assert!(refused(&live.server, &["coverage"]).contains("= -50, NOT covered; merchants owe 50"));

        // The figure of yesterday is kept at the start of a server, for good.
        assert!(refused(&live.server, &["coverage", "--date", &day(0)]).contains("has not ended in Dhaka"));
        assert!(refused(&live.server, &["coverage", "--date", &day(9)]).contains("nothing was kept for"));
        live.server.crash_and_restart();
        let yesterday = ["coverage", "--date", &day(1)];
        let kept = eventually("the figure of yesterday", async || {
            let kept = text_of(&live.server.try_run(&yesterday));
            kept.contains("NOT covered").then_some(kept)
        })
        .await;
        assert!(kept.starts_with(&format!("{}, taken at ", day(1))), "{kept}");
        live.server.run(&["books", "paid-in", "100", "--reference", "FT5"]);
        live.server.crash_and_restart();
        assert_eq!(text_of(&live.server.try_run(&yesterday)), kept);
        assert!(live.server.run(&["coverage"]).contains("= 50, covered"));
        live.server.run(&["check"]);
        let postings = live.server.run(&["export", "postings"]);
        let sum = |account: &str| -> i64 {
            let postings = postings.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            let of = postings.filter(|it| it["account"] == account && it["currency"] == "BDT");
            of.map(|it| it["minor"].as_i64().unwrap()).sum()
        };
        assert_eq!(["bank", "owner", "platform_fee"].map(sum), [-5_000, 10_150, 0]);
    }
}
