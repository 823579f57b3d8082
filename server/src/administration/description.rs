//! The OpenAPI document of the administration API, made from the table of routes and the types of requests and answers.

use std::sync::LazyLock;

use schemars::{SchemaGenerator, generate::SchemaSettings};
use serde_json::{Map, Value, json};

use super::{
    message::{kinds_of, schema_of},
    routes::{AdminRoute, PREFIX, ROUTES},
};
use crate::service::AdminReply;

static DOCUMENT: LazyLock<String> = LazyLock::new(|| {
    let settings = SchemaSettings::openapi3().with(|settings| settings.inline_subschemas = true);
    let answers = SchemaGenerator::new(settings).into_root_schema_for::<AdminReply>().to_value();
    let answers = answers["anyOf"].as_array().cloned().unwrap_or_default();
    let mut paths = Map::new();
    for row in ROUTES {
        let path = paths.entry(format!("{PREFIX}{}", row.path)).or_insert_with(|| json!({}));
        path[row.method.to_lowercase()] = operation(row, &answers);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Payments administration",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "What operators do. Send a platform key: `Authorization: Bearer adm_…`.",
        },
        "security": [{"platformKey": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"platformKey": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Error": {
                "type": "object",
                "description": "Why the request failed, and what to do.",
                "required": ["code", "message"],
                "properties": {"code": {"type": "string"}, "message": {"type": "string"}},
            }},
        },
    })
    .to_string()
});

pub(super) fn document() -> &'static str {
    &DOCUMENT
}

fn operation(row: &AdminRoute, answers: &[Value]) -> Value {
    let mut schema = schema_of(row);
    let (verb, action) = row.request;
    let summary = schema["description"].take();
    let kinds = kinds_of(row);
    let mut parameters: Vec<Value> = row
        .parameters()
        .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}))
        .collect();
    if let Some(properties) = schema["properties"].as_object_mut() {
        row.parameters().for_each(|name| drop(properties.remove(name)));
    }
    if let Some(required) = schema["required"].as_array_mut() {
        required.retain(|name| !row.parameters().any(|parameter| name == parameter));
    }
    let answer = answers.iter().find(|it| it["properties"].get(row.answer).is_some()).cloned().unwrap_or_default();
    let of_path = row.path.replace(|it: char| !it.is_ascii_alphanumeric(), " ");
    let is_repeated = ROUTES.iter().filter(|other| other.request == row.request).count() > 1;
    let mut name = action.map_or_else(|| verb.to_owned(), |action| format!("{verb}_{action}"));
    if is_repeated {
        let method = row.method.to_lowercase();
        name = format!("{name}_{method}_{}", of_path.split_whitespace().collect::<Vec<_>>().join("_"));
    }
    let mut operation = json!({
        "operationId": name,
        "summary": summary,
        "description": format!("Needs the permission `{}`.", row.needs),
        "responses": {
            "200": {"description": "Done.", "content": {"application/json": {"schema": answer}}},
            "default": {"description": "Refused or failed.", "content": {"application/json": {
                "schema": {"$ref": "#/components/schemas/Error"},
            }}},
        },
    });
    if row.method == "GET" {
        let in_query = kinds.iter().filter(|(name, _)| !row.parameters().any(|parameter| parameter == *name));
        parameters.extend(in_query.map(|(name, kind)| json!({"name": name, "in": "query", "schema": kind})));
    } else {
        operation["requestBody"] = json!({"content": {"application/json": {"schema": schema}}});
    }
    operation["parameters"] = parameters.into();
    operation
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_operation_has_a_summary_an_answer_and_a_name_of_its_own() {
        let document: Value = serde_json::from_str(document()).unwrap();
        let mut names = std::collections::BTreeSet::new();
        for row in ROUTES {
            let operation = &document["paths"][format!("{PREFIX}{}", row.path)][row.method.to_lowercase()];
            let name = operation["operationId"].as_str().unwrap().to_owned();
            assert!(operation["summary"].is_string(), "{name}: {operation}");
            assert!(operation["responses"]["200"]["content"]["application/json"]["schema"].is_object(), "{name}");
            assert!(names.insert(name));
            let fields: std::collections::BTreeSet<_> = kinds_of(row).into_keys().collect();
            assert!(row.parameters().all(|parameter| fields.contains(parameter)), "{} {fields:?}", row.path);
        }
    }
}
