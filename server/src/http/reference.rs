//! The API reference and its guides: pages rendered once, at the start.

mod document;
mod examples;
mod guides;
mod literal;
mod page;
mod snippets;

use std::collections::HashMap;

use bytes::Bytes;

pub(super) use self::document::{list, object, text};
use self::guides::{GUIDES, Render};
use crate::service::SANDBOX_KEY;

/// The OpenAPI document. Tests check every response of the server against it.
pub(super) const DESCRIPTION: &str = include_str!("../../openapi.json");

/// The pages under `/docs` by name, each in two forms: without the sandbox's key in its examples, and with it.
pub struct Reference(HashMap<&'static str, [Bytes; 2]>);

impl Reference {
    pub fn new(base_url: &str) -> Self {
        let pages = GUIDES.iter().map(|guide| (guide.name, guide.render)).chain([("", page::render as Render)]);
        let rendered = |(name, render): (&'static str, Render)| {
            let page = [None, Some(SANDBOX_KEY)].map(|key| {
                Bytes::from(render(base_url, key).unwrap_or_else(|error| {
                    tracing::error!(name, %error, "cannot render a page of the API reference");
                    String::new()
                }))
            });
            (name, page)
        };
        Self(pages.map(rendered).collect())
    }

    /// The guide of this name. The empty name is the reference itself.
    pub(super) fn page(&self, name: &str, has_sandbox: bool) -> Option<Bytes> {
        self.0.get(name).map(|page| page[usize::from(has_sandbox)].clone())
    }
}
