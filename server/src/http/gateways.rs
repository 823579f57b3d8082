//! `/gateways`: where gateways send customers back to, and where they send word. Neither is believed: both are a reason to
//! ask the gateway itself.

use std::{sync::Arc, time::Duration};

use payments_core::PaymentId;
use serde_json::json;
use tokio::time::timeout;
use warp::{
    Filter,
    http::{Method, StatusCode},
    reply::Response,
};

use super::{
    Routes, Server, at, first_of, gate,
    incoming::Incoming,
    limit::Verdict,
    page::see_other,
    reply::{self, Problem},
};
use crate::service::{Hint, Refused, Service};

/// How long a customer who comes back waits for the gateway's word before the page says that it is being asked.
const WAIT: Duration = Duration::from_secs(8);

pub(super) fn routes(server: &Arc<Server>) -> Routes {
    let at_events = Arc::clone(&server.service);
    let events = at(warp::path!("gateways" / "stripe" / "webhook").map(|| ()), move |(), incoming| {
        let service = Arc::clone(&at_events);
        async move {
            // Not limited by address: all of a processor's events come from a few.
            let mut response = event(&service, incoming).await.unwrap_or_else(Problem::into_response);
            Verdict::UNLIMITED.write(&mut response);
            response
        }
    });
    first_of([
        gate::keyless_with(server, warp::path!("gateways" / "bkash" / "return" / String), back_from_bkash),
        gate::keyless_with(server, warp::path!("gateways" / "stripe" / "return" / String), back_from_stripe),
        events,
    ])
}

async fn back_from_bkash(service: Arc<Service>, id: String, incoming: Incoming) -> Result<Response, Problem> {
    let hint = match incoming.query("status").as_deref() {
        Some("success") => Hint::Approved,
        Some("failure" | "cancel") => Hint::GaveUp,
        _ => Hint::None,
    };
    back(service, &id, incoming.method, hint).await
}

async fn back_from_stripe(service: Arc<Service>, id: String, incoming: Incoming) -> Result<Response, Problem> {
    let hint = match incoming.query("outcome").as_deref() {
        Some("success") => Hint::Approved,
        Some("cancel") => Hint::GaveUp,
        _ => Hint::None,
    };
    back(service, &id, incoming.method, hint).await
}

/// Asks the gateway and shows the customer the truth: the shop if it is paid, else the page that says how it stands.
async fn back(service: Arc<Service>, id: &str, method: Method, hint: Hint) -> Result<Response, Problem> {
    if method != Method::GET {
        return Err(Problem::MethodNotAllowed("GET, HEAD"));
    }
    let page = format!("/checkout/{}", url::form_urlencoded::byte_serialize(id.as_bytes()).collect::<String>());
    let Ok(payment) = id.parse::<PaymentId>() else { return Ok(see_other(&page)) };
    // Apart from this request, which ends with the customer's patience: an answer about money is worth waiting for.
    let settling = tokio::spawn(async move { service.come_back(&payment, hint).await });
    match timeout(WAIT, settling).await {
        Ok(Ok(Ok(Some(shop)))) => Ok(see_other(&shop)),
        // The page tells of whatever else there is, of an unknown payment as well.
        _ => Ok(see_other(&page)),
    }
}

/// An event of the card processor.
async fn event(service: &Service, mut incoming: Incoming) -> Result<Response, Problem> {
    if incoming.method != Method::POST {
        return Err(Problem::MethodNotAllowed("POST"));
    }
    // Without a card processor the body is not read.
    service.gateways.card_processor().map_err(Refused::from)?;
    let body = incoming.read_body().await?;
    let signature = incoming.headers.get("stripe-signature").map_or(&b""[..], |value| value.as_bytes());
    service.take_event(signature, &body).await?;
    reply::json(StatusCode::OK, &json!({"received": true}))
}
