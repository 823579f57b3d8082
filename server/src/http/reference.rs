//! The API reference page, rendered from the OpenAPI document.

use askama::Template;
use bytes::Bytes;
use serde_json::{Map, Value};

use super::assets::REFERENCE_STYLE;
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

#[derive(Template)]
#[template(path = "docs.html")]
struct DocsPage {
    title: String,
    intro: String,
    groups: Vec<Group>,
    event: Shape,
    event_text: String,
    event_headers: Vec<Field>,
    shapes: Vec<Shape>,
    errors: Vec<(String, String)>,
    base_url: String,
    key: &'static str,
    style: &'static str,
}

struct Group {
    name: String,
    description: String,
    operations: Vec<Operation>,
}

struct Operation {
    id: String,
    method: String,
    path: String,
    summary: String,
    description: String,
    needs_key: bool,
    parameters: Vec<Field>,
    body: Option<Shape>,
    responses: Vec<Response>,
    example: String,
}

struct Response {
    status: String,
    description: String,
    shape: Option<String>,
}

struct Shape {
    name: String,
    fields: Vec<Field>,
}

struct Field {
    name: String,
    kind: String,
    is_required: bool,
    description: String,
}

fn render(base_url: &str, key: &'static str) -> Result<String, String> {
    let description: Value = serde_json::from_str(DESCRIPTION).map_err(|error| error.to_string())?;
    let docs = Docs { description: &description, key };
    docs.page(base_url).render().map_err(|error| error.to_string())
}

/// Reads the OpenAPI document as far as the page needs it. Missing parts read as empty; tests check that none is missing.
struct Docs<'d> {
    description: &'d Value,
    /// The key of the examples.
    key: &'static str,
}

impl<'d> Docs<'d> {
    fn page(&self, base_url: &str) -> DocsPage {
        let description = self.description;
        let operations: Vec<(&str, Operation)> = object(&description["paths"])
            .flat_map(|(path, methods)| object(methods).map(move |(method, operation)| (path, method, operation)))
            .map(|(path, method, operation)| {
                (text(&operation["tags"][0]), self.operation(path, method, operation, base_url))
            })
            .collect();
        let mut groups: Vec<Group> = Vec::new();
        for tag in list(&description["tags"]) {
            let description = prose(text(&tag["description"]));
            groups.push(Group { name: text(&tag["name"]).into(), description, operations: Vec::new() });
        }
        for (tag, operation) in operations {
            if let Some(group) = groups.iter_mut().find(|group| group.name == tag) {
                group.operations.push(operation);
            }
        }
        let event = &description["webhooks"]["event"]["post"];
        let components = &description["components"];
        let shapes = object(&components["schemas"]).filter(|(name, _)| !name.starts_with("Create") && *name != "Event");
        DocsPage {
            title: text(&description["info"]["title"]).into(),
            intro: prose(text(&description["info"]["description"])),
            groups,
            event: self.shape("Event"),
            event_text: prose(text(&event["description"])),
            event_headers: list(&event["parameters"]).map(|parameter| self.parameter(parameter)).collect(),
            shapes: shapes.map(|(name, _)| self.shape(name)).filter(|shape| !shape.fields.is_empty()).collect(),
            errors: ERRORS
                .iter()
                .map(|(status, name)| {
                    ((*status).to_owned(), prose(text(&components["responses"][name]["description"])))
                })
                .collect(),
            base_url: base_url.to_owned(),
            key: self.key,
            style: REFERENCE_STYLE.address(),
        }
    }

    fn operation(&self, path: &str, method: &str, operation: &'d Value, base_url: &str) -> Operation {
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        let needs_key = operation["security"].is_null();
        Operation {
            id: text(&operation["operationId"]).into(),
            method: method.to_uppercase(),
            path: path.into(),
            summary: text(&operation["summary"]).into(),
            description: prose(text(&operation["description"])),
            needs_key,
            parameters: list(&operation["parameters"]).map(|parameter| self.parameter(parameter)).collect(),
            body: name_of(schema).map(|name| self.shape(name)),
            responses: object(&operation["responses"])
                .map(|(status, response)| {
                    let response = self.resolved(response);
                    let schema = &response["content"]["application/json"]["schema"];
                    Response {
                        status: status.into(),
                        description: prose(text(&response["description"])),
                        shape: name_of(schema).filter(|name| *name != "Error").map(str::to_owned),
                    }
                })
                .collect(),
            example: self.example(path, method, schema, needs_key, base_url),
        }
    }

