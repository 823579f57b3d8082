//! `/api/v1/account/activity`: what each day's payments come to, as JSON or as a chart.

use payments_core::ActivityQuery;

use super::{chart, reply, request::Request};
use crate::service::Caller;

pub(super) async fn retrieve(caller: Caller, request: Request) -> reply::Outcome {
    let query = ActivityQuery::from_query(|name| request.query(name))?;
    reply::ok(&request.service().activity(&caller, query.days).await?)
}

pub(super) async fn picture(caller: Caller, request: Request) -> reply::Outcome {
    let query = ActivityQuery::of_chart(|name| request.query(name))?;
    let (language, _) = request.language();
    let activity = request.service().activity(&caller, query.days).await?;
    let chart = chart::chart(&activity, query.currency, language).map_err(reply::ApiError::internal)?;
    Ok(reply::file("image/svg+xml", "no-store", None, chart))
}
