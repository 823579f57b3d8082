//! Idempotent POSTs: repeated requests with one `Idempotency-Key` take effect once.

use std::sync::Arc;

use bytes::Bytes;
use payments_core::{ErrorCode, Invalid};
use warp::http::{HeaderMap, StatusCode};

use super::{reply, request::Request};
use crate::service::{Answer, Caller, IdempotentRequest, ServiceError};

/// When to look for the key's stored response.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Lookup {
    /// Before anything else, because the request has an effect outside the store.
    First,
    /// In the commit, which refuses a used key. This saves a read.
    ByCommit,
}

/// Reads the body and calls the handler, or returns the stored response if the idempotency key was used before.
pub(super) async fn idempotent<F>(
    caller: Caller,
    mut request: Request,
    success: StatusCode,
    lookup: Lookup,
    handler: impl FnOnce(Caller, Bytes, Option<IdempotentRequest>) -> F,
) -> reply::Outcome
where
    F: Future<Output = Result<Answer, ServiceError>>,
{
    let key = idempotency_key(request.headers())?;
    let body = request.read_json().await?;
    let path = request.route_path();
    let identity = key.map(|key| IdempotentRequest::new(&caller.scope, "POST", &path, &key, &body));
    let service = request.service();
    if lookup == Lookup::First
        && let Some(identity) = &identity
        && let Some(stored) = service.replay(identity).await?
    {
        return answered(&caller, success, stored);
    }
    let answer = match handler(Arc::clone(&caller), body, identity.clone()).await {
        Ok(answer) => answer,
        // Of two concurrent identical requests, the second may fail because of the first one's effect, such as a refund. Then
        // both get the response that was stored with the effect. If the store cannot be read, the answer is unknown.
        Err(error) => match &identity {
            Some(identity) => service.replay(identity).await?.ok_or(error)?,
            None => return Err(error.into()),
        },
    };
    answered(&caller, success, answer)
}

/// The response. A stored response about a payment that the key may not see belongs to another request.
fn answered(caller: &Caller, success: StatusCode, answer: Answer) -> reply::Outcome {
    match answer.replayed && !caller.sees(answer.body.as_str()) {
        true => Err(ServiceError::IdempotencyKeyReused.into()),
        false => Ok(reply::answer(success, answer)),
    }
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<String>, Invalid> {
    let mut values = headers.get_all("idempotency-key").iter();
    let Some(value) = values.next() else { return Ok(None) };
    let text = value
        .to_str()
        .ok()
        .filter(|text| (1..=255).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic()));
    match (text, values.next()) {
        (Some(text), None) => Ok(Some(text.to_owned())),
        _ => {
            let sentence = "Idempotency-Key must be 1 to 255 visible ASCII characters, sent once";
            Err(Invalid::new(ErrorCode::IdempotencyKeyInvalid, sentence))
        }
    }
}
