//! The API reference page, rendered from the OpenAPI document.

use askama::Template;
use bytes::Bytes;
use payments_core::ErrorCode;
use serde_json::{Map, Value};

use super::assets;
use crate::service::SANDBOX_KEY;

/// The examples' key if the sandbox is off.
const ANY_KEY: &str = "sk_test_...";

/// The OpenAPI document. Tests check every response of the server against it.
pub(super) const DESCRIPTION: &str = include_str!("../../openapi.json");

/// The page, rendered once with the sandbox's key in its examples and once without.
pub(crate) struct Reference {
    with_sandbox: Bytes,
    without: Bytes,
}

impl Reference {
    /// Renders the reference of a server with this base URL.
    pub(crate) fn new(base_url: &str) -> Self {
        let rendered = |key| {
            Bytes::from(render(base_url, key).unwrap_or_else(|error| {
                tracing::error!(error, "cannot render the API reference");
                String::new()
            }))
        };
        Self { with_sandbox: rendered(SANDBOX_KEY), without: rendered(ANY_KEY) }
    }

    pub(super) fn page(&self, has_sandbox: bool) -> Bytes {
        if has_sandbox { self.with_sandbox.clone() } else { self.without.clone() }
    }
}

/// The page. It walks the OpenAPI document; missing parts read as empty, and tests check that none is missing.
#[derive(Template)]
#[template(path = "docs.html")]
struct DocsPage<'d> {
    document: &'d Value,
    base_url: &'d str,
    /// The key of the examples.
    key: &'static str,
}

/// A field of a schema, or a parameter.
struct Field {
    name: String,
    kind: String,
    is_required: bool,
    description: String,
}

fn render(base_url: &str, key: &'static str) -> Result<String, String> {
    let document = serde_json::from_str(DESCRIPTION).map_err(|error| error.to_string())?;
    DocsPage { document: &document, base_url, key }.render().map_err(|error| error.to_string())
}

impl<'d> DocsPage<'d> {
    /// The operations with a tag: path, method and description.
    fn operations(&self, tag: &Value) -> impl Iterator<Item = (&'d str, String, &'d Value)> {
        object(&self.document["paths"])
            .flat_map(|(path, methods)| object(methods).map(move |row| (path, row)))
            .filter(move |(_, (_, operation))| operation["tags"][0] == *tag)
            .map(|(path, (method, operation))| (path, method.to_uppercase(), operation))
    }

    fn example(&self, path: &str, method: &str, operation: &Value) -> String {
        let url = format!("\"{}{}\"", self.base_url, path.replace("{id}", "$ID"));
        let mut lines = match method {
            "GET" => vec![format!("curl {url}")],
            method => vec![format!("curl -X {method} {url}")],
        };
        if operation["security"].is_null() {
            lines.push(format!("-H 'Authorization: Bearer {}'", self.key));
        }
        if let Some(name) = schema_of(&operation["requestBody"]) {
            let schema = &self.document["components"]["schemas"][name];
            let required = object(&schema["properties"]).filter(|(name, _)| requires(schema, name));
            let body: Map<String, Value> = required.map(|(name, schema)| (name.to_owned(), sample(schema))).collect();
            lines.push("-H 'Content-Type: application/json'".into());
            lines.push(format!("-d '{}'", Value::Object(body)));
        }
        lines.join(" \\\n  ")
    }

    /// The schemas that the page lists: those that have fields and are not the body of a request alone.
    fn shapes(&self) -> impl Iterator<Item = &'d str> {
        let schemas = object(&self.document["components"]["schemas"]);
        let shown = schemas.filter(|(name, schema)| !name.starts_with("Create") && schema["properties"].is_object());
        shown.map(|(name, _)| name)
    }

    /// Reads the fields of a schema, each followed by its aliases. Aliases whose generated names would clash with their
    /// field's are in `dependentSchemas`, which generators ignore.
    fn fields(&self, name: &str) -> Vec<Field> {
        let schema = &self.document["components"]["schemas"][name];
        let mut fields = Vec::new();
        for (name, property) in object(&schema["properties"]) {
            let is_required = requires(schema, name);
            fields.push(Field::new(name, kind(property), is_required, property));
            let dependent = &schema["dependentSchemas"][name];
            for (alias, property) in object(&dependent["properties"]) {
                let is_required = is_required && requires(dependent, alias);
                fields.push(Field::new(alias, kind(property), is_required, property));
            }
        }
        fields
    }

    /// Resolves a `$ref`.
    fn resolved(&self, value: &'d Value) -> &'d Value {
        let pointer = value["$ref"].as_str().and_then(|pointer| pointer.strip_prefix('#'));
        pointer.and_then(|pointer| self.document.pointer(pointer)).unwrap_or(value)
    }
}

