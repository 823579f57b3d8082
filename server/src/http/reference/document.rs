//! Reads the OpenAPI document. Missing parts read as empty, and tests check that none is missing.

use payments_core::ErrorCode;
use serde_json::Value;

pub(super) struct Field {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) is_required: bool,
    /// HTML.
    pub(super) description: String,
}

impl Field {
    fn new(name: &str, kind: String, is_required: bool, described: &Value) -> Self {
        Self { name: name.into(), kind, is_required, description: prose(&described["description"]) }
    }
}

/// Reads the fields of a schema, each followed by its aliases. An alias whose generated name would clash with its field's is
/// in `dependentSchemas`, which generators ignore.
pub(super) fn fields(schema: &Value) -> Vec<Field> {
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

pub(super) fn parameters(operation: &Value) -> Vec<Field> {
    let field = |parameter: &Value| {
        let kind = format!("{}, {}", text(&parameter["in"]), kind(&parameter["schema"]));
        Field::new(text(&parameter["name"]), kind, parameter["required"] == true, parameter)
    };
    list(&operation["parameters"]).map(field).collect()
}

fn requires(schema: &Value, field: &str) -> bool {
    list(&schema["required"]).any(|required| required == field)
}

/// The name of the schema of a request's or response's body.
pub(super) fn schema_of(message: &Value) -> Option<&str> {
    name_of(&message["content"]["application/json"]["schema"])
}

pub(in crate::http) fn object(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

pub(in crate::http) fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

pub(in crate::http) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The name of the schema that a `$ref` refers to.
fn name_of(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str().and_then(|pointer| pointer.rsplit('/').next())
}

/// The most words that a field's type lists.
const MOST_WORDS: usize = 20;

/// Describes a schema's type in a few words.
fn kind(schema: &Value) -> String {
    if let Some(name) = name_of(schema) {
        return name.to_owned();
    }
    let words: Vec<&str> = list(&schema["enum"]).map(|word| word.as_str().unwrap_or("null")).collect();
    if !words.is_empty() {
        return words.join(" | ");
    }
    // Later versions may add words. The error codes, which are many, have a section of their own.
    let words: Vec<&str> = list(&schema["x-extensible-enum"]).map(text).collect();
    if (1..=MOST_WORDS).contains(&words.len()) {
        return format!("{} | …", words.join(" | "));
    }
    let types: Vec<&str> = match &schema["type"] {
        Value::String(one) => vec![one],
        many => list(many).map(text).collect(),
    };
    match types.as_slice() {
        [] => list(&schema["anyOf"]).map(kind).collect::<Vec<_>>().join(", or "),
        ["array", rest @ ..] => [&[&*format!("list of {}", kind(&schema["items"]))], rest].concat().join(" or "),
        types => types.join(" or "),
    }
}

/// Converts text to HTML. The document uses only paragraphs, `code` and **bold**.
pub(super) fn prose(value: &Value) -> String {
    let escaped = text(value).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    marked(&marked(&escaped, "`", "code"), "**", "strong").replace("\n\n", "</p><p>")
}

pub(super) fn meaning(code: &ErrorCode) -> String {
    prose(&code.meaning().into())
}

fn marked(text: &str, mark: &str, element: &str) -> String {
    let part = |(index, part): (usize, &str)| match index % 2 {
        1 => format!("<{element}>{part}</{element}>"),
        _ => part.to_owned(),
    };
    text.split(mark).enumerate().map(part).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_kind_lists_the_words_and_says_whether_later_versions_may_add_some() {
        let open = json!({"type": "string", "x-extensible-enum": ["a", "b"]});
        assert_eq!(kind(&open), "a | b | …");
        assert_eq!(kind(&json!({"type": ["array", "null"], "items": open})), "list of a | b | … or null");
        assert_eq!(kind(&json!({"type": ["string", "null"], "enum": ["a", null]})), "a | null");
        assert_eq!(kind(&json!({"type": "string", "x-extensible-enum": vec!["a"; MOST_WORDS + 1]})), "string");
    }

    #[test]
    fn prose_escapes_html_before_it_adds_markup() {
        assert_eq!(
            prose(&"a <b> `x<y` **z**\n\nn".into()),
            "a &lt;b&gt; <code>x&lt;y</code> <strong>z</strong></p><p>n"
        );
    }
}
