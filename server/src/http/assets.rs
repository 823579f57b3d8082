//! The pages' styles and scripts. Each URL contains a hash of the content, so browsers can cache it forever.

use std::sync::LazyLock;

use sha2::{Digest, Sha256};
use warp::http::{StatusCode, header};

use super::{reply, route::Outcome};

const CSS: &str = "text/css; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

pub(super) static CHECKOUT_STYLE: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("checkout.css", CSS, include_str!("../../templates/checkout.css")));
pub(super) static CHECKOUT_SCRIPT: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("checkout.js", JAVASCRIPT, include_str!("../../templates/checkout.js")));
pub(super) static REFERENCE_STYLE: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("docs.css", CSS, include_str!("../../templates/docs.css")));
pub(super) static DASHBOARD_STYLE: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("dashboard.css", CSS, include_str!("../../templates/dashboard.css")));
pub(super) static DASHBOARD_SCRIPT: LazyLock<Asset> =
    LazyLock::new(|| Asset::new("dashboard.js", JAVASCRIPT, include_str!("../../templates/dashboard.js")));
/// One script for each view of the console that has a file of its own.
pub(super) static DASHBOARD_VIEWS: LazyLock<[Asset; 5]> = LazyLock::new(|| {
    [
        Asset::new("dashboard-payments.js", JAVASCRIPT, include_str!("../../templates/dashboard-payments.js")),
        Asset::new("dashboard-deliveries.js", JAVASCRIPT, include_str!("../../templates/dashboard-deliveries.js")),
        Asset::new("dashboard-webhooks.js", JAVASCRIPT, include_str!("../../templates/dashboard-webhooks.js")),
        Asset::new("dashboard-transactions.js", JAVASCRIPT, include_str!("../../templates/dashboard-transactions.js")),
        Asset::new("dashboard-requests.js", JAVASCRIPT, include_str!("../../templates/dashboard-requests.js")),
    ]
});

/// A static file, embedded in the server.
pub(super) struct Asset {
    content: &'static str,
    kind: &'static str,
    /// Its URL, with a hash of its content.
    pub(super) address: String,
}

impl Asset {
    fn new(path: &str, kind: &'static str, content: &'static str) -> Self {
        let digest = Sha256::digest(content);
        let hash = hex::encode(&digest[..6]);
        Self { content, kind, address: format!("/assets/{path}?{hash}") }
    }

    pub(super) async fn serve(&self) -> Outcome {
        let headers = [
            (header::CONTENT_TYPE, self.kind),
            (header::CACHE_CONTROL, "public, max-age=31536000, immutable"),
            (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        ];
        Ok(reply::response(StatusCode::OK, self.content, headers))
    }
}
