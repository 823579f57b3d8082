//! The OpenAPI document, as tests read it.

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
