//! The operator's side of payouts: approval, the bank's file and its answers, and the limit of refunds.

use std::{
    fs::{self, File, Permissions},
    os::{fd::OwnedFd, unix::fs::PermissionsExt},
    process::{Command, Stdio},
};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{
    ENGINES,
    platform::{A_DAY_AND_AN_HOUR, KEY, NUMBER, Platform},
};
use crate::{
    engine::Engine,
    live::Live,
    server::{assert_nowhere, eventually, server_binary, text_of},
};

const HEADER: &str = "payout,amount,currency,kind,holder,institution,number,reference";

/// The bank's file of a payout.
fn file_of(payout: &str, amount: &str) -> String {
    format!("{HEADER}\n{payout},{amount},BDT,bank_account,\"'=Karim, Stores\",010271234,{NUMBER},{payout}")
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_pays_merchants_and_records_what_the_bank_says() {
    for engine in ENGINES {
        let mut it = Platform::start(engine).await;
        it.live.paid(1000.0, "BDT").await;
        it.put_destination().await;
        let first = it.request(json!({"currency": "BDT", "amount": 300})).await;
        assert_eq!(it.books(), [65_000, 30_000, 0], "95 % less the payout");
        let listed = it.run(&["list"]);
        let line = listed.lines().nth(1).unwrap();
        assert!(line.starts_with(&format!("{first} ws_")), "{line}");
        let words = " 300 BDT requested bank_account \"=Karim, Stores\" 010271234 ...0123 ";
        assert!(line.contains(words) && !listed.contains(NUMBER), "{line}");

        // Four eyes: the merchant's key is not another person.
        let key = line.rsplit(' ').next().unwrap();
        assert!(key.starts_with("key_"), "{line}");
        assert!(it.refused(&["approve", &first, "--by", key]).contains("somebody else must"));
        assert!(it.refused(&["paid", &first, "--reference", "FT1"]).contains("is requested cannot become paid"));
        for _ in 0..2 {
            assert_eq!(it.run(&["approve", &first, "--by", "Asha"]), format!("{first} approved: 300 BDT"));
        }

        // Nothing goes to a destination that is new.
        let output = it.output(&["send", "--batch", "b1"]);
        let said = text_of(&output);
        assert!(
            output.status.success() && said.contains(&format!("{first} stays approved: the payout's destin")),
            "{said}"
        );
        assert_eq!(String::from_utf8(output.stdout).unwrap().trim_end(), HEADER);
        assert_eq!(it.status(&first).await, "approved");

        // The first command marks the payout, and nobody gets its file.
        it.clock.set(A_DAY_AND_AN_HOUR);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let unread =
            it.command(&["send", "--batch", "b1"]).stdout(Stdio::from(OwnedFd::from(writer))).output().unwrap();
        assert!(!unread.status.success(), "{}", text_of(&unread));
        it.live.server.kill();
        if engine == Engine::Directory {
            let other =
                it.command(&["send", "--batch", "b1"]).env("PAYMENTS_PAYOUT_KEY", "x".repeat(40)).output().unwrap();
            assert!(text_of(&other).contains("encrypted under another key"), "{}", text_of(&other));
            assert_eq!(it.run(&["send", "--batch", "b1"]), file_of(&first, "300"), "without a server");
        }
        it.restart();
        for _ in 0..2 {
            assert_eq!(it.run(&["send", "--batch", "b1"]), file_of(&first, "300"));
            assert_eq!(it.run(&["send", "--batch", "b2"]), HEADER, "nothing is sent twice");
        }
        assert_eq!(it.status(&first).await, "sending");
        assert!(it.refused(&["cancel", &first, "--reason", "a typo"]).contains("is sending cannot become cancelled"));
        let (status, second) = it.post("/payouts", json!({"currency": "BDT"})).await;
        assert_eq!((status, &second["code"]), (StatusCode::CONFLICT, &json!("payout_in_progress")));
        assert_eq!(it.books(), [65_000, 30_000, 0]);

        // A file with one wrong row changes nothing.
        let failed = format!("{first},failed,,no such account");
        for (bad, says) in [
            ("po_1,paid,FT2,".to_owned(), "line 3, column \"status\": \"po_1\": no payout has this id"),
            (format!("{first},paid,,"), "line 3, column \"reference\": must not be empty"),
            (format!("{first},paid,FT2,"), "line 3, column \"payout\""),
        ] {
            let error = it.refused(&["results", &it.answers(&[failed.clone(), bad])]);
            assert!(error.contains(says), "{error}");
        }
        assert_eq!(it.status(&first).await, "sending");
        let answers = it.answers(std::slice::from_ref(&failed));
        for _ in 0..2 {
            assert_eq!(it.run(&["results", &answers]), format!("{first} failed: 300 BDT"));
            assert_eq!(it.books(), [95_000, 0, 0]);
        }

        // A new payout is a new batch, and is returned. The bank paid the first one after all.
        let second = it.request(json!({"currency": "BDT"})).await;
        it.run(&["approve", &second, "--by", "Asha"]);
        assert_eq!(it.run(&["send", "--batch", "b1"]), file_of(&first, "300"), "a batch gets no payout later");
        assert_eq!(it.run(&["send", "--batch", "b3"]), file_of(&second, "940"));
        let answers = it.answers(&[format!("{second},paid,FT3,")]);
        for _ in 0..2 {
            assert_eq!(it.run(&["results", &answers]), format!("{second} paid: 940 BDT"));
        }
        assert_eq!(it.books(), [1_000, 0, 94_000]);
        it.run(&["paid", &first, "--reference", "FT1-late"]);
        assert_eq!(it.books(), [-29_000, 0, 124_000]);
        for _ in 0..2 {
            assert_eq!(it.run(&["returned", &second, "--reason", "closed"]), format!("{second} returned: 940 BDT"));
        }
        assert_eq!(
            it.run(&["results", &answers]),
            format!("{second} returned: 940 BDT"),
            "an old file changes nothing"
        );
        assert_eq!(it.books(), [65_000, 0, 30_000]);
        assert!(it.refused(&["failed", &first, "--reason", "x"]).contains("is paid cannot become failed"));
        assert!(it.run(&["list", "--status", "returned"]).contains(&second));
        assert_eq!(it.run(&["list"]), "");

        // A payout whose outcome nobody knows is not sent again.
        let third = it.request(json!({"currency": "BDT", "amount": 5})).await;
        it.run(&["approve", &third, "--by", "Asha"]);
        it.run(&["send", "--batch", "b4"]);
        it.run(&["unknown", &third, "--reason", "the bank is silent"]);
        assert_eq!(it.run(&["send", "--batch", "b5"]), HEADER);
        assert_eq!(it.books(), [64_500, 500, 30_000]);
        it.run(&["failed", &third, "--reason", "not paid"]);
        let fourth = it.request(json!({"currency": "BDT", "amount": 5})).await;
        it.run(&["cancel", &fourth, "--reason", "a typo"]);
        assert_eq!(it.books(), [65_000, 0, 30_000]);
        it.live.server.kill();
        assert_nowhere(NUMBER, it.live.server.directory.path());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_schedule_requests_a_payout_when_its_day_begins_and_the_policy_approves_small_ones() {
    let mut it = Platform::start_with(Engine::Directory, "payout-without-approval = ['BDT=1000']").await;
    it.live.paid(1000.0, "BDT").await;
    it.put_destination().await;
    let schedule = json!({"currency": "BDT", "interval": "daily", "minimum": 500});
    let (status, set) = it.post("/payouts/schedules", schedule).await;
    assert_eq!(status, StatusCode::OK, "{set}");
    assert_eq!(it.run(&["list"]), "", "its day has not begun");
    it.clock.set(A_DAY_AND_AN_HOUR);
    it.restart();
    let listed = eventually("the scheduled payout", async || {
        Some(it.run(&["list", "--status", "approved"])).filter(|listed| !listed.is_empty())
    })
    .await;
    assert!(listed.contains(" 940 BDT approved ") && listed.ends_with(" platform"), "{listed}");
    assert_eq!(it.books(), [1_000, 94_000, 0]);
    let payout = listed.lines().nth(1).unwrap().split(' ').next().unwrap().to_owned();
    assert_eq!(it.run(&["send", "--batch", "b1"]), file_of(&payout, "940"));
    it.run(&["paid", &payout, "--reference", "FT1"]);

    // The next day has nothing to pay: less than the minimum is available.
    it.live.paid(500.0, "BDT").await;
    let begun = it.next_payout().await;
    it.clock.set(2 * A_DAY_AND_AN_HOUR);
    it.restart();
    eventually("the day after", async || (it.next_payout().await != begun).then_some(())).await;
    assert_eq!(it.run(&["list"]), "");
}

#[test]
fn the_key_for_numbers_is_long_and_in_no_argument() {
    let directory = tempfile::tempdir().unwrap();
    let run = |variable: Option<&str>, arguments: &[&str]| {
        let mut command = Command::new(server_binary());
        command.args(arguments).arg("--data-dir").arg(directory.path().join("data"));
        text_of(&command.envs(variable.map(|key| ("PAYMENTS_PAYOUT_KEY", key))).output().unwrap())
    };
    for arguments in [&["--payout-key", "hush"][..], &["payouts", "send", "--batch", "b", "--payout-key=hush"]] {
        let said = run(None, arguments);
        assert!(said.contains("put the key in PAYMENTS_PAYOUT_KEY") && !said.contains("hush"), "{said}");
    }
    let said = run(Some("hush"), &["serve", "--listen", "127.0.0.1:0"]);
    assert!(said.contains("must have at least 32 characters") && !said.contains("hush"), "{said}");
    let twice = ["serve", "--listen", "127.0.0.1:0", "--payout-reserve", "BDT=1,BDT=2"];
    assert!(run(None, &twice).contains("--payout-reserve names one thing twice"));
    let file = directory.path().join("payments.toml");
    fs::write(&file, format!("payout-key = '{KEY}'")).unwrap();
    File::open(&file).unwrap().set_permissions(Permissions::from_mode(0o644)).unwrap();
    let said = run(None, &["--config", file.to_str().unwrap(), "--listen", "127.0.0.1:0"]);
    assert!(said.contains("run chmod 600 on it"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn refunds_do_not_overdraw_a_balance_beyond_the_limit() {
    for engine in ENGINES {
        let settings = "gateway-timeout = 1\nrefund-overdraft = ['BDT=5', 'USD=5']";
        let live = Live::start_on(engine, settings, &[]).await;
        for currency in ["BDT", "USD"] {
            let mut paid = Vec::new();
            for _ in 0..4 {
                paid.push(live.paid(100.0, currency).await);
            }
            for id in &paid[..2] {
                live.server.run(&["disputes", "open", id, "--amount", "100", "--reference", "CB-1"]);
                live.server.run(&["disputes", "withdraw", id, "--amount", "100", "--reference", "W-1"]);
            }
            // 180 is left. Both refunds together would take 190.
            let refund = async |id: &str, body: Value| {
                let request = live.request(Method::POST, &format!("/payments/{id}/refund"));
                let key = format!("{id}-{body}").replace(['{', '}', '"'], "");
                let answer = request.header("idempotency-key", key).json(&body).send().await.unwrap();
                (answer.status(), answer.json::<Value>().await.unwrap()["code"].clone())
            };
            let (one, other) = tokio::join!(refund(&paid[2], json!({})), refund(&paid[3], json!({})));
            let refused = (StatusCode::CONFLICT, json!("refund_overdraws_balance"));
            let made = (StatusCode::OK, Value::Null);
            assert!([&one, &other].contains(&&refused) && [&one, &other].contains(&&made), "{one:?} {other:?}");
            let rest = if one == refused { &paid[2] } else { &paid[3] };
            assert_eq!(refund(rest, json!({})).await, refused);
            assert_eq!(refund(rest, json!({"amount": 90})).await, made);
        }
        live.server.run(&["check"]);
    }
}
