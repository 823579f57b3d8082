//! `/gateways`: where gateways send customers back to, and where they send events. Neither is believed: both are a reason
//! to ask the gateway itself.

use std::{sync::Arc, time::Duration};

use payments_core::PaymentId;
use serde_json::json;
use tokio::time::timeout;
use warp::http::StatusCode;

use super::{page::see_other, reply, request::Request, route::Outcome};
use crate::service::{Hint, Refused};

/// How long a customer who comes back waits for the gateway's word before the page says that it is being asked.
const WAIT: Duration = Duration::from_secs(8);

pub(super) async fn back_from_bkash(request: Request) -> Outcome {
    let hint = match request.query("status").as_deref() {
        Some("success") => Hint::Approved,
        Some("failure" | "cancel") => Hint::GaveUp,
        _ => Hint::None,
    };
    back(request, hint).await
}

pub(super) async fn back_from_stripe(request: Request) -> Outcome {
    let hint = match request.query("outcome").as_deref() {
        Some("success") => Hint::Approved,
        Some("cancel") => Hint::GaveUp,
        _ => Hint::None,
    };
    back(request, hint).await
}

/// Asks the gateway and shows the customer the truth: the shop if it is paid, else the page that says how it stands.
async fn back(request: Request, hint: Hint) -> Outcome {
    let id = request.param("id");
    let page = format!("/checkout/{}", url::form_urlencoded::byte_serialize(id.as_bytes()).collect::<String>());
    let Ok(payment) = id.parse::<PaymentId>() else { return Ok(see_other(&page)) };
    // Apart from this request, which ends with the customer's patience: an answer about money is worth waiting for.
    let service = Arc::clone(request.service());
    let settling = service.tasks.clone().spawn(async move { service.come_back(&payment, hint).await });
    match timeout(WAIT, settling).await {
        Ok(Ok(Ok(Some(shop)))) => Ok(see_other(&shop)),
        // The page explains everything else, an unknown payment too.
        _ => Ok(see_other(&page)),
    }
}

/// An event of the card processor. All of them come from a few addresses, so its route is not limited by address.
pub(super) async fn stripe_event(mut request: Request) -> Outcome {
    // Without a card processor the body is not read.
    request.service().gateways.card_processor().map_err(Refused::from)?;
    let body = request.read_body().await?;
    let signature = request.headers.get("stripe-signature").map_or(&b""[..], |value| value.as_bytes());
    request.service().take_event(signature, &body).await?;
    reply::json(StatusCode::OK, &json!({"received": true}))
}
