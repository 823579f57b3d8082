//! `/`: says what this server is, and leads to the console and the reference.

use askama::Template;

use super::{
    assets,
    reply::{self, ApiError, Outcome},
    request::Request,
};

/// Styles of this server, and nothing else.
pub(super) const POLICY: &str =
    "default-src 'none'; style-src 'self'; form-action 'none'; frame-ancestors 'none'; base-uri 'none'";

#[derive(Template)]
#[template(path = "home.html")]
struct Home<'s> {
    base_url: &'s str,
    sandbox_key: Option<&'static str>,
}

pub(super) async fn show(request: Request) -> Outcome {
    let service = request.service();
    let page = Home { base_url: &service.settings.base_url, sandbox_key: service.offered_key().await };
    let html = page.render().map_err(ApiError::internal)?;
    Ok(reply::file(reply::HTML, "no-cache", Some(POLICY), html))
}
