//! `/api/v1/account/activity`: what each day's payments come to, as JSON or as a chart.

use payments_core::ActivityQuery;
use warp::http::{StatusCode, header};

use super::{chart::Chart, language::Language, reply, request::Request, route::Outcome};
use crate::service::Caller;

pub(super) async fn retrieve(caller: Caller, request: Request) -> Outcome {
    let query = ActivityQuery::from_query(|name| request.query(name))?;
    reply::json(StatusCode::OK, &request.service().activity(&caller, query.days).await?)
}

pub(super) async fn chart(caller: Caller, request: Request) -> Outcome {
    let query = ActivityQuery::of_chart(|name| request.query(name))?;
    let (language, _) = Language::of_request(&request);
    let activity = request.service().activity(&caller, query.days).await?;
    let headers = [
        (header::CONTENT_TYPE, "image/svg+xml"),
        (header::CACHE_CONTROL, "no-store"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    let chart = Chart { activity: &activity, currency: query.currency, language };
    Ok(reply::response(StatusCode::OK, chart.to_string(), headers))
}
