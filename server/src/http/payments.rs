//! `/api/v1/payments`: create, retrieve, list, refund, simulate; the timeline.

use std::sync::Arc;

use payments_core::{CreatePayment, CreateRefund, PaymentQuery, SimulatePayment};
use warp::http::StatusCode;

use super::{
    idempotent::{Lookup, idempotent},
    people::Person,
    reply,
    request::Request,
    summary::summary,
};
use crate::{gateway, service::Caller};

pub(super) async fn create(caller: Caller, request: Request) -> reply::Outcome {
    let service = Arc::clone(request.service());
    idempotent(caller, request, StatusCode::CREATED, Lookup::ByCommit, |caller, body, identity| async move {
        let params = CreatePayment::from_json(&body, caller.scope.environment)?;
        service.create_payment(&caller, params, identity.as_ref()).await
    })
    .await
}

pub(super) async fn timeline(caller: Caller, request: Request) -> reply::Outcome {
    let (mut timeline, told) = request.service().timeline(&caller, request.id()).await?;
    timeline.summary = Some(summary(&told, |attempt| gateway::title(attempt.gateway)));
    reply::ok(&timeline)
}

pub(super) async fn retrieve(caller: Caller, request: Request) -> reply::Outcome {
    reply::ok_text(request.service().payment(&caller, request.id()).await?.0)
}

pub(super) async fn refund(caller: Caller, request: Request) -> reply::Outcome {
    request.without_query()?;
    let (service, id) = (Arc::clone(request.service()), request.id().to_owned());
    let caps = request.person.as_ref().and_then(Person::refund_caps);
    idempotent(caller, request, StatusCode::OK, Lookup::First, |caller, body, identity| async move {
        let params = CreateRefund::from_json(&body)?;
        service.refund_payment(&caller, &id, params, identity.as_ref(), caps.as_deref()).await
    })
    .await
}

pub(super) async fn simulate(caller: Caller, request: Request) -> reply::Outcome {
    request.without_query()?;
    let (service, id) = (Arc::clone(request.service()), request.id().to_owned());
    idempotent(caller, request, StatusCode::OK, Lookup::ByCommit, |caller, body, identity| async move {
        let params = SimulatePayment::from_json(&body)?;
        service.simulate_payment(&caller, &id, params, identity.as_ref()).await
    })
    .await
}

pub(super) async fn list(caller: Caller, request: Request) -> reply::Outcome {
    let query = PaymentQuery::from_query(|name| request.query(name))?;
    let page = request.service().payments(&caller, &query).await?;
    let is_empty = page.items.is_empty() && !page.has_more.unwrap_or_default();
    let page = match query.with_plus_in_reference().filter(|_| is_empty) {
        Some(query) => request.service().payments(&caller, &query).await?,
        None => page,
    };
    reply::ok_text(reply::page_text(&page))
}
