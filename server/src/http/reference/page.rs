//! The reference page, rendered from the OpenAPI document and the examples.

use askama::Template;
use payments_core::ErrorCode;
use serde_json::Value;

use super::{
    DESCRIPTION,
    document::{Field, fields, list, meaning, object, parameters, prose, schema_of, text},
    examples::{self, Example},
    guides::ANY_KEY,
};
use crate::http::assets;

#[derive(Template)]
#[template(path = "docs.html")]
struct DocsPage<'d> {
    document: &'d Value,
    examples: &'d Value,
    base_url: &'d str,
    sandbox_key: Option<&'static str>,
    key: &'static str,
}

pub(super) fn render(base_url: &str, sandbox_key: Option<&'static str>) -> Result<String, askama::Error> {
    let document = serde_json::from_str(DESCRIPTION).map_err(askama::Error::custom)?;
    let examples = examples::read(base_url).map_err(askama::Error::custom)?;
    let key = sandbox_key.unwrap_or(ANY_KEY);
    DocsPage { document: &document, examples: &examples, base_url, sandbox_key, key }.render()
}

struct Operation<'d> {
    id: &'d str,
    path: &'d str,
    method: String,
    summary: &'d str,
    described: &'d Value,
}

impl<'d> DocsPage<'d> {
    fn operations(&self, tag: &Value) -> impl Iterator<Item = Operation<'d>> {
        let rows = object(&self.document["paths"])
            .flat_map(|(path, methods)| object(methods).map(move |row| (path, row)))
            .filter(move |(_, (_, operation))| operation["tags"][0] == *tag);
        rows.map(|(path, (method, described))| Operation {
            id: text(&described["operationId"]),
            path,
            method: method.to_uppercase(),
            summary: text(&described["summary"]),
            described,
        })
    }

    fn example(&self, it: &Operation<'d>) -> Example {
        Example::of(it.described, &it.method, it.path, &self.examples[it.id], self.base_url, self.key)
    }

    /// The schemas that the page lists: those with fields, except bodies of requests only.
    fn shapes(&self) -> impl Iterator<Item = &'d str> {
        let schemas = object(&self.document["components"]["schemas"]);
        let shown = schemas.filter(|(name, schema)| !name.starts_with("Create") && schema["properties"].is_object());
        shown.map(|(name, _)| name)
    }

    fn fields(&self, schema: &str) -> Vec<Field> {
        fields(&self.document["components"]["schemas"][schema])
    }

    fn resolved(&self, value: &'d Value) -> &'d Value {
        let pointer = value["$ref"].as_str().and_then(|pointer| pointer.strip_prefix('#'));
        pointer.and_then(|pointer| self.document.pointer(pointer)).unwrap_or(value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::SANDBOX_KEY;

    fn rendered(key: Option<&'static str>) -> (String, Value) {
        (render("https://pay.example", key).unwrap(), serde_json::from_str(DESCRIPTION).unwrap())
    }

    #[test]
    fn the_reference_shows_every_operation_and_every_field() {
        let (page, description) = rendered(Some(SANDBOX_KEY));
        for (path, methods) in object(&description["paths"]) {
            for (_, operation) in object(methods) {
                let id = text(&operation["operationId"]);
                assert!(page.contains(&format!("id=\"{id}\"")), "{id}");
                assert!(page.contains(&format!("<code>{path}</code>")), "{path}");
            }
        }
        for (_, schema) in object(&description["components"]["schemas"]) {
            let aliases =
                object(&schema["dependentSchemas"]).flat_map(|(_, dependent)| object(&dependent["properties"]));
            for (field, _) in object(&schema["properties"]).chain(aliases) {
                assert!(page.contains(&format!("-{field}\"><code>{field}</code>")), "{field}");
            }
        }
    }

    #[test]
    fn every_operation_has_an_example_in_each_language_and_an_answer() {
        let (_, document) = rendered(None);
        let examples = examples::read("https://pay.example").unwrap();
        let page = DocsPage {
            document: &document,
            examples: &examples,
            base_url: "https://pay.example",
            sandbox_key: None,
            key: ANY_KEY,
        };
        let operations: Vec<_> = list(&document["tags"]).flat_map(|tag| page.operations(&tag["name"])).collect();
        assert_eq!(operations.len(), object(&examples).count());
        for it in operations {
            let example = page.example(&it);
            assert!(example.snippets.iter().all(|snippet| snippet.text.contains("https://pay.example")), "{}", it.id);
            assert_eq!(example.id.is_empty(), !it.path.contains("{id}"), "{}", it.id);
            assert!(example.status.starts_with('2'), "{}", it.id);
            let is_long = ["retrieveDescription", "retrievePayoutStatement"].contains(&it.id);
            assert_eq!(example.answer.is_empty(), is_long, "{}", it.id);
        }
    }

    #[test]
    fn only_a_server_with_a_sandbox_offers_to_try_operations_and_only_harmless_ones() {
        let (page, _) = rendered(Some(SANDBOX_KEY));
        assert!(page.contains("data-try=\"createPayment\""));
        for never in ["removeWebhook", "resetSandbox", "payCheckout"] {
            assert!(!page.contains(&format!("data-try=\"{never}\"")), "{never}");
        }
        let (page, _) = rendered(None);
        assert!(!page.contains("data-try") && !page.contains(SANDBOX_KEY) && page.contains("sk_test_..."));
    }

    #[test]
    fn the_reference_and_the_openapi_document_list_every_error_code() {
        let (page, document) = rendered(Some(SANDBOX_KEY));
        for code in ErrorCode::KNOWN {
            let status = code.status().unwrap();
            let head = format!("<dt id=\"code-{code}\"><code>{code}</code> <span class=\"kind\">{status}</span></dt>");
            assert!(page.contains(&format!("{head}<dd>{}</dd>", meaning(code))), "{code}");
        }
        let listed = &document["components"]["schemas"]["Error"]["properties"]["code"]["x-extensible-enum"];
        assert_eq!(*listed, serde_json::to_value(ErrorCode::KNOWN).unwrap());
    }
}
