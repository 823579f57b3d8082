//! `/api/v1/payouts`: request, retrieve, list, cancel, what a payout pays, and where and when payouts go.

use std::sync::Arc;

use payments_core::{CreatePayout, PayoutQuery, SetDestination, SetPayoutSchedule, TransactionQuery};
use warp::http::StatusCode;

use super::{
    idempotent::{Lookup, idempotent},
    reply::{self, ApiError},
    request::Request,
    transactions::{self, ALSO_NEEDED},
};
use crate::service::Caller;

pub(super) async fn create(caller: Caller, request: Request) -> reply::Outcome {
    request.without_query()?;
    let service = Arc::clone(request.service());
    idempotent(caller, request, StatusCode::CREATED, Lookup::ByCommit, |caller, body, identity| async move {
        service.request_payout(&caller, CreatePayout::from_json(&body)?, identity.as_ref()).await
    })
    .await
}

pub(super) async fn list(caller: Caller, request: Request) -> reply::Outcome {
    let query = PayoutQuery::from_query(|name| request.query(name))?;
    reply::ok(&request.service().payouts(&caller, &query).await?)
}

pub(super) async fn retrieve(caller: Caller, request: Request) -> reply::Outcome {
    reply::ok(&request.service().payout(&caller, request.id()).await?)
}

pub(super) async fn cancel(caller: Caller, request: Request) -> reply::Outcome {
    request.without_query()?;
    reply::ok(&request.service().cancel_payout(&caller, request.id()).await?)
}

pub(super) async fn transactions(caller: Caller, request: Request) -> reply::Outcome {
    ApiError::unless_permitted(&caller, ALSO_NEEDED)?;
    let query = TransactionQuery::from_query(in_statement(&request))?;
    reply::ok(&request.service().payout_transactions(&caller, request.id(), query).await?)
}

pub(super) async fn table(caller: Caller, request: Request) -> reply::Outcome {
    ApiError::unless_permitted(&caller, ALSO_NEEDED)?;
    let (query, mark) = transactions::table_query(in_statement(&request))?;
    let page = request.service().payout_transactions(&caller, request.id(), query).await?;
    transactions::table_of(&page, mark)
}

/// The query parameters. A statement has one currency.
fn in_statement(request: &Request) -> impl Fn(&str) -> Option<String> {
    move |name| if name == "currency" { None } else { request.query(name) }
}

pub(super) async fn accounts(caller: Caller, request: Request) -> reply::Outcome {
    reply::ok(&request.service().payout_accounts(&caller).await?)
}

pub(super) async fn set_destination(caller: Caller, mut request: Request) -> reply::Outcome {
    request.without_query()?;
    let params = SetDestination::from_json(&request.read_json().await?)?;
    reply::ok(&request.service().set_destination(&caller, params).await?)
}

pub(super) async fn set_schedule(caller: Caller, mut request: Request) -> reply::Outcome {
    request.without_query()?;
    let params = SetPayoutSchedule::from_json(&request.read_json().await?)?;
    reply::ok(&request.service().set_payout_schedule(&caller, params).await?)
}
