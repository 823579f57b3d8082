//! The two versions of the API: v1.2.0-beta and v2. They differ in paths, field names and shapes.

use http::{Method, StatusCode};
use serde_json::{Map, Value, json};

use super::answers::{Refusal, text};
use crate::{Answer, Call};

/// A version of the API.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Dialect {
    #[default]
    V1,
    V2,
}

/// A call of the API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    Grant,
    Refresh,
    Create,
    Execute,
    Query,
    Search,
    Refund,
    RefundStatus,
}

use Dialect::{V1, V2};
use Operation::{Create, Execute, Grant, Query, Refresh, Refund, RefundStatus, Search};

const BASES: [(Dialect, &str); 2] = [(V1, "/v1.2.0-beta/tokenized/checkout"), (V2, "/v2/tokenized-checkout")];

/// The names of v1 that v2 changes.
const RENAMED: [(&str, &str); 5] = [
    ("paymentID", "paymentId"),
    ("trxID", "trxId"),
    ("customerMsisdn", "payerAccount"),
    ("originalTrxID", "originalTrxId"),
    ("refundTrxID", "refundTrxId"),
];

/// The version and the operation of a call. The operation is `None` if the version has no such path.
pub(super) fn route(call: &Call) -> Option<(Dialect, Option<Operation>)> {
    let (dialect, path) =
        BASES.iter().find_map(|(dialect, base)| call.path.strip_prefix(base).map(|path| (*dialect, path)))?;
    let operation = match (dialect, path) {
        (V1, "/token/grant") | (V2, "/auth/grant-token") => Grant,
        (V1, "/token/refresh") | (V2, "/auth/refresh-token") => Refresh,
        (V1, "/create") | (V2, "/payment/create") => Create,
        (V1, "/execute") | (V2, "/payment/execute") => Execute,
        (V1, "/payment/status") | (V2, "/query/payment") => Query,
        (V1, "/general/searchTransaction") | (V2, "/general/search-transaction") => Search,
        (V1, "/payment/refund") if is_status(call) => RefundStatus,
        (V1, "/payment/refund") | (V2, "/refund/payment/transaction") => Refund,
        (V2, "/refund/payment/status") => RefundStatus,
        _ => return Some((dialect, None)),
    };
    Some((dialect, Some(operation).filter(|_| call.method == Method::POST)))
}

/// Whether a call of v1's refund path has no amount, and so asks for the status.
fn is_status(call: &Call) -> bool {
    serde_json::from_slice::<Value>(&call.body).is_ok_and(|body| body.get("amount").is_none())
}

impl Operation {
    /// The operation's name for faults.
    pub(super) fn name(self) -> &'static str {
        match self {
            Grant | Refresh => "token",
            Create => "create",
            Execute => "execute",
            Query => "status",
            Search => "other",
            Refund => "refund",
            RefundStatus => "refund_status",
        }
    }
}

impl Dialect {
    /// This version's name of a field of v1.
    pub(super) fn name(self, name: &'static str) -> &'static str {
        let renamed = RENAMED.iter().find(|(v1, _)| self == V2 && *v1 == name);
        renamed.map_or(name, |(_, v2)| v2)
    }

    /// The text of a body's field, which has this name in v1.
    pub(super) fn text<'b>(self, body: &'b Value, name: &'static str) -> Option<&'b str> {
        text(body, self.name(name))
    }

    /// Reports success in this version, from fields with the names of v1. Version 2 has no status code.
    pub(super) fn success(self, fields: Value) -> Answer {
        let Value::Object(mut fields) = fields else { return Answer::ok(&fields) };
        match self {
            V1 => {
                fields.insert("statusCode".into(), "0000".into());
                fields.insert("statusMessage".into(), "Successful".into());
            }
            V2 => rename(&mut fields),
        }
        Answer::ok(&fields.into())
    }

    /// Reports a failure in this version.
    pub(super) fn failure(self, refusal: &Refusal) -> Answer {
        let Refusal(code, message) = refusal;
        let lower = message.to_lowercase();
        let words = lower.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
        let internal = words.collect::<Vec<_>>().join("_");
        let body = json!({"internalCode": internal, "externalCode": code, "errorMessageEn": message,
            "errorMessageBn": "অনুরোধটি সফল হয়নি"});
        match (self, *code) {
            (V1, "2002") => Answer::ok(&json!({"errorCode": code, "errorMessage": message})),
            // Version 1 has three shapes for failures.
            (V1, "2029") => Answer::ok(&body),
            (V1, _) => Answer::ok(&json!({"statusCode": code, "statusMessage": message})),
            (V2, _) => Answer::json(StatusCode::BAD_REQUEST, &body),
        }
    }

    /// The response in this version.
    pub(super) fn answer(self, result: Result<Value, Refusal>) -> Answer {
        match result {
            Ok(fields) => self.success(fields),
            Err(refusal) => self.failure(&refusal),
        }
    }
}

fn rename(fields: &mut Map<String, Value>) {
    for (v1, v2) in RENAMED {
        if let Some(value) = fields.remove(v1) {
            fields.insert(v2.into(), value);
        }
    }
}
