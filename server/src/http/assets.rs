//! The pages' styles and scripts. Each URL contains a hash of the content, so browsers can cache it forever.

use std::sync::LazyLock;

use sha2::{Digest, Sha256};

pub(super) const CSS: &str = "text/css; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

/// A file of `templates`, embedded in the server.
macro_rules! asset {
    ($name:literal, $kind:expr) => {
        Asset::new($name, $kind, include_str!(concat!("../../templates/", $name)))
    };
}

static ASSETS: LazyLock<Vec<Asset>> = LazyLock::new(|| {
    vec![
        asset!("checkout.css", CSS),
        asset!("checkout.js", JAVASCRIPT),
        asset!("statement.css", CSS),
        asset!("docs.css", CSS),
        asset!("docs.js", JAVASCRIPT),
        asset!("docs-try.js", JAVASCRIPT),
        asset!("dashboard.css", CSS),
        asset!("dashboard.js", JAVASCRIPT),
        asset!("dashboard-bn.js", JAVASCRIPT),
        asset!("dashboard-bn-platform.js", JAVASCRIPT),
        // First the console's foundation, then its views.
        asset!("dashboard-language.js", JAVASCRIPT),
        asset!("dashboard-api.js", JAVASCRIPT),
        asset!("dashboard-elements.js", JAVASCRIPT),
        asset!("dashboard-json.js", JAVASCRIPT),
        asset!("dashboard-notices.js", JAVASCRIPT),
        asset!("dashboard-person.js", JAVASCRIPT),
        asset!("dashboard-payments.js", JAVASCRIPT),
        asset!("dashboard-payment.js", JAVASCRIPT),
        asset!("dashboard-deliveries.js", JAVASCRIPT),
        asset!("dashboard-webhooks.js", JAVASCRIPT),
        asset!("dashboard-transactions.js", JAVASCRIPT),
        asset!("dashboard-balances.js", JAVASCRIPT),
        asset!("dashboard-payouts.js", JAVASCRIPT),
        asset!("dashboard-requests.js", JAVASCRIPT),
        asset!("dashboard-keys.js", JAVASCRIPT),
        asset!("dashboard-simulator.js", JAVASCRIPT),
        asset!("dashboard-platform-views.js", JAVASCRIPT),
        asset!("dashboard-platform.js", JAVASCRIPT),
    ]
});

pub(super) struct Asset {
    name: &'static str,
    pub(super) kind: &'static str,
    pub(super) content: &'static str,
    address: String,
}

impl Asset {
    fn new(name: &'static str, kind: &'static str, content: &'static str) -> Self {
        let digest = Sha256::digest(content);
        let hash = hex::encode(&digest[..6]);
        Self { name, kind, content, address: format!("/assets/{name}?{hash}") }
    }
}

pub(super) fn find(name: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.name == name)
}

/// The URL of a file, for a page. Empty if no file has this name, which a test rules out.
pub(super) fn address(name: &str) -> &'static str {
    find(name).map_or("", |asset| &asset.address)
}

/// The URLs of the console's scripts, without its dictionaries. `dashboard.js` comes last: it uses the others.
pub(super) fn console_scripts() -> impl Iterator<Item = &'static str> {
    let is_part = |name: &str| name.starts_with("dashboard-") && !name.starts_with("dashboard-bn");
    let parts = ASSETS.iter().filter(move |asset| is_part(asset.name));
    parts.map(|asset| &*asset.address).chain([address("dashboard.js")])
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn every_file_that_a_template_names_is_served() {
        let templates = concat!(env!("CARGO_MANIFEST_DIR"), "/templates");
        let mut named = 0;
        for file in fs::read_dir(templates).unwrap() {
            let path = file.unwrap().path();
            let text = fs::read_to_string(&path).unwrap();
            for rest in text.split("assets::address(\"").skip(1) {
                let (name, _) = rest.split_once('"').unwrap();
                assert!(find(name).is_some(), "{} names {name}", path.display());
                named += 1;
            }
            let name = path.file_name().unwrap().to_str().unwrap();
            assert_eq!(find(name).is_some(), name.ends_with(".css") || name.ends_with(".js"), "{name}");
        }
        assert!(named >= 5);
    }
}
