//! The inbox against scripted responses. The crate of the stores tests it against a real server.
#![cfg(feature = "testing")]

use std::sync::{Mutex, PoisonError};

use super::*;
use crate::testing::{FixedClock, Script};

/// A store without tables: what a transaction wrote counts when it commits.
#[derive(Debug, Default)]
struct Memory(Mutex<Option<Row>>);

impl Memory {
    fn with<T>(&self, change: impl FnOnce(&mut Option<Row>) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn stands_at(&self, cursor: &str) -> bool {
        self.with(|row| row.as_ref().is_some_and(|row| row.cursor == cursor))
    }
}

impl Store for Memory {
    type Tx = ();

    async fn prepare(&self) -> std::result::Result<bool, BoxError> {
        Ok(true)
    }

    async fn read(&self, _: &InboxId) -> std::result::Result<Option<Row>, BoxError> {
        Ok(self.with(|row| row.clone()))
    }

    async fn insert(&self, _: &InboxId, cursor: &str) -> std::result::Result<(), BoxError> {
        self.with(|row| *row = Some(Row { cursor: cursor.into(), failures: 0, error: None }));
        Ok(())
    }

    async fn begin(&self, _: &InboxId, from: &str, _: &str) -> std::result::Result<Option<()>, BoxError> {
        Ok(self.stands_at(from).then_some(()))
    }

    async fn commit(&self, (): (), id: &InboxId, to: &str) -> std::result::Result<(), BoxError> {
        self.insert(id, to).await
    }

    async fn roll_back(&self, (): ()) -> std::result::Result<(), BoxError> {
        Ok(())
    }

    async fn fail(&self, _: &InboxId, _: &str, error: &str) -> std::result::Result<(), BoxError> {
        self.with(|row| {
            row.iter_mut().for_each(|row| (row.failures, row.error) = (row.failures + 1, Some(error.into())))
        });
        Ok(())
    }
}

const ACCOUNT: &str = r#"{"workspace":{"id":"ws_1","name":"Shop","slug":"shop","status":"active"},
    "balance":{"bdt":0,"usd":0,"bdt_balance":0,"usd_balance":0},"volume":{"bdt":0,"usd":0,"total_payments":0}}"#;
const UNKNOWN: &str =
    r#"{"statusCode":404,"message":"no event of yours has this id","error":"Not Found","code":"cursor_unknown"}"#;
const PRUNED: &str = r#"{"statusCode":410,"message":"the oldest event is evt_9","error":"Gone"}"#;

