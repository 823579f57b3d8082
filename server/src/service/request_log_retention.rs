//! Drops the logged requests that are too old to be read.

use payments_core::{Environment, Timestamp};

use super::{Result, Service, ServiceError};
use crate::{
    domain::{LogPart, PARTS, Place, Scope},
    store::{Change, Write},
};

impl Service {
    /// Drops what all developers' logs have from before a time. It reads each workspace, so it is for once an hour.
    pub(super) async fn drop_old_requests(&self, before: Timestamp) -> Result<()> {
        for workspace in self.directory.store.workspaces().await? {
            for environment in Environment::ALL {
                match self.drop_old_requests_of(&workspace.scope(environment), before).await {
                    // Another server does the same.
                    Err(ServiceError::Conflict) => {}
                    outcome => outcome?,
                }
            }
        }
        Ok(())
    }

    async fn drop_old_requests_of(&self, scope: &Scope, before: Timestamp) -> Result<()> {
        let Some(open) = self.store.log_part(scope, Place::Open).await? else { return Ok(()) };
        // The parts that were emptied earlier come first.
        let (mut low, mut high) = (open.number.saturating_sub(PARTS), open.number);
        while low < high {
            let middle = u64::midpoint(low, high);
            let is_full = self.full_part(scope, middle).await?.is_some_and(|part| !part.requests.is_empty());
            if is_full { high = middle } else { low = middle + 1 }
        }
        let is_old = |part: &LogPart| part.requests.last().is_some_and(|last| last.created_at < before);
        for number in low..open.number {
            let Some(part) = self.full_part(scope, number).await?.filter(is_old) else { break };
            self.empty(part).await?;
        }
        if is_old(&open) { self.empty(open).await } else { Ok(()) }
    }

    async fn empty(&self, part: LogPart) -> Result<()> {
        let emptied = LogPart { version: part.version + 1, requests: Vec::new(), ..part };
        Ok(self.commit(Change::of(Write::LogPart(Box::new(emptied)))).await?)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use payments_core::{LoggedRequest, RequestQuery, UnknownFields};

    use super::*;
    use crate::{
        domain::PART,
        service::in_memory::{caller, service},
    };

    fn request(nth: u64, created_at: Timestamp) -> LoggedRequest {
        LoggedRequest {
            id: format!("req_{nth}"),
            method: "GET".into(),
            path: "/api/v1/payments".into(),
            status: 200,
            error: None,
            key_last4: "cafe".into(),
            duration_ms: 1,
            created_at,
            count: None,
            unknown: UnknownFields::new(),
        }
    }

    #[tokio::test]
    async fn parts_with_only_old_requests_are_emptied_and_newer_ones_stay() {
        let service = service();
        let workspace = service.directory.new_workspace(payments_core::Slot::FIRST, "Rahim", "rahim");
        let scope = workspace.scope(Environment::Live);
        service.commit(Change::of(Write::Workspace(workspace))).await.unwrap();
        let now = service.ambient.now();
        let old = Timestamp::from_millis(now.as_millis() - 9_000).unwrap();
        let log = async |service: &Arc<Service>, range: std::ops::Range<u64>, at: Timestamp| {
            for nth in range {
                service.request_log.note(&scope, 200, || request(nth, at));
            }
            service.store_logged_requests().await;
        };
        let part = PART as u64;
        log(&service, 0..part * 2 + 1, old).await;
        log(&service, part * 2 + 1..part * 3 + 1, now).await;
        let before = Timestamp::from_millis(now.as_millis() - 1_000).unwrap();
        for _ in 0..2 {
            service.drop_old_requests(before).await.unwrap();
            for (number, count) in [(0, 0), (1, 0), (2, PART)] {
                assert_eq!(service.full_part(&scope, number).await.unwrap().unwrap().requests.len(), count, "{number}");
            }
        }
        let page = service.requests(&caller(scope.clone()), &RequestQuery::default()).await.unwrap();
        assert_eq!(page.items.first().map(|it| it.id.clone()), Some(format!("req_{}", part * 3)));
        service.drop_old_requests(now.plus_seconds(1)).await.unwrap();
        let page = service.requests(&caller(scope.clone()), &RequestQuery::default()).await.unwrap();
        assert_eq!((page.items.len(), page.has_more), (0, false));
        log(&service, 500..501, now).await;
        let page = service.requests(&caller(scope), &RequestQuery::default()).await.unwrap();
        assert_eq!((page.items.len(), page.has_more), (1, false));
    }
}
