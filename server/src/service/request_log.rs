//! The log of each developer's requests: noted in memory, and stored every two seconds for all developers together.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use payments_core::{ErrorCode, LoggedRequest, RequestPage, RequestQuery};
use prometheus_client::metrics::counter::Counter;
use tokio::{task::JoinSet, time::sleep};

use super::{Caller, Result, Service, retry_on_conflict};
use crate::{
    domain::{LogPart, PART, Place, Scope},
    store::{Change, Write},
};

/// How often requests are stored. A server that is killed loses what it has noted since.
const EVERY: Duration = Duration::from_secs(2);
/// How many requests of one scope are noted between two writes, so that no scope delays another's log.
const MAX_OF_SCOPE: usize = 100;
/// How many requests of all scopes together are noted.
const MAX_NOTED: usize = 10_000;
/// How many scopes' requests are stored at once, so that they share commits.
const AT_ONCE: usize = 32;
/// How many parts one request for the log reads at most.
const MAX_PARTS_READ: usize = 32;

/// The requests noted since they were last stored.
#[derive(Default)]
pub struct RequestLog {
    noted: Mutex<Noted>,
    not_logged: Counter,
}

#[derive(Default)]
struct Noted {
    scopes: HashMap<Scope, Vec<LoggedRequest>>,
    count: usize,
}

impl RequestLog {
    /// A log that counts the requests for which it had no room.
    pub fn new(not_logged: Counter) -> Self {
        Self { noted: Mutex::default(), not_logged }
    }

    /// An empty log of another store, with the same counter.
    pub(super) fn another(&self) -> Self {
        Self::new(self.not_logged.clone())
    }

    /// Notes a request if there is room, and calls `request` only then. Without room, a failed request replaces the scope's last
    /// successful one.
    pub fn note(&self, scope: &Scope, status: u16, request: impl FnOnce() -> LoggedRequest) {
        let mut noted = self.noted.lock();
        let Noted { scopes, count } = &mut *noted;
        let has_room = *count < MAX_NOTED;
        let of_scope = match scopes.get_mut(scope) {
            Some(of_scope) => of_scope,
            None if has_room => scopes.entry(scope.clone()).or_default(),
            None => {
                self.not_logged.inc();
                return;
            }
        };
        if has_room && of_scope.len() < MAX_OF_SCOPE {
            of_scope.push(request());
            *count += 1;
            return;
        }
        self.not_logged.inc();
        if status >= 400
            && let Some(last) = of_scope.iter().rposition(|noted| noted.status < 400)
        {
            of_scope.remove(last);
            of_scope.push(request());
        }
    }

    /// Notes a request beyond its key's rate limit. The same requests of one second share a line.
    pub fn note_throttled(&self, scope: &Scope, request: LoggedRequest) {
        fn cause(of: &LoggedRequest) -> (u16, Option<&ErrorCode>, &str, i64) {
            (of.status, of.error.as_ref(), &of.key_last4, of.created_at.as_millis().div_euclid(1000))
        }
        let mut noted = self.noted.lock();
        let mut of_scope = noted.scopes.get_mut(scope).into_iter().flatten().rev();
        if let Some(line) = of_scope.find(|noted| cause(noted) == cause(&request)) {
            line.count = Some(line.count.unwrap_or(1).saturating_add(1));
            return;
        }
        drop(noted);
        self.note(scope, request.status, || request);
    }

    /// The requests of each scope, with the scopes sorted so that a simulation always sees the same order.
    fn take(&self) -> Vec<(Scope, Vec<LoggedRequest>)> {
        let mut scopes: Vec<_> = std::mem::take(&mut *self.noted.lock()).scopes.into_iter().collect();
        scopes.sort_unstable_by(|(one, _), (other, _)| one.key().cmp(&other.key()));
        scopes
    }
}

impl Service {
    /// Stores what was noted every two seconds. Never returns.
    pub async fn store_request_log(self: Arc<Self>) {
        loop {
            sleep(EVERY).await;
            self.store_logged_requests().await;
        }
    }

    /// Stores the noted requests. Those that cannot be stored are lost: a log is no reason to stop.
    pub async fn store_logged_requests(self: &Arc<Self>) {
        let mut storing = JoinSet::new();
        for (scope, requests) in self.request_log.take() {
            if storing.len() == AT_ONCE {
                storing.join_next().await;
            }
            let service = Arc::clone(self);
            storing.spawn(async move {
                if let Err(error) = retry_on_conflict(|| service.log(&scope, &requests)).await {
                    service.request_log.not_logged.inc_by(requests.len() as u64);
                    tracing::warn!(%error, requests = requests.len(), "some requests of a developer were not logged");
                }
            });
        }
        while storing.join_next().await.is_some() {}
    }

