//! `/api/v1/payments`: create, retrieve, list, refund.

use std::sync::Arc;

use payments_core::{CreatePayment, CreateRefund, ErrorCode, Invalid, PageRequest, Status};
use warp::http::StatusCode;

use super::{
    idempotent::{Lookup, idempotent},
    reply,
    request::Request,
    route::Outcome,
};
use crate::service::Caller;

pub(super) async fn create(caller: Caller, request: Request) -> Outcome {
    let service = Arc::clone(request.service());
    idempotent(caller, request, StatusCode::CREATED, Lookup::ByCommit, |caller, body, identity| async move {
        let params = CreatePayment::from_json(&body, caller.scope.environment)?;
        service.create_payment(&caller, params, identity.as_ref()).await
    })
    .await
}

pub(super) async fn retrieve(caller: Caller, request: Request) -> Outcome {
    Ok(reply::payment(request.service().payment(&caller, request.id()).await?))
}

pub(super) async fn refund(caller: Caller, request: Request) -> Outcome {
    let (service, id) = (Arc::clone(request.service()), request.id().to_owned());
    idempotent(caller, request, StatusCode::OK, Lookup::First, |caller, body, identity| async move {
        let params = CreateRefund::from_json(&body)?;
        service.refund_payment(&caller, &id, params, identity.as_ref()).await
    })
    .await
}

pub(super) async fn list(caller: Caller, request: Request) -> Outcome {
    let mut invalid = Invalid::default();
    let page = request.page().unwrap_or_else(|faults| {
        invalid.append(faults);
        PageRequest::default()
    });
    let status = request.query("status").and_then(|word| match Status::known(&word) {
        Some(status) => Some(status),
        None => {
            let words = Status::KNOWN.iter().map(Status::as_str).collect::<Vec<_>>().join(", ");
            invalid.add("status", ErrorCode::FieldInvalid, format_args!("must be one of {words}"), None)
        }
    });
    let page = invalid.or(page)?;
    Ok(reply::payments(&request.service().payments(&caller, status.as_ref(), page).await?))
}