    fn example(&self, path: &str, method: &str, schema: &Value, needs_key: bool, base_url: &str) -> String {
        let path = path.replace("{id}", "$ID");
        let mut lines = match method {
            "get" => vec![format!("curl \"{base_url}{path}\"")],
            method => vec![format!("curl -X {} \"{base_url}{path}\"", method.to_uppercase())],
        };
        if needs_key {
            lines.push(format!("-H 'Authorization: Bearer {}'", self.key));
        }
        if let Some(name) = name_of(schema) {
            let schema = &self.description["components"]["schemas"][name];
            let required: Vec<&str> = list(&schema["required"]).map(text).collect();
            let sample = |(name, property): (&str, &Value)| (name.to_owned(), sample(property));
            let body: Map<String, Value> =
                object(&schema["properties"]).filter(|(name, _)| required.contains(name)).map(sample).collect();
            lines.push("-H 'Content-Type: application/json'".into());
            lines.push(format!("-d '{}'", Value::Object(body)));
        }
        lines.join(" \\\n  ")
    }

    /// Reads the fields of a schema, each followed by its aliases. Aliases whose generated names would clash with their
    /// field's are in `dependentSchemas`, which generators ignore.
    fn shape(&self, name: &str) -> Shape {
        let schema = &self.description["components"]["schemas"][name];
        let requires = |form: &Value, field: &str| list(&form["required"]).any(|required| text(required) == field);
        let field = |name: &str, property: &Value, is_required| Field {
            name: name.into(),
            kind: kind(property),
            is_required,
            description: prose(text(&property["description"])),
        };
        let mut fields = Vec::new();
        for (name, property) in object(&schema["properties"]) {
            let is_required = requires(schema, name);
            fields.push(field(name, property, is_required));
            let dependent = &schema["dependentSchemas"][name];
            for (alias, property) in object(&dependent["properties"]) {
                fields.push(field(alias, property, is_required && requires(dependent, alias)));
            }
        }
        Shape { name: name.into(), fields }
    }

    fn parameter(&self, parameter: &Value) -> Field {
        Field {
            name: text(&parameter["name"]).into(),
            kind: format!("{}, {}", text(&parameter["in"]), kind(&parameter["schema"])),
            is_required: parameter["required"] == true,
            description: prose(text(&parameter["description"])),
        }
    }

    /// Resolves a `$ref`.
    fn resolved(&self, value: &'d Value) -> &'d Value {
        let pointer = value["$ref"].as_str().and_then(|pointer| pointer.strip_prefix('#'));
        pointer.and_then(|pointer| self.description.pointer(pointer)).unwrap_or(value)
    }
}

/// The errors that the page explains once for all routes.
const ERRORS: [(&str, &str); 12] = [
    ("400", "Invalid"),
    ("401", "Unauthorized"),
    ("403", "Forbidden"),
    ("404", "NotFound"),
    ("405", "MethodNotAllowed"),
    ("408", "Timeout"),
    ("409", "Conflict"),
    ("413", "TooLarge"),
    ("422", "Unprocessable"),
    ("429", "TooMany"),
    ("500", "Internal"),
    ("503", "Unavailable"),
];

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
fn prose(text: &str) -> String {
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let paragraph = |text: &str| {
        let mut html = String::new();
        for (index, part) in text.split('`').enumerate() {
            if index % 2 == 1 {
                html.push_str(&format!("<code>{part}</code>"));
                continue;
            }
            for (index, part) in part.split("**").enumerate() {
                match index % 2 {
                    1 => html.push_str(&format!("<strong>{part}</strong>")),
                    _ => html.push_str(part),
                }
            }
        }
        html
    };
    escaped.split("\n\n").map(paragraph).collect::<Vec<_>>().join("</p><p>")
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
    fn prose_escapes_html_before_it_adds_markup() {
        assert_eq!(prose("a <b> `x<y` **z**\n\nn"), "a &lt;b&gt; <code>x&lt;y</code> <strong>z</strong></p><p>n");
    }
}
