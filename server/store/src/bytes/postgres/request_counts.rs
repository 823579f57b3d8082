//! Counts requests in rows that all servers share.

use std::time::Duration;

use async_trait::async_trait;

use super::{Postgres, reads::Rows as _};
use crate::{Report, RequestCounts, Result, SharedWindow, StoreError, WINDOW, WindowId};

/// If the window of a report has ended, its admitted requests count nowhere, and its waiting requests begin a new
/// window. A window that begins a whole window in the future has ended too: the database's clock went back.
const COUNT: &str = "WITH clock AS (SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now), \
    report AS (SELECT k.*, coalesce(k.begun, now - k.age) AS since, now FROM clock, \
    unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[], $5::bigint[]) \
    k (subject, begun, age, admitted, waiting)), \
    counted AS (INSERT INTO request_window AS w (cell, subject, begun_at, requests, waiting) \
    SELECT 0, subject, CASE WHEN abs(now - since) >= $6 THEN now ELSE since END, \
    CASE WHEN abs(now - since) >= $6 THEN waiting ELSE admitted + waiting END, waiting FROM report ORDER BY subject \
    ON CONFLICT (subject, cell) DO UPDATE SET waiting = excluded.waiting, \
    begun_at = CASE WHEN abs((SELECT now FROM clock) - w.begun_at) >= $6 THEN excluded.begun_at ELSE w.begun_at END, \
    requests = CASE WHEN abs((SELECT now FROM clock) - w.begun_at) >= $6 THEN excluded.requests \
    WHEN w.begun_at > excluded.begun_at THEN w.requests + excluded.waiting ELSE w.requests + excluded.requests END \
    RETURNING subject, begun_at, requests) \
    SELECT begun_at, greatest(now - begun_at, 0), requests FROM counted, clock ORDER BY subject";

const DROP: &str = "DELETE FROM request_window WHERE cell = 0 \
    AND begun_at < (extract(epoch FROM clock_timestamp()) * 1000)::bigint - $1";

impl Postgres {
    /// Drops the counts of ended windows.
    pub(super) async fn drop_old_counts(&self) -> Result<()> {
        self.readers.rows(DROP, &[&millis(WINDOW)]).await.map(drop)
    }
}

#[async_trait]
impl RequestCounts for Postgres {
    async fn count(&self, reports: &[Report]) -> Result<Vec<SharedWindow>> {
        let column = |of: fn(&Report) -> i64| reports.iter().map(of).collect::<Vec<_>>();
        let subjects: Vec<_> = reports.iter().map(|report| report.subject.as_str()).collect();
        let begun: Vec<_> = reports.iter().map(|report| report.window.map(|window| window.0)).collect();
        let ages = column(|report| millis(report.age));
        let (admitted, waiting) = (column(|report| report.admitted.into()), column(|report| report.waiting.into()));
        let length = millis(WINDOW);
        let rows = self.readers.rows(COUNT, &[&subjects, &begun, &ages, &admitted, &waiting, &length]).await?;
        // The rows come in the order of the subjects.
        let mut places: Vec<_> = (0..reports.len()).collect();
        places.sort_by_key(|place| subjects[*place]);
        let mut windows = vec![None; reports.len()];
        for (row, place) in rows.iter().zip(places) {
            let age: i64 = row.try_get(1)?;
            windows[place] = Some(SharedWindow {
                id: WindowId(row.try_get(0)?),
                age: Duration::from_millis(age.unsigned_abs()),
                requests: row.try_get::<_, i64>(2)?.unsigned_abs(),
            });
        }
        let missing = || StoreError::unavailable("the database counted other requests than asked");
        windows.into_iter().map(|window| window.ok_or_else(missing)).collect()
    }
}

/// Milliseconds, as a column holds them.
pub(super) fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::{super::tests::opened, *};
    use crate::bytes::Bytes;

    fn report(subject: &str, window: Option<WindowId>, seconds_ago: u64, admitted: u32, waiting: u32) -> Report {
        Report { subject: subject.into(), window, age: Duration::from_secs(seconds_ago), admitted, waiting }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn servers_count_the_requests_of_a_window_together() {
        let (store, closing) = opened("request_counts").await;
        let one = async |report: Report| store.count(&[report]).await.unwrap()[0];

        assert!(Bytes::request_counts(&store).is_some());
        // The reports come back in their order, each with its window.
        let first = store.count(&[report("b", None, 10, 3, 1), report("a", None, 0, 0, 1)]).await.unwrap();
        assert_eq!((first[0].requests, first[1].requests), (4, 1));
        assert_eq!((first[0].age.as_secs(), first[1].age.as_secs()), (10, 0));
        let id = first[0].id;

        // Another server, whose first request came later, joins the window.
        let joined = one(report("b", None, 5, 2, 0)).await;
        assert_eq!((joined.requests, joined.id), (6, id));
        // Requests that a server admitted before the window do not count in it.
        let before = one(report("b", None, 30, 5, 1)).await;
        assert_eq!((before.requests, before.id), (7, id));
        // A server that knows the window counts in it, whatever its clock says.
        let known = one(report("b", Some(id), 12, 2, 1)).await;
        assert_eq!((known.requests, known.id), (10, id));

        // An ended window begins anew, and so does one that was dropped.
        let over = one(report("b", Some(WindowId(id.0 - 60_000)), 61, 9, 2)).await;
        assert_eq!((over.requests, over.id), (12, id), "what waits belongs to the running window");
        store.readers.rows("UPDATE request_window SET begun_at = begun_at - 60000", &[]).await.unwrap();
        let anew = one(report("b", None, 2, 3, 1)).await;
        assert_eq!((anew.requests, anew.age.as_secs()), (4, 2));
        let forgotten = one(report("c", Some(WindowId(id.0 - 70_000)), 70, 9, 2)).await;
        assert_eq!((forgotten.requests, forgotten.age.as_secs()), (2, 0));

        // The database's clock goes back by ten hours.
        store
            .readers
            .rows("UPDATE request_window SET begun_at = begun_at + 36000000 WHERE subject <> 'a'", &[])
            .await
            .unwrap();
        let back = one(report("b", Some(WindowId(anew.id.0 + 36_000_000)), 3, 2, 1)).await;
        assert_eq!((back.requests, back.age.as_secs()), (1, 0), "what waits begins a window");
        let back = one(report("c", None, 1, 2, 1)).await;
        assert_eq!((back.requests, back.age.as_secs()), (3, 1));

        store.drop_old_counts().await.unwrap();
        let left = store.readers.rows("SELECT subject FROM request_window ORDER BY 1", &[]).await.unwrap();
        let left: Vec<String> = left.iter().map(|row| row.get(0)).collect();
        assert_eq!(left, ["b", "c"], "a window that is over is removed");
        drop(store);
        closing.wait().await;
    }
}
