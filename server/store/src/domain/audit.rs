//! The audit log: who changed which fields.

use std::collections::BTreeMap;

use payments_core::{AuditChange, AuditEntry, DeveloperId, UnknownFields};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// How many changed fields an entry has at most. One more says how many others there are.
pub const MAX_CHANGES: usize = 30;
/// Maximum length of a value, in characters.
const MAX_VALUE: usize = 200;
/// Kinds of records that say nothing that an audited record does not say.
const LEFT_OUT: [&str; 7] = ["event", "delivery", "booking", "response", "claim", "log", "audit"];
/// Fields that change with every change.
const COUNTERS: [&str; 3] = ["version", "updated_at", "updatedAt"];
/// Parts of the names of fields with secrets.
const SECRETS: [&str; 4] = ["secret", "token", "sealed", "hash"];
/// Parts of the names of fields with a customer's data.
const PERSONAL: [&str; 4] = ["customer", "phone", "email", "payer"];
/// The only fields of a payment whose values the log shows. Others may hold a customer's data, as a refund's reason does.
const SHOWN_OF_PAYMENTS: [&str; 13] = [
    "id",
    "status",
    "rawstatus",
    "amount",
    "platformfeeamount",
    "netamount",
    "currency",
    "createdat",
    "paidat",
    "settledat",
    "settled_at",
    "resolved_at",
    "reference",
];
/// Kinds of records whose keys have a hash. The log names them by their ids.
const NAMED_BY_ID: [&str; 3] = ["api-key", "platform-key", "person-session"];

/// An entry of the audit log, and whose it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRecord {
    /// The developer who may read it; `None` for a change of the platform's own records.
    pub developer_id: Option<DeveloperId>,
    pub entry: AuditEntry,
}

impl AuditRecord {
    /// The entry with the fields that the change changed.
    #[must_use]
    pub fn with(&self, mut changes: Vec<AuditChange>) -> Self {
        let others = changes.len().saturating_sub(MAX_CHANGES);
        changes.truncate(MAX_CHANGES);
        if others > 0 {
            changes.push(change("", "", None, Some(format!("and {others} more fields"))));
        }
        let mut record = self.clone();
        record.entry.changes = changes;
        record
    }
}

/// The fields in which a record's texts differ, before and after a change.
pub fn differences(kind: &str, name: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> Vec<AuditChange> {
    if LEFT_OUT.contains(&kind) {
        return Vec::new();
    }
    let [mut before, mut after] = [before, after].map(fields);
    let id = after.get("id").or_else(|| before.get("id")).and_then(Value::as_str);
    let name = match id.filter(|_| NAMED_BY_ID.contains(&kind)) {
        Some(id) => format!("{kind}/{id}"),
        None => name.to_owned(),
    };
    before.retain(|field, value| match after.get(field) {
        Some(same) if same == value => {
            after.remove(field);
            false
        }
        _ => true,
    });
    let mut changed: BTreeMap<String, (Option<Value>, Option<Value>)> = BTreeMap::new();
    before.into_iter().for_each(|(field, value)| changed.entry(field).or_default().0 = Some(value));
    after.into_iter().for_each(|(field, value)| changed.entry(field).or_default().1 = Some(value));
    let shown = |field: &str, value: Option<Value>| value.map(|value| shown(kind, field, &value));
    changed
        .into_iter()
        .filter(|(field, _)| !COUNTERS.contains(&last_part(field)))
        .map(|(field, (before, after))| change(&name, &field, shown(&field, before), shown(&field, after)))
        .collect()
}

fn change(record: &str, field: &str, before: Option<String>, after: Option<String>) -> AuditChange {
    AuditChange { record: record.into(), field: field.into(), before, after, unknown: UnknownFields::new() }
}

/// The values of a record, by their places: `endpoint.url`.
fn fields(text: Option<&[u8]>) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    if let Some(value) = text.and_then(|text| serde_json::from_slice(text).ok()) {
        flatten(String::new(), value, &mut found);
    }
    found
}

fn flatten(place: String, value: Value, found: &mut BTreeMap<String, Value>) {
    let at = |name: &str| if place.is_empty() { name.to_owned() } else { format!("{place}.{name}") };
    match value {
        Value::Object(fields) => fields.into_iter().for_each(|(name, value)| flatten(at(&name), value, found)),
        Value::Array(items) => {
            items.into_iter().enumerate().for_each(|(nth, value)| flatten(at(&nth.to_string()), value, found));
        }
        Value::Null => {}
        value => drop(found.insert(place, value)),
    }
}

/// The name at the end of a field's place, without the position in a list.
fn last_part(field: &str) -> &str {
    let is_position = |part: &&str| part.bytes().all(|byte| byte.is_ascii_digit());
    field.rsplit('.').find(|part| !is_position(part)).unwrap_or(field)
}

/// What the log shows of a value: of a secret its last four characters, of a customer's data nothing.
fn shown(kind: &str, field: &str, value: &Value) -> String {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let field = field.to_ascii_lowercase();
    let is_of = |parts: &[&str]| parts.iter().any(|part| field.contains(part));
    if is_of(&PERSONAL) || (kind == "payment" && !SHOWN_OF_PAYMENTS.contains(&last_part(&field))) {
        return "…".to_owned();
    }
    if SECRETS.iter().any(|part| last_part(&field).contains(part)) {
        let last = text.char_indices().rev().nth(3).map_or("", |(at, _)| &text[at..]);
        return format!("…{last}");
    }
    match text.char_indices().nth(MAX_VALUE) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(kind: &str, before: Option<&str>, after: Option<&str>) -> Vec<String> {
        let text = |it: &Option<String>| it.clone().unwrap_or_else(|| "-".to_owned());
        let changes = differences(kind, "endpoint/wh_1", before.map(str::as_bytes), after.map(str::as_bytes));
        changes.iter().map(|it| format!("{} {}>{}", it.field, text(&it.before), text(&it.after))).collect()
    }

    #[test]
    fn each_changed_field_is_there_and_shows_of_a_secret_its_end_and_of_a_customer_nothing() {
        let before =
            r#"{"version": 1, "url": "https://a", "secret": "whsec_0123456789", "events": ["a", "b"], "gone": 1}"#;
        let after = r#"{"version": 2, "url": "https://b", "secret": "whsec_9876543210", "events": ["a"], "phone": "017", "x": null}"#;
        let expected = ["events.1 b>-", "gone 1>-", "phone ->…", "secret …6789>…3210", "url https://a>https://b"];
        assert_eq!(lines("endpoint", Some(before), Some(after)), expected);
        assert_eq!(lines("endpoint", Some(before), Some(before)), [""; 0]);
        assert_eq!(lines("event", Some(before), Some(after)), [""; 0]);
        let refund = r#"{"payment": {"status": "refunded", "refunds": [{"reason": "Rina Akter called"}]}}"#;
        assert_eq!(lines("payment", Some(refund), None), ["payment.refunds.0.reason …>-", "payment.status refunded>-"]);
        assert_eq!(lines("endpoint", None, Some(r#"{"token": "abc"}"#)), ["token ->…"], "a short secret has no end");
        let long = format!(r#"{{"name": "{}"}}"#, "আ".repeat(300));
        assert_eq!(lines("app", Some(&long), None), [format!("name {}…>-", "আ".repeat(MAX_VALUE))]);
    }
}
