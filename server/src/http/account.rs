//! `/api/v1/account`: the workspace, its balances, lifetime volume, apps, keys, activity, audit log and notices.

use payments_core::{ActivityQuery, AuditQuery};

use super::{chart, reply, request::Request};
use crate::service::Caller;

pub(super) async fn retrieve(caller: Caller, request: Request) -> reply::Outcome {
    reply::ok(&request.service().account(&caller).await?)
}

pub(super) async fn balance(caller: Caller, request: Request) -> reply::Outcome {
    reply::ok(&request.service().balance(&caller).await?)
}

pub(super) async fn apps(caller: Caller, request: Request) -> reply::Outcome {
    reply::ok(&request.service().apps(&caller).await?)
}

pub(super) async fn keys(caller: Caller, request: Request) -> reply::Outcome {
    reply::ok(&request.service().own_keys(&caller).await?)
}

pub(super) async fn audit(caller: Caller, request: Request) -> reply::Outcome {
    let query = AuditQuery::from_query(|name| request.query(name))?;
    reply::ok(&request.service().own_audit(&caller, &query).await?)
}

pub(super) async fn notices(caller: Caller, request: Request) -> reply::Outcome {
    reply::ok(&request.service().own_notices(&caller).await?)
}

pub(super) async fn activity(caller: Caller, request: Request) -> reply::Outcome {
    let query = ActivityQuery::from_query(|name| request.query(name))?;
    reply::ok(&request.service().activity(&caller, query.days).await?)
}

/// The activity as a chart.
pub(super) async fn chart(caller: Caller, request: Request) -> reply::Outcome {
    let query = ActivityQuery::of_chart(|name| request.query(name))?;
    let (language, _) = request.language();
    let activity = request.service().activity(&caller, query.days).await?;
    let chart = chart::chart(&activity, query.currency, language).map_err(reply::ApiError::internal)?;
    Ok(reply::file("image/svg+xml", "no-store", None, chart))
}
