//! `/gateways`: customers returning from a gateway, and notices of gateways. Neither is trusted; both trigger a query to the
//! gateway.

use std::{sync::Arc, time::Duration};

use payments_core::PaymentId;
use tokio::time::timeout;
use warp::http::{Method, StatusCode, header};

use super::{
    reply::{self, ApiError, Outcome, see_other},
    request::Request,
};

/// How long a returning customer waits for the gateway before the checkout page shows that the payment is processing.
const WAIT: Duration = Duration::from_secs(8);

/// Queries the gateway, then redirects the customer to the shop if the payment is paid, else to the checkout page. The query,
/// or the form of a `POST` from the gateway's page, says in the gateway's words what the customer did.
pub(super) async fn customer_returned(mut request: Request) -> Outcome {
    let form = match request.method() == Method::POST {
        true => request.read_body().await?,
        false => bytes::Bytes::new(),
    };
    let find = |name: &str| {
        let mut pairs = url::form_urlencoded::parse(&form);
        request.query(name).or_else(|| pairs.find(|(it, _)| it == name).map(|(_, value)| value.into_owned()))
    };
    let Some(declared) = request.gateway() else { return Err(ApiError::no_such_path()) };
    let back = declared.returns.read(find);
    let id = request.id();
    let page = format!("/checkout/{}", url::form_urlencoded::byte_serialize(id.as_bytes()).collect::<String>());
    let Ok(payment) = id.parse::<PaymentId>() else { return Ok(see_other(&page)) };
    if request.is_ahead_of_its_user() {
        return Ok(see_other(&page));
    }
    match timeout(WAIT, request.service().confirm_return(payment, back)).await {
        Ok(Ok(Some(shop))) => Ok(see_other(&shop)),
        // The page explains every other state, including an unknown payment.
        _ => Ok(see_other(&page)),
    }
}

/// Handles a notice. All notices come from the gateway's few addresses, so the route has no rate limit.
pub(super) async fn notice(mut request: Request) -> Outcome {
    let declared = request.gateway().filter(|declared| declared.notice_bytes.is_some());
    let Some(declared) = declared else { return Err(ApiError::no_such_path()) };
    let service = Arc::clone(request.service());
    let headers = request.headers().clone();
    // Refuse before reading the body: the server may lack the gateway, and the body may not matter.
    service.check_notice(declared, &headers)?;
    let body = request.read_large_body(declared.notice_bytes.unwrap_or_default()).await?;
    service.take_notice(declared, &headers, &body.bytes).await?;
    let (kind, answer) = declared.notice_answer;
    Ok(reply::response(StatusCode::OK, answer, [(header::CONTENT_TYPE, kind)]))
}
