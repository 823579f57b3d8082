//! Turns requests of the service into HTTP requests, and back.

use std::{collections::BTreeMap, sync::LazyLock};

use payments_core::{ErrorCode, Invalid};
use percent_encoding::{AsciiSet, CONTROLS, percent_decode_str, utf8_percent_encode};
use schemars::{Schema, SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value};
use url::form_urlencoded;

use super::routes::{AdminRoute, PREFIX};
use crate::service::AdminRequest;

/// The characters that a part of a path cannot have as they are.
const ENCODED: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'#')
    .add(b'%')
    .add(b'/')
    .add(b'<')
    .add(b'>')
    .add(b'?')
    .add(b'`')
    .add(b'{')
    .add(b'}');

/// A request as HTTP says it.
#[derive(Debug, PartialEq, Eq)]
pub struct Call {
    pub method: &'static str,
    /// The path and the query.
    pub target: String,
    /// The body, except of a `GET`.
    pub body: Option<Vec<u8>>,
}

/// The fields of a request, with its route.
fn parts(request: &AdminRequest) -> Option<(&'static AdminRoute, Map<String, Value>)> {
    let Ok(Value::Object(mut fields)) = serde_json::to_value(request) else { return None };
    let verb = fields.remove("verb")?;
    let action = fields.remove("action");
    fields.retain(|_, value| !value.is_null());
    let action = action.as_ref().and_then(Value::as_str);
    let route = AdminRoute::of_request(verb.as_str()?, action, |name| fields.contains_key(name))?;
    Some((route, fields))
}

impl Call {
    /// Returns `None` if the table has no route for a request.
    pub fn of(request: &AdminRequest) -> Option<Self> {
        let (route, mut fields) = parts(request)?;
        let mut target = PREFIX.to_owned();
        for part in route.path.split('/').skip(1) {
            let part = match part.strip_prefix('{').and_then(|part| part.strip_suffix('}')) {
                Some(name) => utf8_percent_encode(&text_of(&fields.remove(name)?), ENCODED).to_string(),
                None => part.to_owned(),
            };
            target = format!("{target}/{part}");
        }
        if route.method != "GET" {
            let body = serde_json::to_vec(&fields).ok()?;
            return Some(Self { method: route.method, target, body: Some(body) });
        }
        if !fields.is_empty() {
            let pairs = fields.iter().map(|(name, value)| (name, text_of(value)));
            target =
                format!("{target}?{}", form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish());
        }
        Some(Self { method: route.method, target, body: None })
    }
}

/// The method and the path of a request's route, and the values of the path's parameters. The audit log shows them.
pub fn action_of(request: &AdminRequest) -> Option<(String, Option<String>)> {
    let (route, fields) = parts(request)?;
    let subject = route.parameters().filter_map(|name| fields.get(name)).map(text_of).collect::<Vec<_>>().join(" ");
    Some((format!("{} {PREFIX}{}", route.method, route.path), Some(subject).filter(|it| !it.is_empty())))
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Reads the request of a route from its path, query and body.
pub(super) fn request_of(
    route: &AdminRoute,
    parameters: &[(&'static str, &str)],
    query: Option<&str>,
    body: &[u8],
) -> Result<AdminRequest, Invalid> {
    let wrong = |sentence: String| Invalid::new(ErrorCode::ValidationFailed, sentence);
    let mut fields = match (route.method, body) {
        ("GET", _) | (_, []) => Map::new(),
        (_, body) => {
            serde_json::from_slice(body).map_err(|error| wrong(format!("the body must be a JSON object: {error}")))?
        }
    };
    let kinds = kinds_of(route);
    let in_query = form_urlencoded::parse(query.unwrap_or_default().as_bytes());
    for (name, value) in in_query {
        if fields.insert(name.to_string(), value_of(kinds.get(&*name), &value)).is_some() {
            return Err(wrong(format!("{name} must be given once")));
        }
    }
    for (name, value) in parameters {
        let value =
            percent_decode_str(value).decode_utf8().map_err(|_| wrong(format!("the path's {name} is not UTF-8")))?;
        if fields.insert((*name).to_owned(), Value::String(value.into_owned())).is_some() {
            return Err(wrong(format!("{name} is in the path; leave it out of the rest")));
        }
    }
    if fields.contains_key("verb") || fields.contains_key("action") {
        return Err(wrong("the path says what to do; leave verb and action out".to_owned()));
    }
    let (verb, action) = route.request;
    fields.insert("verb".to_owned(), verb.into());
    if let Some(action) = action {
        fields.insert("action".to_owned(), action.into());
    }
    serde_json::from_value(Value::Object(fields)).map_err(|error| wrong(format!("this request is not right: {error}")))
}

/// A value of the query. A text is as it is, all else is JSON.
fn value_of(schema: Option<&Value>, text: &str) -> Value {
    let is_text = schema.is_none_or(|schema| match &schema["type"] {
        Value::Array(kinds) => kinds.iter().any(|kind| kind == "string"),
        Value::Null => true,
        kind => kind == "string",
    });
    if is_text {
        return text.into();
    }
    serde_json::from_str(text).unwrap_or_else(|_| text.into())
}

/// The JSON Schemas of the requests, all definitions in place.
pub(super) static REQUESTS: LazyLock<Value> = LazyLock::new(|| {
    let settings = SchemaSettings::openapi3().with(|settings| settings.inline_subschemas = true);
    let schema: Schema = SchemaGenerator::new(settings).into_root_schema_for::<AdminRequest>();
    schema.to_value()
});

/// The schema of a route's request, without its verb and its action.
pub(super) fn schema_of(route: &AdminRoute) -> Value {
    let (verb, action) = route.request;
    let is_named = |schema: &Value, field: &str, name: &str| {
        let property = &schema["properties"][field];
        property["const"] == name || property["enum"][0] == name
    };
    let variants = |schema: &Value| schema["oneOf"].as_array().cloned().unwrap_or_default();
    let mut found = variants(&REQUESTS).into_iter().find(|it| is_named(it, "verb", verb)).unwrap_or_default();
    if let Some(action) = action {
        let inner = variants(&found).into_iter().find(|it| is_named(it, "action", action));
        found = inner.unwrap_or_default();
    }
    for field in ["verb", "action"] {
        if let Some(properties) = found["properties"].as_object_mut() {
            properties.remove(field);
        }
        if let Some(required) = found["required"].as_array_mut() {
            required.retain(|name| name != field);
        }
    }
    found
}

/// The schemas of the fields of a route's request.
pub(super) fn kinds_of(route: &AdminRoute) -> BTreeMap<String, Value> {
    let schema = schema_of(route);
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    properties.into_iter().collect()
}
