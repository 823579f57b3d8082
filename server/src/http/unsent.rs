//! Counts responses that their clients have not taken yet against one budget.

use std::{net::IpAddr, sync::Arc};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use warp::reply::Response;

use super::reply::ApiError;
use crate::process::budget::{Budget, Held};

/// The limit for all responses of a listener together.
pub(super) const BUDGET: i64 = 96 * 1024 * 1024;
/// Shorter bodies do not count. A connection has few of them, and a request for one payment must not wait for slow readers.
const FREE: i64 = 16 * 1024;

/// Counts a response until its client has taken it. If the client's address has no room, the response becomes 503. A request
/// that `had_effect` always has room.
pub(super) async fn counted(
    budget: &Arc<Budget<IpAddr>>,
    client: IpAddr,
    response: Response,
    had_effect: bool,
) -> Response {
    let size = response.body().size_hint().lower();
    let size = i64::try_from(size).unwrap_or(i64::MAX);
    if size <= FREE {
        return response;
    }
    let (head, body) = response.into_parts();
    // Every body is one text that is there at once.
    let body = match body.collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) => return ApiError::internal(error).into_response(),
    };
    // A page or script takes no memory of its own, because all responses share it.
    if !had_effect && !body.is_unique() {
        return Response::from_parts(head, body.into());
    }
    let held = match had_effect {
        true => Some(budget.force(&client, size)),
        false => budget.take(&client, size),
    };
    match held {
        Some(held) => Response::from_parts(head, Bytes::from_owner(Unsent { body, _held: held }).into()),
        None => ApiError::busy().into_response(),
    }
}

struct Unsent {
    body: Bytes,
    _held: Held<IpAddr>,
}

impl AsRef<[u8]> for Unsent {
    fn as_ref(&self) -> &[u8] {
        &self.body
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use warp::http::StatusCode;

    use super::*;
    use crate::metrics::BudgetMetrics;

    #[tokio::test]
    async fn a_long_response_counts_until_it_is_sent_and_gets_503_beyond_its_clients_share() {
        const LONG: usize = 40 * 1024;
        let metrics = BudgetMetrics::default();
        let budget = Budget::new(100 * 1024, metrics.clone());
        let client = Ipv4Addr::LOCALHOST.into();
        let answer =
            async |body: Bytes, had_effect| counted(&budget, client, Response::new(body.into()), had_effect).await;
        let long = || Bytes::from(vec![b'x'; LONG]);
        let first = answer(long(), false).await;
        assert_eq!(metrics.held.get(), 40 * 1024);
        let refused = answer(long(), false).await;
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(refused.headers()["retry-after"], "1");
        let short = answer(Bytes::from(vec![b'x'; 16 * 1024]), false).await;
        let shared = answer(Bytes::from_static(&[b'x'; LONG]), false).await;
        let created = answer(long(), true).await;
        for response in [&short, &shared, &created] {
            assert_eq!(response.status(), StatusCode::OK);
        }
        assert_eq!(metrics.held.get(), 80 * 1024);
        let bytes = first.into_body().collect().await.unwrap().to_bytes();
        assert_eq!((bytes.len(), metrics.held.get()), (LONG, 80 * 1024));
        drop((bytes, created));
        assert_eq!((metrics.held.get(), metrics.refused.get()), (0, 1));
    }
}
