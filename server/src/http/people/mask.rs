//! Masks customers' data in responses to people whose role does not see it.

use bytes::Bytes;
use http_body_util::BodyExt as _;
use payments_core::ErrorCode;
use serde_json::Value;
use tokio::sync::Semaphore;
use warp::{http::header, reply::Response};

use crate::http::reply::{ApiError, Outcome};

/// What stands in the place of a value.
const MASK: &str = "•••";
/// Members whose value is masked: the customer's data, under each name of the field, and what a shop's server answered, because
/// it may repeat the event.
const MASKED: [&str; 7] = [
    "customerName",
    "customer_name",
    "customerEmail",
    "customer_email",
    "customerPhone",
    "customer_phone",
    "responseBody",
];
/// Members with values of which each is masked. Their own names stay.
const MASKED_INSIDE: [&str; 2] = ["customer", "metadata"];

/// How many responses are masked at once, because each is in memory several times.
static PLACES: Semaphore = Semaphore::const_new(4);

/// Masks a response. Only JSON and pictures can be shown: tables and statements have the data in other forms.
pub(in crate::http) async fn masked(response: Response) -> Outcome {
    let kind = response.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    match kind {
        "application/json" => {}
        "image/svg+xml" => return Ok(response),
        _ => {
            let message = "your role does not see customers' data, which this document has; read the JSON instead";
            return Err(ApiError::new(ErrorCode::PermissionMissing, message));
        }
    }
    // The semaphore is never closed.
    let _place = PLACES.acquire().await;
    let (head, body) = response.into_parts();
    let text = body.collect().await.map_err(ApiError::internal)?.to_bytes();
    let mut value: Value = serde_json::from_slice(&text).map_err(ApiError::internal)?;
    drop(text);
    mask(&mut value);
    let text = serde_json::to_vec(&value).map_err(ApiError::internal)?;
    Ok(Response::from_parts(head, Bytes::from(text).into()))
}

fn mask(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(mask),
        Value::Object(members) => {
            for (name, value) in members {
                match value {
                    _ if MASKED.contains(&name.as_str()) => hide(value),
                    Value::Object(inside) if MASKED_INSIDE.contains(&name.as_str()) => {
                        inside.iter_mut().for_each(|(_, value)| hide(value));
                    }
                    _ if MASKED_INSIDE.contains(&name.as_str()) => hide(value),
                    _ => mask(value),
                }
            }
        }
        _ => {}
    }
}

/// What is not there stays so.
fn hide(value: &mut Value) {
    if !value.is_null() {
        *value = MASK.into();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;
    use warp::http::StatusCode;

    use super::*;
    use crate::http::reply;

    const SECRET: &str = "secret";

    /// JSON in which every masked place has the secret, and no other place has.
    fn values() -> impl Strategy<Value = Value> {
        let names = || MASKED.into_iter().chain(MASKED_INSIDE).chain(["id", "data", "payload", "name", "items"]);
        let leaf =
            prop_oneof![Just(json!(null)), Just(json!(7)), Just(json!(37.5)), "[a-d]{0,3}".prop_map(Value::from)];
        leaf.prop_recursive(5, 40, 5, move |inner| {
            let names: Vec<&str> = names().collect();
            let member = (proptest::sample::select(names), inner.clone()).prop_map(|(name, value)| {
                let value = match name {
                    _ if MASKED.contains(&name) => json!(SECRET),
                    "customer" => json!({"name": SECRET, "phone": null, "email": [SECRET]}),
                    "metadata" => json!({"order": SECRET, "deep": {"er": {"id": SECRET}}, "n": value}),
                    _ => value,
                };
                (name.to_owned(), value)
            });
            prop_oneof![
                proptest::collection::vec(inner, 0..4).prop_map(Value::from),
                proptest::collection::vec(member, 0..6)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    /// The value without the masked members.
    fn rest(value: &Value) -> Value {
        match value {
            Value::Array(items) => items.iter().map(rest).collect(),
            Value::Object(members) => {
                let is_masked = |name: &str| MASKED.contains(&name) || MASKED_INSIDE.contains(&name);
                let kept = members.iter().filter(|(name, _)| !is_masked(name));
                Value::Object(kept.map(|(name, value)| (name.clone(), rest(value))).collect())
            }
            other => other.clone(),
        }
    }

    proptest! {
        #[test]
        fn no_masked_value_survives_and_everything_else_stays(value in values()) {
            let mut masked = value.clone();
            mask(&mut masked);
            prop_assert!(!masked.to_string().contains(SECRET), "{masked}");
            prop_assert_eq!(rest(&masked), rest(&value));
        }
    }

    #[tokio::test]
    async fn json_is_masked_a_picture_is_shown_and_a_table_is_refused() {
        let body = json!({"amount": 37.5, "customerName": SECRET, "customer": {"name": SECRET, "email": null}});
        let shown = masked(reply::ok(&body).unwrap()).await.unwrap();
        let text = shown.into_body().collect().await.unwrap().to_bytes();
        let expected = json!({"amount": 37.5, "customerName": MASK, "customer": {"name": MASK, "email": null}});
        assert_eq!(serde_json::from_slice::<Value>(&text).unwrap(), expected);
        let picture = reply::response(StatusCode::OK, "<svg/>", [(header::CONTENT_TYPE, "image/svg+xml")]);
        assert_eq!(masked(picture).await.unwrap().status(), StatusCode::OK);
        let table = reply::response(StatusCode::OK, SECRET, [(header::CONTENT_TYPE, "text/csv; charset=utf-8")]);
        assert_eq!(masked(table).await.err().unwrap().status(), StatusCode::FORBIDDEN);
    }
}
