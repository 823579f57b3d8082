//! `/`: says what this server is, and leads to the console and the reference.

use askama::Template;
use warp::http::{StatusCode, header};

use super::{
    assets, docs,
    reply::{self, Problem},
    request::Request,
    route::Outcome,
};

#[derive(Template)]
#[template(path = "home.html")]
struct Home<'s> {
    base_url: &'s str,
    /// `None` if the sandbox is off.
    sandbox_key: Option<&'static str>,
}

pub(super) async fn show(request: Request) -> Outcome {
    let service = request.service();
    let page = Home { base_url: &service.settings.base_url, sandbox_key: service.offered_key().await };
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "no-cache"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_SECURITY_POLICY, docs::POLICY),
    ];
    Ok(reply::response(StatusCode::OK, page.render().map_err(Problem::internal)?, headers))
}
