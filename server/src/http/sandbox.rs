//! `/api/v1/sandbox`: resets a developer's own sandbox and advances its time.

use payments_core::{AdvanceSandbox, Fields};
use serde_json::json;

use super::{reply, request::Request};
use crate::service::Caller;

pub(super) async fn reset(caller: Caller, mut request: Request) -> reply::Outcome {
    // The request has no parameters; its body may be empty.
    let body = request.read_json().await?;
    Fields::of_body(if body.is_empty() { b"{}" } else { &body })?;
    request.service().reset_sandbox(&caller).await?;
    reply::ok(&json!({"success": true, "message": "the sandbox is empty"}))
}

pub(super) async fn advance(caller: Caller, mut request: Request) -> reply::Outcome {
    let params = AdvanceSandbox::from_json(&request.read_json().await?)?;
    reply::ok(&request.service().advance_sandbox(&caller, params.seconds).await?)
}
