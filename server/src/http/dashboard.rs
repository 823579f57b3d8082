//! `/dashboard`: a console for developers. The page is the same for everyone; the typed key stays in the browser's session
//! storage and goes only to this server's API.

use askama::Template;
use warp::{
    http::{HeaderValue, header},
    reply::Response,
};

use super::{
    assets::{DASHBOARD_SCRIPT, DASHBOARD_STYLE},
    reply::Problem,
    request::Request,
    route::Outcome,
};

const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'none'; \
                      frame-ancestors 'none'; base-uri 'none'";

#[derive(Template)]
#[template(path = "dashboard.html")]
struct Dashboard {
    style: &'static str,
    script: &'static str,
    /// `None` if the sandbox is off.
    sandbox_key: Option<&'static str>,
}

pub(super) async fn show(request: Request) -> Outcome {
    let sandbox_key = request.service().offered_key().await;
    let page = Dashboard { style: DASHBOARD_STYLE.address(), script: DASHBOARD_SCRIPT.address(), sandbox_key };
    let html = page.render().map_err(|error| Problem::Internal(error.to_string()))?;
    let mut response = Response::new(html.into());
    for (name, value) in [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CACHE_CONTROL, "no-cache"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    Ok(response)
}