impl Field {
    fn new(name: &str, kind: String, is_required: bool, described: &Value) -> Self {
        Self { name: name.into(), kind, is_required, description: prose(&described["description"]) }
    }
}

/// Reads the parameters of an operation.
fn parameters(operation: &Value) -> Vec<Field> {
    let field = |parameter: &Value| {
        let kind = format!("{}, {}", text(&parameter["in"]), kind(&parameter["schema"]));
        Field::new(text(&parameter["name"]), kind, parameter["required"] == true, parameter)
    };
    list(&operation["parameters"]).map(field).collect()
}

/// Whether a schema requires a field.
fn requires(schema: &Value, field: &str) -> bool {
    list(&schema["required"]).any(|required| required == field)
}

/// The name of the schema of a request's or response's body.
fn schema_of(message: &Value) -> Option<&str> {
    name_of(&message["content"]["application/json"]["schema"])
}

fn object(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The name of the schema that a `$ref` refers to.
fn name_of(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str().and_then(|pointer| pointer.rsplit('/').next())
}

/// Describes a schema's type in a few words.
fn kind(schema: &Value) -> String {
    if let Some(name) = name_of(schema) {
        return name.to_owned();
    }
    let words: Vec<String> = list(&schema["enum"]).map(|word| word.as_str().unwrap_or("null").to_owned()).collect();
    if !words.is_empty() {
        return words.join(" | ");
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        many => list(many).map(text).collect(),
    };
    match types.as_slice() {
        [] => list(&schema["anyOf"]).map(kind).collect::<Vec<_>>().join(", or "),
        ["array"] => format!("list of {}", kind(&schema["items"])),
        types => types.join(" or "),
    }
}

/// Returns an example value for a schema.
fn sample(schema: &Value) -> Value {
    let first = |name: &str| schema[name].get(0).cloned();
    first("examples").or_else(|| first("enum")).unwrap_or_else(|| match text(&schema["type"]) {
        "integer" | "number" => 1.into(),
        "object" => Value::Object(Map::new()),
        "" => Value::Array(vec!["*".into()]),
        _ => "…".into(),
    })
}

/// Converts text to HTML. The document uses only paragraphs, `code` and **bold**.
fn prose(value: &Value) -> String {
    let escaped = text(value).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    marked(&marked(&escaped, "`", "code"), "**", "strong").replace("\n\n", "</p><p>")
}

/// The meaning of an error code, as HTML.
fn meaning(code: &ErrorCode) -> String {
    prose(&code.meaning().into())
}

/// Replaces each pair of marks by an element.
fn marked(text: &str, mark: &str, element: &str) -> String {
    let part = |(index, part): (usize, &str)| match index % 2 {
        1 => format!("<{element}>{part}</{element}>"),
        _ => part.to_owned(),
    };
    text.split(mark).enumerate().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_shows_every_operation_and_every_field() {
        let page = render("https://pay.example", SANDBOX_KEY).unwrap();
        let description: Value = serde_json::from_str(DESCRIPTION).unwrap();
        for (path, methods) in object(&description["paths"]) {
            for (_, operation) in object(methods) {
                let id = text(&operation["operationId"]);
                assert!(page.contains(&format!("id=\"{id}\"")), "{id}");
                assert!(page.contains(&path.replace("{id}", "$ID")), "{path}");
            }
        }
        for (_, schema) in object(&description["components"]["schemas"]) {
            let aliases =
                object(&schema["dependentSchemas"]).flat_map(|(_, dependent)| object(&dependent["properties"]));
            for (field, _) in object(&schema["properties"]).chain(aliases) {
                assert!(page.contains(&format!("<dt><code>{field}</code>")), "{field}");
            }
        }
    }

    #[test]
    fn the_reference_and_the_openapi_document_list_every_error_code() {
        let page = render("https://pay.example", SANDBOX_KEY).unwrap();
        for code in ErrorCode::KNOWN {
            let status = code.status().unwrap();
            let head = format!("<dt id=\"code-{code}\"><code>{code}</code> <span class=\"kind\">{status}</span></dt>");
            assert!(page.contains(&format!("{head}<dd>{}</dd>", meaning(code))), "{code}");
        }
        let document: Value = serde_json::from_str(DESCRIPTION).unwrap();
        let listed = &document["components"]["schemas"]["Error"]["properties"]["code"]["x-extensible-enum"];
        assert_eq!(*listed, serde_json::to_value(ErrorCode::KNOWN).unwrap());
    }

    #[test]
    fn prose_escapes_html_before_it_adds_markup() {
        assert_eq!(
            prose(&"a <b> `x<y` **z**\n\nn".into()),
            "a &lt;b&gt; <code>x&lt;y</code> <strong>z</strong></p><p>n"
        );
    }
}
