//! The OpenAPI document avoids constructs that client generators misread. `server/tests/clients` runs five generators;
//! these rules apply to new fields.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::document::{self, fits, operations};

/// Every schema that generators read, with its path. They ignore `dependentSchemas`, `not`, `if`, `then` and `else`, so
/// the rules below do not apply there.
fn schemas() -> Vec<(String, Value)> {
    let document = document::open();
    let mut found = Vec::new();
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        collect(name.clone(), schema, &mut found);
    }
    for (path, method, operation) in operations(&document) {
        for (status, answer) in operation["responses"].as_object().unwrap() {
            let schema = &answer["content"]["application/json"]["schema"];
            collect(format!("{method} {path} {status}"), schema, &mut found);
        }
    }
    found
}

fn collect(path: String, schema: &Value, found: &mut Vec<(String, Value)>) {
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        collect(format!("{path}.{name}"), property, found);
    }
    for keyword in ["allOf", "anyOf", "oneOf"] {
        for (index, variant) in schema[keyword].as_array().into_iter().flatten().enumerate() {
            collect(format!("{path} {keyword} {index}"), variant, found);
        }
    }
    if schema["items"].is_object() {
        collect(format!("{path}[]"), &schema["items"], found);
    }
    found.push((path, schema.clone()));
}

/// Asserts a rule for every schema and reports the paths of those that break it.
fn assert_all(rule: &str, keeps: impl Fn(&Value) -> bool) {
    let broken: Vec<String> =
        schemas().into_iter().filter(|(_, schema)| !keeps(schema)).map(|(path, _)| path).collect();
    assert!(broken.is_empty(), "{rule}: {broken:?}");
}

fn is_of(schema: &Value, kind: &str) -> bool {
    schema["type"] == kind || schema["type"].as_array().is_some_and(|kinds| kinds.iter().any(|one| one == kind))
}

#[test]
fn generated_clients_give_each_field_of_an_object_its_own_name() {
    let rule = "generators give checkoutUrl and checkout_url the same name; declare the alias in dependentSchemas";
    assert_all(rule, |schema| {
        let mut names: BTreeMap<String, usize> = BTreeMap::new();
        for (name, _) in schema["properties"].as_object().into_iter().flatten() {
            *names.entry(name.replace(['_', '-'], "").to_lowercase()).or_default() += 1;
        }
        names.values().all(|count| *count == 1)
    });
}

#[test]
fn no_boolean_schema_is_an_enum() {
    let rule = "openapi-generator compares a boolean with the enum's text; use not and const";
    assert_all(rule, |schema| !is_of(schema, "boolean") || (schema["enum"].is_null() && schema["const"].is_null()));
}

#[test]
fn no_schema_uses_one_of() {
    let rule = "openapi-generator fails if several variants of a oneOf match; declare one object with optional fields";
    assert_all(rule, |schema| schema["oneOf"].is_null());
}

#[test]
fn no_schema_has_a_default() {
    assert_all(
        "openapi-typescript makes a field with a default required; name the default in the description",
        |schema| schema["default"].is_null(),
    );
}

#[test]
fn free_form_objects_declare_additional_properties() {
    assert_all("openapi-typescript gives a free-form object no fields; set additionalProperties: true", |schema| {
        !is_of(schema, "object") || !schema["properties"].is_null() || schema["additionalProperties"] == true
    });
}

/// Every object within a value of the document and within the schemas that it refers to, with its path.
fn objects_in<'d>(document: &'d Value, path: &str, value: &'d Value, found: &mut BTreeMap<String, &'d Value>) {
    if let Some(pointer) = value["$ref"].as_str()
        && !found.contains_key(pointer)
    {
        objects_in(document, pointer, document.pointer(&pointer[1..]).unwrap(), found);
    }
    if value.is_object() {
        found.insert(path.to_owned(), value);
    }
    for (name, inner) in value.as_object().into_iter().flatten() {
        objects_in(document, &format!("{path}/{name}"), inner, found);
    }
    for inner in value.as_array().into_iter().flatten() {
        objects_in(document, path, inner, found);
    }
}

#[test]
fn responses_are_open_to_later_fields_and_only_the_specifications_enums_are_fixed() {
    let currencies = json!(["BDT", "USD"]);
    let statuses = json!(["pending", "completed", "failed", "cancelled", "refunded", "expired"]);
    let raw_statuses =
        json!(["created", "pending", "processing", "paid", "failed", "cancelled", "expired", "refunded"]);
    let (simulated, environments, test) =
        (json!(["paid", "failed", "cancelled"]), json!(["live", "test"]), json!(["test"]));
    let (methods, method) = (json!(["mfs", "card", "test"]), json!(["mfs", "card", "test", null]));
    let headers = [json!(["true"]), json!(["*"]), json!(["Bearer"])];
    let fixed =
        [&[currencies, statuses, raw_statuses, simulated, environments, test, methods, method][..], &headers].concat();

    let document = document::open();
    let mut found = BTreeMap::new();
    for (path, method, operation) in operations(&document) {
        objects_in(&document, &format!("{method} {path}"), &operation["responses"], &mut found);
    }
    objects_in(&document, "webhooks", &document["webhooks"], &mut found);
    assert!(
        found.contains_key("#/components/schemas/Refund") && !found.contains_key("#/components/schemas/CreateRefund")
    );
    for (path, schema) in found {
        for keyword in ["additionalProperties", "unevaluatedProperties"] {
            assert_ne!(schema[keyword], false, "{path} is closed; leave {keyword} out, the tests close it");
        }
        let is_fixed = !schema["enum"].is_array() || fixed.contains(&schema["enum"]);
        assert!(is_fixed, "{path} is closed to later words; name today's in x-extensible-enum");
    }
}

#[test]
fn the_document_from_before_allows_answers_of_a_later_version_and_the_tests_of_this_one_do_not() {
    let later: Value = serde_json::from_str(include_str!("../clients/later.json")).unwrap();
    let examples: Value = serde_json::from_str(include_str!("../../docs/examples.json")).unwrap();
    let (before, open, closed) = (document::before(), document::open(), document::closed());
    for (name, fields) in later.as_object().unwrap() {
        let schema = json!({"$ref": format!("#/components/schemas/{name}")});
        let today = if name == "Payment" { examples["retrievePayment"]["answer"].clone() } else { json!({}) };
        let mut answer = today.clone();
        answer.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        for document in [&before, &open] {
            fits(document, &schema, &answer).unwrap_or_else(|fault| panic!("{name}: {fault}"));
        }
        let faults = fits(&closed, &schema, &answer).unwrap_err();
        assert!(faults.contains("nevaluated properties"), "{name}: {faults}");
        assert!(name == "Balances" || faults.contains("is not one of"), "{name}: {faults}");
    }
}
