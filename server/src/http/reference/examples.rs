//! Real requests and answers, one for each operation. A test compares them with the server.

use serde_json::Value;

use super::{
    document::text,
    snippets::{self, Call, Snippet, json_text},
};

const RECORDED: &str = include_str!("../../../docs/examples.json");
/// The base URL of the server that answered.
const RECORDED_AT: &str = "http://127.0.0.1:8080";

/// Operations that the page does not send. The first two delete data. The last one also accepts the session of a live
/// payment.
const NOT_TRIED: [&str; 3] = ["removeWebhook", "resetSandbox", "payCheckout"];

/// The examples of all operations, as if recorded at this base URL.
pub(super) fn read(base_url: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(&RECORDED.replace(RECORDED_AT, base_url))
}

pub(super) struct Example {
    pub(super) snippets: Vec<Snippet>,
    pub(super) status: String,
    /// The recorded answer; empty if the page leaves it out.
    pub(super) answer: String,
    /// The value of `{id}` in the path, or empty.
    pub(super) id: String,
    pub(super) query: String,
    /// The body, or empty.
    pub(super) body: String,
    pub(super) takes_idempotency_key: bool,
    /// Whether the page offers to send the request.
    pub(super) can_be_tried: bool,
}

impl Example {
    pub(super) fn of(
        operation: &Value,
        method: &str,
        template: &str,
        recorded: &Value,
        base_url: &str,
        key: &str,
    ) -> Self {
        let name = text(&operation["operationId"]);
        let path = text(&recorded["path"]);
        let (bare, query) = path.split_once('?').unwrap_or((path, ""));
        let id = template
            .split_once("{id}")
            .and_then(|(before, after)| bare.strip_prefix(before).and_then(|rest| rest.strip_suffix(after)));
        let (id, answer) = (id.unwrap_or_default(), &recorded["answer"]);
        let body = Some(&recorded["body"]).filter(|body| !body.is_null());
        let call = Call {
            method: method.to_owned(),
            url: format!("{base_url}{path}"),
            key: operation["security"].is_null().then_some(key),
            idempotency_key: recorded["idempotencyKey"].as_str(),
            body,
            answers_json: !answer.is_string(),
        };
        Self {
            snippets: call.snippets(snippets::rust(name, base_url, key, id).unwrap_or_default()),
            status: recorded["status"].to_string(),
            answer: match answer {
                Value::Null => String::new(),
                Value::String(text) => text.clone(),
                json => format!("{json:#}"),
            },
            id: id.to_owned(),
            query: query.to_owned(),
            body: body.map(json_text).unwrap_or_default(),
            takes_idempotency_key: call.idempotency_key.is_some(),
            can_be_tried: !NOT_TRIED.contains(&name),
        }
    }
}
