//! Bytes in PostgreSQL 15.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{Duration, Instant},
};

use parking_lot::Mutex;
use test_support::cluster::{client_of, shared_url};
use tokio::time::sleep;

use super::{Closing, NewTables, Postgres, Target};
use crate::{
    StoreError,
    ambient::OperatingSystem,
    bytes::{Bytes, Cell, Decision, View, with_prefix},
};

const FIRST: Cell = Cell(0);

async fn target() -> Target {
    static SCHEMAS: AtomicU32 = AtomicU32::new(0);
    let schema = format!("cells_{}", SCHEMAS.fetch_add(1, Ordering::Relaxed));
    Target::new(&shared_url().await.into(), None).unwrap().with_schema(&schema)
}

/// A server on a database with two cells.
async fn server(target: &Target) -> (Postgres, Closing) {
    let (place, closing) =
        Postgres::start(target.clone(), NewTables { cells: 2, views: "" }, &OperatingSystem, Arc::new(|_, _| ()));
    let prepared = place.prepare(None).await.unwrap();
    place.open(prepared.cells);
    (place, closing)
}

/// A place in a schema.
pub(super) async fn opened(schema: &str) -> (Postgres, Closing) {
    server(&Target::new(&shared_url().await.into(), None).unwrap().with_schema(schema)).await
}

async fn end((place, closing): (Postgres, Closing)) {
    drop(place);
    closing.wait().await;
}

fn writes(writes: &[(&str, Option<&str>)]) -> Decision {
    let writes: Vec<_> = writes.iter().map(|(key, value)| (key.to_string(), value.map(str::to_owned))).collect();
    Box::new(move |view: &mut dyn View| {
        for (key, value) in &writes {
            match value {
                Some(value) => view.put(key.clone().into_bytes(), value.clone().into_bytes()),
                None => view.remove(key.clone().into_bytes()),
            }
        }
        Ok(true)
    })
}

async fn range(place: &Postgres, from: &str, to: &str, is_reversed: bool, at_most: usize) -> Vec<String> {
    let found = place.range(FIRST, from.into()..to.into(), is_reversed, at_most).await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    found.into_iter().flatten().map(|(key, value)| format!("{}={}", text(key), text(value))).collect()
}

#[tokio::test]
async fn values_of_each_table_are_read_as_written_and_a_range_shows_each_once_in_order() {
    let target = target().await;
    let server = server(&target).await;
    let place = &server.0;
    place.commit(FIRST, writes(&[("000/r", Some("1")), ("000:e", Some("1")), ("000*h", Some("1"))])).await.unwrap();
    let more = [("000/r", Some("2")), ("000:e/2", Some("2")), ("000*h", Some("2")), ("000*h1", Some("10"))];
    place.commit(FIRST, writes(&more)).await.unwrap();
    place.commit(FIRST, writes(&[("000*h", Some("3")), ("000*i", Some("4"))])).await.unwrap();
    let keys = ["000*h", "000/r", "000/s", "000*h1", "000:e", "000*g"].map(|key| key.as_bytes().to_vec());
    let values = place.get(FIRST, keys.into()).await.unwrap();
    let values: Vec<_> = values.into_iter().map(|value| value.map(|value| String::from_utf8(value).unwrap())).collect();
    assert_eq!(
        values.iter().map(Option::as_deref).collect::<Vec<_>>(),
        [Some("3"), Some("2"), None, Some("10"), Some("1"), None]
    );

    let all = ["000*h=3", "000*h1=10", "000*i=4", "000/r=2", "000:e=1", "000:e/2=2"];
    assert_eq!(range(place, "", "~", false, 9).await, all);
    assert_eq!(range(place, "", "~", false, 4).await, all[..4]);
    assert_eq!(range(place, "", "~", true, 3).await, ["000:e/2=2", "000:e=1", "000/r=2"]);
    assert_eq!(range(place, "000*", "000+", true, 2).await, ["000*i=4", "000*h1=10"]);
    // Ranges that begin right after a hot entry, or end there.
    assert_eq!(range(place, "000*h\0", "000*z", false, 9).await, ["000*h1=10", "000*i=4"]);
    assert_eq!(range(place, "000*", "000*h\0", false, 9).await, ["000*h=3"]);
    assert_eq!(range(place, "000:e\0", "000:z", false, 9).await, ["000:e/2=2"]);

    place.commit(FIRST, writes(&[("000*h", None), ("000/r", None), ("000:e", None), ("000:f", None)])).await.unwrap();
    assert_eq!(range(place, "", "~", false, 9).await, ["000*h1=10", "000*i=4", "000:e/2=2"]);
    // A key that the same batch removes first is written, whatever was there.
    let again = [("000:e/2", None), ("000:e/2", Some("5")), ("000/r", None), ("000/r", Some("6"))];
    place.commit(FIRST, writes(&again)).await.unwrap();
    assert_eq!(range(place, "000/", "~", false, 9).await, ["000/r=6", "000:e/2=5"]);
    end(server).await;
}

