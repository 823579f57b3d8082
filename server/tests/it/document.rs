//! The OpenAPI document, as tests read it.

use std::collections::BTreeSet;

use reqwest::{RequestBuilder, header::HeaderMap};
use serde_json::Value;

/// The document as the server has it: later versions may add fields and words to responses.
pub(crate) fn open() -> Value {
    serde_json::from_str(include_str!("../../openapi.json")).unwrap()
}

/// The document as it was when its responses became open. Clients that were generated from it must work with this server.
pub(crate) fn before() -> Value {
    serde_json::from_str(include_str!("../clients/openapi-before.json")).unwrap()
}

/// The document for the responses of this version's server, which have no field and no word that the document lacks.
pub(crate) fn closed() -> Value {
    let mut document = open();
    close(&mut document);
    document
}

fn close(value: &mut Value) {
    if let Some(map) = value.as_object_mut() {
        let is_described = map.contains_key("type") && map.contains_key("properties");
        if is_described && !map.contains_key("additionalProperties") {
            map.insert("unevaluatedProperties".to_owned(), false.into());
        }
        if let Some(words) = map.get("x-extensible-enum").cloned() {
            map.insert("enum".to_owned(), words);
        }
        map.values_mut().for_each(close);
    }
    value.as_array_mut().into_iter().flatten().for_each(close);
}

/// Checks a value against a schema. The error names every fault.
pub(crate) fn fits(document: &Value, schema: &Value, value: &Value) -> Result<(), String> {
    let mut root = schema.clone();
    root["components"] = document["components"].clone();
    let validator = jsonschema::validator_for(&root).unwrap();
    let faults: Vec<String> =
        validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
    if faults.is_empty() { Ok(()) } else { Err(faults.join("; ")) }
}

/// The operations: path, method and description.
pub(crate) fn operations(document: &Value) -> impl Iterator<Item = (&str, &str, &Value)> {
    let paths = document["paths"].as_object().unwrap().iter();
    paths.flat_map(|(path, methods)| {
        methods.as_object().unwrap().iter().map(move |(method, operation)| (path.as_str(), method.as_str(), operation))
    })
}

/// A value of the document, or what it refers to.
pub(crate) fn resolved<'v>(document: &'v Value, value: &'v Value) -> &'v Value {
    match value["$ref"].as_str() {
        Some(pointer) => document.pointer(&pointer[1..]).unwrap_or_else(|| panic!("{pointer}")),
        None => value,
    }
}

/// Checks responses against the document, which is closed, and the one from before. Remembers their operations and statuses.
pub(crate) struct Checker<'d> {
    pub(crate) document: &'d Value,
    before: &'d Value,
    pub(crate) seen: BTreeSet<(String, String)>,
}

impl<'d> Checker<'d> {
    pub(crate) fn new(document: &'d Value, before: &'d Value) -> Self {
        Self { document, before, seen: BTreeSet::new() }
    }

    /// The description of an operation's response, if the document has it.
    fn described<'v>(document: &'v Value, id: &str, status: &str) -> Option<&'v Value> {
        let (_, _, operation) = operations(document).find(|(_, _, operation)| operation["operationId"] == id)?;
        operation["responses"].get(status).map(|described| resolved(document, described))
    }

    pub(crate) fn fits(&self, schema: &Value, value: &Value) -> Result<(), String> {
        fits(self.document, schema, value)
    }

    /// Sends a request and checks the response, which is JSON.
    pub(crate) async fn check(&mut self, id: &str, expected: u16, request: RequestBuilder) -> Value {
        let answer = request.send().await.unwrap();
        let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
        let body: Value = answer.json().await.unwrap();
        assert_eq!(status, expected, "{id}: {body}");
        self.answered(id, status, &headers, &body);
        body
    }

    /// Checks a response. A body that is not JSON is text.
    pub(crate) fn answered(&mut self, id: &str, status: u16, headers: &HeaderMap, body: &Value) {
        let status = status.to_string();
        let described = Self::described(self.document, id, &status);
        let described = described.unwrap_or_else(|| panic!("{id} answered {status}, which is not documented: {body}"));
        for (name, header) in described["headers"].as_object().unwrap() {
            let header = resolved(self.document, header);
            match headers.get(name).map(|value| value.to_str().unwrap()) {
                Some(value) => {
                    let is_number = header["schema"]["type"] == "integer";
                    let value = if is_number { value.parse::<u64>().unwrap().into() } else { Value::from(value) };
                    self.fits(&header["schema"], &value).unwrap_or_else(|fault| panic!("{id} {name}: {fault}"));
                }
                None => assert_ne!(header["required"], true, "{id} {status} lacks {name}"),
            }
        }
        let kind = match headers["content-type"].to_str().unwrap() {
            "text/csv; charset=utf-8" => "text/csv",
            "text/html; charset=utf-8" => "text/html",
            kind => kind,
        };
        let before = Self::described(self.before, id, &status).map(|described| (self.before, described));
        for (document, described) in [(self.document, described)].into_iter().chain(before) {
            let schema = &described["content"][kind]["schema"];
            assert!(schema.is_object(), "{id} {status} is {kind}");
            fits(document, schema, body).unwrap_or_else(|fault| panic!("{id} {status}: {fault} in {body}"));
        }
        self.seen.insert((id.to_owned(), status));
    }
}
