//! The API reference and its guides: pages rendered once, at the start.

mod document;
mod examples;
mod guides;
mod literal;
mod page;
mod prose;
mod snippets;

use bytes::Bytes;

use crate::service::SANDBOX_KEY;

/// The OpenAPI document. Tests check every response of the server against it.
pub(super) const DESCRIPTION: &str = include_str!("../../openapi.json");

/// A page, once with the sandbox's key in its examples and once without.
struct Rendered {
    with_sandbox: Bytes,
    without: Bytes,
}

impl Rendered {
    fn of(name: &str, render: impl Fn(Option<&'static str>) -> Result<String, String>) -> Self {
        let rendered = |key| {
            Bytes::from(render(key).unwrap_or_else(|error| {
                tracing::error!(name, error, "cannot render a page of the API reference");
                String::new()
            }))
        };
        Self { with_sandbox: rendered(Some(SANDBOX_KEY)), without: rendered(None) }
    }

    fn page(&self, has_sandbox: bool) -> Bytes {
        if has_sandbox { self.with_sandbox.clone() } else { self.without.clone() }
    }
}

/// The pages under `/docs`.
pub(crate) struct Reference {
    reference: Rendered,
    guides: Vec<(&'static str, Rendered)>,
}

impl Reference {
    /// Renders the pages of a server with this base URL.
    pub(crate) fn new(base_url: &str) -> Self {
        let guide = |guide: &guides::Guide| {
            let render = |key| (guide.render)(base_url, key).map_err(|error| error.to_string());
            (guide.name, Rendered::of(guide.name, render))
        };
        Self {
            reference: Rendered::of("docs", |key| page::render(base_url, key)),
            guides: guides::GUIDES.iter().map(guide).collect(),
        }
    }

    pub(super) fn page(&self, has_sandbox: bool) -> Bytes {
        self.reference.page(has_sandbox)
    }

    /// The page of a guide, if there is one of this name.
    pub(super) fn guide(&self, name: &str, has_sandbox: bool) -> Option<Bytes> {
        self.guides.iter().find(|(known, _)| *known == name).map(|(_, guide)| guide.page(has_sandbox))
    }
}