#[tokio::test]
async fn each_cell_has_its_own_values_and_refuses_the_keys_of_others() {
    let target = target().await;
    let server = server(&target).await;
    let place = &server.0;
    let slots: Vec<_> = payments_core::Slot::all().collect();
    assert_eq!(place.cells().unwrap(), [Cell(0), Cell(1)]);
    for (slot, cell) in [(0, 0), (511, 0), (512, 1), (1023, 1)] {
        assert_eq!(place.cell_of(slots[slot]), Cell(cell));
    }
    for cell in place.cells().unwrap() {
        place.commit(cell, writes(&[("all*sum", Some(&cell.0.to_string()))])).await.unwrap();
    }
    for cell in place.cells().unwrap() {
        let found = place.get(cell, vec![b"all*sum".to_vec()]).await.unwrap();
        assert_eq!(found, [Some(cell.0.to_string().into_bytes())]);
    }
    place.commit(Cell(1), writes(&[("200/r", Some("1"))])).await.unwrap();
    for key in ["1ff/r", "400/r", "nothing"] {
        let refused = place.commit(Cell(1), writes(&[("200/r", Some("2")), (key, Some("2"))])).await;
        assert!(matches!(refused, Err(StoreError::Corrupt { .. })), "{key}: {refused:?}");
    }
    assert_eq!(place.get(Cell(1), vec![b"200/r".to_vec()]).await.unwrap(), [Some(b"1".to_vec())]);
    // The error of one change is not that of another.
    let both = tokio::join!(
        place.commit(Cell(1), writes(&[("200/s", Some("1"))])),
        place.commit(Cell(1), writes(&[("000/s", Some("1"))])),
    );
    assert!(both.0.is_ok() && both.1.is_err());
    end(server).await;
}

/// Adds one to a hot entry, and records the value before.
fn count(numbers: &Arc<Mutex<Vec<u64>>>, key: String) -> Decision {
    let last = Arc::new(Mutex::new(None));
    let numbers = Arc::clone(numbers);
    Box::new(move |view: &mut dyn View| {
        let number = view.get(b"000*count")?.map_or(0, |bytes| String::from_utf8_lossy(&bytes).parse().unwrap());
        view.put(b"000*count".to_vec(), (number + 1).to_string().into_bytes());
        view.put(format!("000/{key}").into_bytes(), number.to_string().into_bytes());
        // The last run counts.
        let mut numbers = numbers.lock();
        let before = last.lock().replace(number);
        if let Some(place) = numbers.iter().rposition(|it| Some(*it) == before) {
            numbers.remove(place);
        }
        numbers.push(number);
        Ok(true)
    })
}

#[tokio::test]
async fn servers_on_one_cell_count_without_gaps() {
    let target = target().await;
    let servers = [server(&target).await, server(&target).await];
    let numbers = Arc::default();
    let counting = servers.iter().enumerate().map(|(nth, (place, _))| {
        let numbers = &numbers;
        async move {
            for round in 0..20 {
                let five = (0..5).map(|task| place.commit(FIRST, count(numbers, format!("{nth}/{round}/{task}"))));
                for committed in futures_util::future::join_all(five).await {
                    committed.unwrap();
                }
            }
        }
    });
    futures_util::future::join_all(counting).await;
    let mut found: Vec<u64> = Vec::new();
    for (_, value) in servers[0].0.range(FIRST, with_prefix(b"000/"), false, 999).await.unwrap().into_iter().flatten() {
        found.push(String::from_utf8(value).unwrap().parse().unwrap());
    }
    found.sort_unstable();
    assert_eq!(found, (0..200).collect::<Vec<_>>());
    for server in servers {
        end(server).await;
    }
}

