//! `/dashboard`: a console for developers. The page is the same for everyone; the typed key stays in the browser's session
//! storage and goes only to this server's API.

use askama::Template;
use warp::http::{StatusCode, header};

use super::{
    assets,
    reply::{self, Problem},
    request::Request,
    route::Outcome,
};

const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'none'; \
                      frame-ancestors 'none'; base-uri 'none'";

#[derive(Template)]
#[template(path = "dashboard.html")]
struct Dashboard {
    /// `None` if the sandbox is off.
    sandbox_key: Option<&'static str>,
}

pub(super) async fn show(request: Request) -> Outcome {
    let page = Dashboard { sandbox_key: request.service().offered_key().await };
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "no-cache"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
    ];
    Ok(reply::response(StatusCode::OK, page.render().map_err(Problem::internal)?, headers))
}
