//! Rate limits that several servers on one store share.
//!
//! A server admits a few requests of a window by itself and reports them soon. Before it admits more, it asks for the count
//! of all servers. So a request is refused only after all servers together have admitted the limit. Each server may admit a
//! twentieth of the limit beyond it.

use std::{collections::HashMap, fmt::Display, hash::Hash, sync::Arc, time::Duration};

use parking_lot::Mutex;
use tokio::{
    sync::{mpsc, oneshot},
    time::{Instant, timeout},
};
use tokio_util::task::AbortOnDropHandle;

use super::windows::{Taken, Windows};
use crate::store::{Report, RequestCounts, SharedWindow, Store, WINDOW};

/// A server admits this fraction of the limit between two reports. It may have admitted the same number again before it knew
/// the other servers' window.
const SHARE: u32 = 40;
/// How many requests may wait for a report. This server alone counts a further one.
const WAITING: usize = 4096;
/// How many keys are reported together.
const TOGETHER: usize = 256;
/// How long a request waits for the other servers' count. Then this server alone counts it.
const PATIENCE: Duration = Duration::from_millis(500);

pub(super) struct SharedWindows<K> {
    /// How many requests of a window this server admits between two reports.
    share: u32,
    asks: mpsc::Sender<Ask<K>>,
    _reporting: AbortOnDropHandle<()>,
}

/// A key to report, and the request that waits for the report, if one does.
struct Ask<K> {
    key: K,
    waiting: Option<oneshot::Sender<Taken>>,
}

pub(super) type Local<K> = Arc<Mutex<Windows<K>>>;

impl<K: Hash + Ord + Clone + Display + Send + 'static> SharedWindows<K> {
    /// Shares windows through a store. `kind` distinguishes these keys from others.
    pub(super) fn new(kind: &'static str, limit: u32, windows: Local<K>, store: Arc<Store>) -> Self {
        let (asks, asked) = mpsc::channel(WAITING);
        let reporter = Reporter { kind, limit, windows, store };
        Self { share: limit / SHARE, asks, _reporting: AbortOnDropHandle::new(tokio::spawn(reporter.run(asked))) }
    }

    /// Counts a request. `None` if the other servers cannot be asked.
    pub(super) async fn take(&self, windows: &Local<K>, key: &K, now: Instant) -> Option<Taken> {
        let taken = windows.lock().take_share(key, now, self.share);
        if let Some((taken, is_report_due)) = taken {
            if is_report_due {
                // If the queue is full, the next request tries again.
                let _ = self.asks.try_send(Ask { key: key.clone(), waiting: None });
            }
            return Some(taken);
        }
        let (waiting, answer) = oneshot::channel();
        self.asks.try_send(Ask { key: key.clone(), waiting: Some(waiting) }).ok()?;
        answer.await.ok()
    }
}

impl<K: Hash + Eq + Clone> Windows<K> {
    /// Counts a request if this server can decide on it alone. Also returns whether a report is due.
    fn take_share(&mut self, key: &K, now: Instant, share: u32) -> Option<(Taken, bool)> {
        self.remove_expired(now);
        let limit = self.limit;
        let (window, evicted) = self.running(key.clone(), now);
        let unknown = window.shared.unreported + window.shared.in_report;
        let left = WINDOW.saturating_sub(now.duration_since(window.begun));
        if window.used >= limit {
            return Some((Taken { remaining: None, left, evicted }, false));
        }
        if unknown >= share {
            return None;
        }
        window.used += 1;
        window.shared.unreported += 1;
        let is_report_due = window.shared.unreported * 2 >= share;
        Some((Taken { remaining: Some(limit - window.used), left, evicted }, is_report_due))
    }

    fn report(&mut self, key: &K, subject: String, waiting: u32, now: Instant) -> Report {
        let (window, _) = self.running(key.clone(), now);
        window.shared.in_report = std::mem::take(&mut window.shared.unreported);
        let (age, admitted) = (now.duration_since(window.begun), window.shared.in_report);
        Report { subject, window: window.shared.id, age, admitted, waiting }
    }

    /// Takes over the count of all servers. Returns the outcome of each request that waits.
    fn settle(&mut self, key: &K, counted: SharedWindow, waiting: u32, now: Instant) -> Vec<Taken> {
        let limit = self.limit;
        if self.running(key.clone(), now).0.shared.id != Some(counted.id) {
            let begun = now.checked_sub(counted.age).unwrap_or(now);
            self.move_begin(key.clone(), begun, now);
        }
        let (window, evicted) = self.running(key.clone(), now);
        window.shared.id = Some(counted.id);
        window.shared.in_report = 0;
        let before = u32::try_from(counted.requests.saturating_sub(waiting.into())).unwrap_or(u32::MAX);
        let admitted = waiting.min(limit.saturating_sub(before));
        window.used = before.saturating_add(admitted).saturating_add(window.shared.unreported).min(limit);
        let left = WINDOW.saturating_sub(now.duration_since(window.begun));
        let remaining = |nth| (nth < admitted).then(|| limit - before - nth - 1);
        (0..waiting).map(|nth| Taken { remaining: remaining(nth), left, evicted }).collect()
    }

    fn take_back(&mut self, key: &K, now: Instant) {
        let shared = &mut self.running(key.clone(), now).0.shared;
        shared.unreported += std::mem::take(&mut shared.in_report);
    }
}

/// Tells the other servers what this one admitted, in rounds.
struct Reporter<K> {
    kind: &'static str,
    limit: u32,
    windows: Local<K>,
    store: Arc<Store>,
}