    async fn log(&self, scope: &Scope, requests: &[LoggedRequest]) -> Result<()> {
        let stored = self.store.log_part(scope, Place::Open).await?;
        let version = stored.as_ref().map_or(0, |open| open.version + 1);
        let (full, open) = stored.unwrap_or_else(|| LogPart::first(scope.clone())).with(requests.to_vec());
        let mut writes = vec![Write::LogPart(Box::new(LogPart { version, ..open }))];
        for part in full {
            let replaced = self.store.log_part(scope, part.place).await?;
            let version = replaced.map_or(0, |replaced| replaced.version + 1);
            writes.push(Write::LogPart(Box::new(LogPart { version, ..part })));
        }
        Ok(self.commit(Change { writes, ..Change::default() }).await?)
    }

    /// A part of the log of the caller's scope, newest first.
    pub async fn requests(&self, caller: &Caller, query: &RequestQuery) -> Result<RequestPage> {
        let scope = &caller.scope;
        let mut page = RequestPage::default();
        let oldest = self.settings.retention.oldest_request(self.ambient.now());
        let Some(mut part) = self.store.log_part(scope, Place::Open).await? else { return Ok(page) };
        if let Some(number) = query.before.map(|before| before.saturating_sub(1) / PART as u64)
            && number < part.number
        {
            match self.full_part(scope, number).await? {
                Some(asked) => part = asked,
                None => return Ok(page),
            }
        }
        for _ in 0..MAX_PARTS_READ {
            for (nth, request) in part.requests.iter().enumerate().rev() {
                let position = part.position(nth);
                if query.before.is_some_and(|before| position >= before) {
                    continue;
                }
                if request.created_at < oldest {
                    return Ok(RequestPage { has_more: false, next: None, ..page });
                }
                if page.items.len() == query.limit() {
                    return Ok(RequestPage { has_more: true, next: Some((position + 1).to_string()), ..page });
                }
                if query.includes(request) {
                    page.items.push(request.clone());
                }
            }
            if part.place != Place::Open && part.requests.is_empty() {
                return Ok(page);
            }
            let Some(number) = part.number.checked_sub(1) else { return Ok(page) };
            part = match self.full_part(scope, number).await? {
                Some(older) => older,
                None => return Ok(page),
            };
        }
        page.has_more = true;
        page.next = Some(part.position(PART).to_string());
        Ok(page)
    }

    /// A full part; `None` if another one has taken its place.
    pub(super) async fn full_part(&self, scope: &Scope, number: u64) -> Result<Option<LogPart>> {
        let found = self.store.log_part(scope, Place::of(number)).await?;
        Ok(found.filter(|part| part.number == number))
    }
}

#[cfg(test)]
mod tests {
    use payments_core::{Environment, Timestamp, UnknownFields};

    use super::*;
    use crate::service::in_memory::{caller, service};

    fn request(nth: u64, status: u16) -> LoggedRequest {
        LoggedRequest {
            id: format!("req_{nth}"),
            method: "GET".into(),
            path: "/api/v1/payments".into(),
            status,
            error: None,
            key_last4: "cafe".into(),
            duration_ms: 1,
            created_at: Timestamp::from_millis(1_900_000_000_000).unwrap(),
            count: None,
            unknown: UnknownFields::new(),
        }
    }

    fn note(service: &Service, developer: &str, request: LoggedRequest) {
        service.request_log.note(&scope(developer), request.status, || request);
    }

    fn scope(developer: &str) -> Scope {
        Scope { developer_id: developer.parse().unwrap(), environment: Environment::Test }
    }

    fn query(before: Option<String>, failed: bool) -> RequestQuery {
        let value = |name: &str| match name {
            "before" => before.clone(),
            "failed" => Some(failed.to_string()),
            _ => Some("7".to_owned()),
        };
        RequestQuery::from_query(value).unwrap()
    }

    /// The ids of the whole log, read part by part.
    async fn read(service: &Service, caller: &Caller, failed: bool) -> Vec<String> {
        let (mut found, mut before) = (Vec::new(), None);
        loop {
            let page = service.requests(caller, &query(before, failed)).await.unwrap();
            assert!(page.items.len() <= 7 && page.has_more == page.next.is_some());
            found.extend(page.items.into_iter().map(|request| request.id));
            before = page.next;
            if before.is_none() {
                return found;
            }
        }
    }