fn page(events: &[u32], has_more: bool) -> String {
    let event = |nth: &u32| {
        format!(r#"{{"id":"evt_{nth}","event":"test.ping","created_at":"2026-03-01T00:00:00Z","data":{{}}}}"#)
    };
    let items: Vec<_> = events.iter().map(event).collect();
    let next = events.last().map_or("null".into(), |nth| format!(r#""evt_{nth}""#));
    format!(r#"{{"items":[{}],"hasMore":{has_more},"next":{next}}}"#, items.join(","))
}

fn inbox(key: &str, script: &Script, clock: &FixedClock) -> Inbox<Memory> {
    let client = Client::builder(key).script(script.clone()).clock(clock.clone()).jitter_seed(7).build().unwrap();
    Inbox::new(client, Memory::default()).start(Start::Beginning)
}

async fn nothing(_: &mut (), _: &Event) -> std::result::Result<(), BoxError> {
    Ok(())
}

#[tokio::test]
async fn a_live_inbox_without_its_cursor_stops_and_says_what_to_do_and_a_test_one_begins_anew() {
    for (status, body) in [(404, UNKNOWN), (410, PRUNED)] {
        let script = Script::new().answer(200, ACCOUNT).answer(200, page(&[1], false)).answer(status, body);
        let live = inbox("sk_live_1", &script, &FixedClock::default());
        live.run_once(nothing).await.unwrap();
        let error = live.run(nothing).await.unwrap_err();
        assert!(matches!(&error, InboxError::CursorLost { cursor, .. } if cursor == "evt_1"), "{error:?}");
        assert!(error.to_string().contains("Inbox::restart"), "{error}");
        assert!(live.store.stands_at("evt_1"));

        let script = Script::new().answer(200, ACCOUNT).answer(200, page(&[1], false)).answer(status, body);
        let test = inbox("sk_test_1", &script.answer(200, page(&[2], false)), &FixedClock::default());
        test.run_once(nothing).await.unwrap();
        assert_eq!(test.run_once(nothing).await.unwrap(), 1);
        assert!(test.store.stands_at("evt_2"));
    }
}

#[tokio::test]
async fn an_inbox_reads_at_most_half_of_the_rate_limit() {
    let (limit, clock) = ([("x-ratelimit-limit", "4"), ("x-ratelimit-remaining", "3")], FixedClock::default());
    let mut script = Script::new().answer_with(200, &limit, ACCOUNT);
    for nth in 1..=6 {
        script = script.answer_with(200, &limit, page(&[nth], nth < 6));
    }
    let inbox = inbox("sk_test_1", &script, &clock);
    assert_eq!(inbox.run_once(nothing).await.unwrap(), 6);
    assert_eq!(clock.pauses(), [Duration::from_secs(60); 2], "two pages a minute");
}

#[tokio::test]
async fn the_rate_limit_holds_in_each_minute_whenever_the_servers_begins() {
    let (limit, clock) = ([("x-ratelimit-limit", "4"), ("x-ratelimit-remaining", "3")], FixedClock::default());
    let mut script = Script::new().answer_with(200, &limit, ACCOUNT);
    for nth in 1..=4 {
        script = script.answer_with(200, &limit, page(&[nth], false));
    }
    let inbox = inbox("sk_test_1", &script, &clock);
    inbox.run_once(nothing).await.unwrap();
    clock.advance(Duration::from_secs(59));
    for _ in 2..=4 {
        inbox.run_once(nothing).await.unwrap();
    }
    assert_eq!(clock.pauses(), [1, 59].map(Duration::from_secs), "at 0, 59, 60 and 119 seconds");
}

#[tokio::test]
async fn an_event_that_fails_is_tried_again_with_growing_waits() {
    let clock = FixedClock::default();
    let mut script = Script::new().answer(200, ACCOUNT);
    for _ in 0..9 {
        script = script.answer(200, page(&[1, 2], false));
    }
    // The API refuses the key, which ends the run.
    let inbox = inbox("sk_test_1", &script.answer(401, "{}"), &clock);
    let tries = Mutex::new(Vec::new());
    let fails = async |_: &mut (), event: &Event| -> std::result::Result<(), BoxError> {
        let mut tries = tries.lock().unwrap();
        tries.push(event.id().to_string());
        if event.id().as_str() == "evt_1" { Err(format!("failure {}", tries.len()).into()) } else { Ok(()) }
    };
    let error = inbox.run(fails).await.unwrap_err();
    assert!(matches!(&error, InboxError::Api(error) if error.is_authentication()), "{error:?}");
    assert_eq!(*tries.lock().unwrap(), ["evt_1"; 9], "no later event passes it");
    let row = inbox.store.read(inbox.shared.id.get().unwrap()).await.unwrap().unwrap();
    assert_eq!((row.cursor.as_str(), row.failures, row.error.as_deref()), ("beginning", 9, Some("failure 9")));
    let pauses = clock.pauses();
    for (nth, pause) in pauses.iter().enumerate() {
        let interval = Duration::from_millis(500 << nth).min(Duration::from_secs(60));
        assert!((interval / 2..=interval).contains(pause), "{pauses:?}");
    }
}

#[tokio::test]
async fn a_page_without_events_of_the_keys_app_moves_the_cursor() {
    let others = r#"{"items":[],"hasMore":true,"next":"evt_7"}"#;
    let script = Script::new().answer(200, ACCOUNT).answer(200, others).answer(200, page(&[8], false));
    let inbox = inbox("sk_test_1", &script, &FixedClock::default());
    assert_eq!(inbox.run_once(nothing).await.unwrap(), 1);
    assert!(script.requests().last().unwrap().path.ends_with("after=evt_7"), "{:?}", script.requests());
}