impl<K: Hash + Ord + Clone + Display> Reporter<K> {
    async fn run(self, mut asked: mpsc::Receiver<Ask<K>>) {
        let mut asks = Vec::new();
        while asked.recv_many(&mut asks, TOGETHER).await > 0 {
            let mut waiting: HashMap<K, Vec<oneshot::Sender<Taken>>> = HashMap::new();
            for ask in asks.drain(..) {
                waiting.entry(ask.key).or_default().extend(ask.waiting);
            }
            let Some(counts) = self.store.request_counts() else { return };
            self.round(counts, waiting).await;
        }
    }

    /// Reports the keys. If that fails, this server alone counts the requests that wait.
    async fn round(&self, counts: &dyn RequestCounts, waiting: HashMap<K, Vec<oneshot::Sender<Taken>>>) {
        let waiting: Vec<_> = waiting.into_iter().collect();
        let now = Instant::now();
        let reports: Vec<_> = {
            let mut windows = self.windows.lock();
            let report = |(key, who): &(K, Vec<_>)| {
                let waiting = u32::try_from(who.len()).unwrap_or(u32::MAX);
                windows.report(key, format!("{}/{key}", self.kind), waiting, now)
            };
            waiting.iter().map(report).collect()
        };
        let counted = timeout(PATIENCE, counts.count(&reports)).await;
        let now = Instant::now();
        let mut windows = self.windows.lock();
        match counted {
            Ok(Ok(counted)) => {
                for (((key, who), report), counted) in waiting.into_iter().zip(reports).zip(counted) {
                    let outcomes = windows.settle(&key, counted, report.waiting, now);
                    for (who, taken) in who.into_iter().zip(outcomes) {
                        // The client may have gone.
                        let _ = who.send(taken);
                    }
                }
            }
            failed => {
                waiting.iter().for_each(|(key, _)| windows.take_back(key, now));
                let error = failed.ok().and_then(Result::err).map(|error| error.to_string());
                tracing::warn!(error, limit = self.limit, "requests are counted by this server alone");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::store::WindowId;

    const SERVERS: usize = 3;

    fn begin(zero: Instant, id: WindowId) -> Instant {
        zero + Duration::from_millis(id.0.unsigned_abs())
    }

    /// The count of one key, as a store has it.
    #[derive(Default)]
    struct Counts(Option<(Instant, u64)>);

    impl Counts {
        fn count(&mut self, report: &Report, zero: Instant, now: Instant) -> SharedWindow {
            let named = report.window.map(|id| begin(zero, id));
            let begun = named.unwrap_or(now - report.age);
            let is_over = |begun: Instant| begun + WINDOW <= now;
            let (waiting, all) = (u64::from(report.waiting), u64::from(report.waiting + report.admitted));
            let new = if is_over(begun) { (now, waiting) } else { (begun, all) };
            let (begun, requests) = match self.0.filter(|(begun, _)| !is_over(*begun)) {
                None => new,
                Some((known, requests)) if known > new.0 => (known, requests + waiting),
                Some((known, requests)) => (known, requests + new.1),
            };
            self.0 = Some((begun, requests));
            let id = WindowId(i64::try_from((begun - zero).as_millis()).unwrap());
            SharedWindow { id, age: now - begun, requests }
        }
    }

    /// Reports in progress: for each server, when it asked, and the store's answer.
    type UnderWay = Vec<Option<(Instant, SharedWindow)>>;

    proptest! {
        #[test]
        fn servers_admit_the_whole_limit_and_each_at_most_a_twentieth_more(
            requests in prop::collection::vec((0..SERVERS, 0_u64..2_000, any::<bool>()), 1..600),
            limit in 1_u32..200,
        ) {
            let share = limit / SHARE;
            let zero = Instant::now();
            let mut now = zero + WINDOW;
            let mut servers: Vec<_> = (0..SERVERS).map(|_| Windows::new(limit, 8)).collect();
            let mut under_way: UnderWay = vec![None; SERVERS];
            let (mut counts, mut admitted) = (Counts::default(), Vec::new());
            for (server, millis, is_slow) in requests {
                now += Duration::from_millis(if millis < 1_900 { millis / 10 } else { millis });
                let windows = &mut servers[server];
                // The answer to an earlier report comes now, or came as late as the reporter waits for it.
                if let Some((asked, counted)) = under_way[server].take() {
                    windows.settle(&0_u8, counted, 0, now.min(asked + PATIENCE));
                }
                let taken = match windows.take_share(&0, now, share) {
                    Some((taken, is_due)) => {
                        if is_due {
                            let report = windows.report(&0, "0".into(), 0, now);
                            let counted = counts.count(&report, zero, now);
                            match is_slow {
                                true => under_way[server] = Some((now, counted)),
                                false => drop(windows.settle(&0, counted, 0, now)),
                            }
                        }
                        taken
                    }
                    None => {
                        let report = windows.report(&0, "0".into(), 1, now);
                        let counted = counts.count(&report, zero, now);
                        windows.settle(&0, counted, 1, now)[0]
                    }
                };
                // After a late answer, a server takes the store's window to begin later than it did.
                let shared = windows.running(0, now).0.shared.id;
                let begun = shared.map_or(now - (WINDOW - taken.left), |id| begin(zero, id));
                let within = |at: &&Instant| **at >= begun;
                let before = u32::try_from(admitted.iter().filter(within).count()).unwrap();
                match taken.remaining {
                    Some(_) => admitted.push(now),
                    None => prop_assert!(before >= limit, "refused after {before} of {limit}"),
                }
            }
            // No minute that begins with a shared window has more admitted requests.
            if let Some((begun, _)) = counts.0 {
                let within = admitted.iter().filter(|at| **at >= begun && **at < begun + WINDOW).count();
                let most = limit + u32::try_from(SERVERS).unwrap() * (limit / 20);
                prop_assert!(u32::try_from(within).unwrap() <= most, "{within} of {limit}");
            }
        }
    }
}
