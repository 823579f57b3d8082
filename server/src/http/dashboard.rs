//! `/dashboard`: a console for developers. The page is the same for everybody; the key that is typed into it stays in the
//! browser's session and goes only to this server's API.

use std::sync::{Arc, LazyLock};

use askama::Template;
use warp::{
    Filter,
    http::{HeaderValue, Method, header},
    reply::Response,
};

use super::{Routes, Server, assets::Asset, at, first_of, limit::Verdict, reply::Problem};

static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("dashboard.css", "text/css; charset=utf-8", include_str!("../../templates/dashboard.css"))
});
static SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    Asset::new("dashboard.js", "text/javascript; charset=utf-8", include_str!("../../templates/dashboard.js"))
});

const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; form-action 'none'; \
                      frame-ancestors 'none'; base-uri 'none'";

#[derive(Template)]
#[template(path = "dashboard.html")]
struct Dashboard {
    style: &'static str,
    script: &'static str,
    /// Where it may be used.
    sandbox_key: Option<&'static str>,
}

pub(super) fn routes(server: &Arc<Server>) -> Routes {
    let service = Arc::clone(&server.service);
    let page = at(warp::path!("dashboard").map(|| ()), move |(), incoming| {
        let service = Arc::clone(&service);
        async move {
            let outcome = match incoming.method {
                Method::GET => document(service.offered_key().await),
                _ => Err(Problem::MethodNotAllowed("GET, HEAD")),
            };
            let mut response = outcome.unwrap_or_else(Problem::into_response);
            Verdict::UNLIMITED.write(&mut response);
            response
        }
    });
    first_of([page, STYLE.route(), SCRIPT.route()])
}

fn document(sandbox_key: Option<&'static str>) -> Result<Response, Problem> {
    let page = Dashboard { style: STYLE.address(), script: SCRIPT.address(), sandbox_key };
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