    #[tokio::test]
    async fn only_its_owner_reads_the_log_and_reads_it_whole_and_newest_first() {
        let service = service();
        let mut expected = Vec::new();
        for nth in 0..150 {
            note(&service, "dev_1", request(nth, if nth % 50 == 0 { 404 } else { 200 }));
            expected.insert(0, format!("req_{nth}"));
            if nth % 40 == 0 {
                service.store_logged_requests().await;
            }
        }
        service.store_logged_requests().await;
        let owner = caller(scope("dev_1"));
        assert_eq!(read(&service, &owner, false).await, expected);
        assert_eq!(read(&service, &owner, true).await, ["req_100", "req_50", "req_0"]);
        assert!(read(&service, &caller(scope("dev_2")), false).await.is_empty());
        assert_eq!(service.request_log.not_logged.get(), 0);
    }

    #[tokio::test]
    async fn a_scope_notes_a_bounded_number_of_requests_and_prefers_failed_ones() {
        let service = service();
        for nth in 0..MAX_OF_SCOPE as u64 + 5 {
            note(&service, "dev_1", request(nth, 200));
        }
        note(&service, "dev_1", request(999, 500));
        note(&service, "dev_2", request(7, 200));
        assert_eq!(service.request_log.not_logged.get(), 6);
        service.store_logged_requests().await;
        let log = read(&service, &caller(scope("dev_1")), false).await;
        assert_eq!((log.len(), log.first().map(String::as_str)), (MAX_OF_SCOPE, Some("req_999")));
        assert_eq!(read(&service, &caller(scope("dev_2")), false).await, ["req_7"]);
        for nth in 0..=MAX_NOTED as u64 {
            note(&service, &format!("dev_{nth}"), request(nth, 200));
        }
        assert_eq!(service.request_log.not_logged.get(), 7);
    }

    #[tokio::test]
    async fn throttled_requests_with_one_cause_within_a_second_share_a_line_with_their_count() {
        let service = service();
        let throttled = |nth: u64, key: &str, millis: i64| LoggedRequest {
            key_last4: key.to_owned(),
            error: Some(ErrorCode::RateLimited),
            created_at: Timestamp::from_millis(1_900_000_000_000 + millis).unwrap(),
            ..request(nth, 429)
        };
        for nth in 0..500 {
            service.request_log.note_throttled(&scope("dev_1"), throttled(nth, "cafe", 0));
            service.request_log.note_throttled(&scope("dev_1"), throttled(nth, "beef", 999));
        }
        note(&service, "dev_1", request(500, 200));
        service.request_log.note_throttled(&scope("dev_1"), throttled(501, "cafe", 1_000));
        service.request_log.note_throttled(&scope("dev_2"), throttled(502, "cafe", 0));
        service.store_logged_requests().await;
        let page = service.requests(&caller(scope("dev_1")), &query(None, false)).await.unwrap();
        let lines: Vec<_> = page.items.iter().map(|it| (&*it.id, &*it.key_last4, it.count)).collect();
        assert_eq!(
            lines,
            [
                ("req_501", "cafe", None),
                ("req_500", "cafe", None),
                ("req_0", "beef", Some(500)),
                ("req_0", "cafe", Some(500))
            ]
        );
        assert_eq!(service.request_log.not_logged.get(), 0);
    }

    #[tokio::test]
    async fn the_log_drops_its_oldest_parts_and_hides_requests_older_than_seven_days() {
        let service = service();
        let (owner, parts) = (caller(scope("dev_1")), 1000 + 3);
        for nth in 0..parts * PART as u64 / 100 + 1 {
            (0..100).for_each(|of| note(&service, "dev_1", request(nth * 100 + of, 200)));
            service.store_logged_requests().await;
        }
        let log = read(&service, &owner, false).await;
        let newest = (parts * PART as u64 / 100 + 1) * 100 - 1;
        assert_eq!(log.first(), Some(&format!("req_{newest}")));
        assert_eq!(log.len(), 1000 * PART + usize::try_from(newest + 1).unwrap() % PART);
        let mut old = request(0, 200);
        old.created_at = Timestamp::from_millis(1_600_000_000_000).unwrap();
        note(&service, "dev_3", old);
        service.store_logged_requests().await;
        assert!(read(&service, &caller(scope("dev_3")), false).await.is_empty());
    }
}
