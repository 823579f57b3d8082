//! The description holds nothing that a generator of clients is known to take wrongly. `server/tests/clients` runs five
//! generators; these rules keep new fields within what they can read.

use std::collections::BTreeMap;

use serde_json::Value;

/// Every schema that generators read, with the path to it. They do not read `dependentSchemas`, `not`, `if`, `then` and
/// `else`, so these are free to say what the rules below keep out.
fn schemas() -> Vec<(String, Value)> {
    let document: Value = serde_json::from_str(include_str!("../../openapi.json")).unwrap();
    let mut found = Vec::new();
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        collect(name.clone(), schema, &mut found);
    }
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            for (status, answer) in operation["responses"].as_object().unwrap() {
                let schema = &answer["content"]["application/json"]["schema"];
                collect(format!("{method} {path} {status}"), schema, &mut found);
            }
        }
    }
    found
}

fn collect(path: String, schema: &Value, found: &mut Vec<(String, Value)>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        collect(format!("{path}.{name}"), property, found);
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        for (place, form) in schema[keyword].as_array().into_iter().flatten().enumerate() {
            collect(format!("{path} {keyword} {place}"), form, found);
        }
    }
    if schema["items"].is_object() {
        collect(format!("{path}[]"), &schema["items"], found);
    }
    found.push((path, schema.clone()));
}

/// Fails with the paths of the schemas that break a rule.
fn hold(rule: &str, keeps: impl Fn(&Value) -> bool) {
    let broken: Vec<String> =
        schemas().into_iter().filter(|(_, schema)| !keeps(schema)).map(|(path, _)| path).collect();
    assert!(broken.is_empty(), "{rule}: {broken:?}");
}

fn is_of(schema: &Value, kind: &str) -> bool {
    schema["type"] == kind || schema["type"].as_array().is_some_and(|kinds| kinds.iter().any(|one| one == kind))
}

#[test]
fn generated_clients_give_each_field_of_an_object_its_own_name() {
    let rule = "generators make checkoutUrl and checkout_url the same name; describe the alias in dependentSchemas";
    hold(rule, |schema| {
        let mut names: BTreeMap<String, usize> = BTreeMap::new();
        for (name, _) in schema["properties"].as_object().into_iter().flatten() {
            *names.entry(name.replace(['_', '-'], "").to_lowercase()).or_default() += 1;
        }
        names.values().all(|count| *count == 1)
    });
}

#[test]
fn no_boolean_schema_is_an_enum() {
    let rule = "openapi-generator compares a boolean with the text of the enum; use not and const";
    hold(rule, |schema| !is_of(schema, "boolean") || (schema["enum"].is_null() && schema["const"].is_null()));
}

#[test]
fn no_schema_uses_one_of() {
    let rule =
        "openapi-generator finds that more than one form of a oneOf fits; describe one object with optional fields";
    hold(rule, |schema| schema["oneOf"].is_null());
}

#[test]
fn no_schema_has_a_default() {
    hold("openapi-typescript requires a field with a default; say it in the description", |schema| {
        schema["default"].is_null()
    });
}

#[test]
fn free_form_objects_declare_additional_properties() {
    hold("openapi-typescript lets such an object have no field; say additionalProperties: true", |schema| {
        !is_of(schema, "object") || !schema["properties"].is_null() || schema["additionalProperties"] == true
    });
}