#[tokio::test]
async fn a_batch_takes_one_trip_after_this_servers_own_batch_and_more_after_another_servers() {
    let target = target().await;
    let (one, two) = (server(&target).await, server(&target).await);
    let numbers = Arc::default();
    let trips = async |(place, _): &(Postgres, Closing), key: &str| {
        let before = place.trips();
        place.commit(FIRST, count(&numbers, key.to_owned())).await.unwrap();
        place.trips() - before
    };
    assert_eq!(trips(&one, "1").await, 3, "the fence, the lock, the commit");
    assert_eq!(trips(&one, "2").await, 1);
    assert_eq!(trips(&one, "3").await, 1);
    assert_eq!(trips(&two, "4").await, 3);
    assert_eq!(trips(&one, "5").await, 3, "one trip is refused");
    assert_eq!(trips(&one, "6").await, 2, "it locks for a while");
    assert_eq!(trips(&two, "6").await, 5, "it is refused, locks, meets the key, and locks again");
    end(one).await;
    end(two).await;
}

#[tokio::test]
async fn a_server_that_lost_its_connection_keeps_no_values_and_goes_on() {
    let mut target = target().await;
    target.config.application_name(&target.schema);
    let server = server(&target).await;
    let place = &server.0;
    let numbers = Arc::default();
    place.commit(FIRST, count(&numbers, "1".into())).await.unwrap();
    let client = client_of(&shared_url().await).await;
    let sql = format!(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = '{}' AND query = 'COMMIT'",
        target.schema
    );
    client.batch_execute(&sql).await.unwrap();
    // Meanwhile the value changes.
    let changed = format!("UPDATE {}.entry SET body = '41' WHERE key >= '000*count' AND key < '000*d'", target.schema);
    client.batch_execute(&changed).await.unwrap();
    sleep(Duration::from_millis(50)).await;
    place.commit(FIRST, count(&numbers, "2".into())).await.unwrap();
    assert_eq!(place.get(FIRST, vec![b"000*count".to_vec()]).await.unwrap(), [Some(b"42".to_vec())]);
    end(server).await;
}

#[tokio::test]
async fn changes_that_wait_together_are_committed_except_the_one_that_the_database_refuses() {
    let target = target().await;
    let server = server(&target).await;
    let place = &server.0;
    place.commit(FIRST, writes(&[("000/r", Some("0"))])).await.unwrap();
    // The key is too long for an index, even compressed.
    let mut random = fastrand::Rng::with_seed(1);
    let long: String = (0..9_000).map(|_| random.alphanumeric()).collect();
    let long = format!("000/{long}");
    let (one, two, three) = tokio::join!(
        place.commit(FIRST, writes(&[("000/1", Some("1"))])),
        place.commit(FIRST, writes(&[(&long, Some("2"))])),
        place.commit(FIRST, writes(&[("000/3", Some("3"))])),
    );
    assert!(one.is_ok() && three.is_ok(), "{one:?} {three:?}");
    assert!(matches!(two, Err(StoreError::Unavailable(_))), "{two:?}");
    assert_eq!(range(place, "", "~", false, 9).await, ["000/1=1", "000/3=3", "000/r=0"]);
    end(server).await;
}

#[tokio::test]
async fn a_server_that_stops_within_a_batch_holds_up_others_only_for_seconds() {
    let target = target().await;
    let server = server(&target).await;
    let frozen = client_of(&shared_url().await).await;
    let held = format!(
        "SET idle_in_transaction_session_timeout = '1s'; BEGIN; SELECT FROM {}.cell WHERE cell = 0 FOR UPDATE",
        target.schema
    );
    frozen.batch_execute(&held).await.unwrap();
    let begun = Instant::now();
    server.0.commit(FIRST, writes(&[("000/r", Some("1"))])).await.unwrap();
    assert!(begun.elapsed() > Duration::from_millis(900) && begun.elapsed() < Duration::from_secs(4));
    end(server).await;
}
