//! `/gateways`: customers returning from a gateway, and events from gateways. Neither is trusted; both trigger a query to
//! the gateway.

use std::{sync::Arc, time::Duration};

use payments_core::PaymentId;
use serde_json::json;
use tokio::time::timeout;

use super::{
    reply::{self, Outcome, see_other},
    request::Request,
};
use crate::service::{Hint, Return};

/// How long a returning customer waits for the gateway before the checkout page shows that the payment is processing.
const WAIT: Duration = Duration::from_secs(8);
/// Maximum length of an attempt's name at a gateway; a longer one names none.
const MAX_NAME_BYTES: usize = 255;
/// Maximum length of an event. The processor's longest ones have hundreds of lines.
const MAX_EVENT_BYTES: usize = 1024 * 1024;

/// Queries the gateway, then redirects the customer to the shop if the payment is paid, else to the checkout page. The query
/// parameter `word` says what the customer did, and `attempt` names the attempt, both in the gateway's words.
pub(super) async fn customer_returned(request: Request, word: &str, attempt: &str) -> Outcome {
    let hint = match request.query(word).as_deref() {
        Some("success") => Hint::Approved,
        Some("failure") => Hint::CouldNotPay,
        Some("cancel") => Hint::Cancelled,
        _ => Hint::None,
    };
    let back = Return { hint, attempt: request.query(attempt).filter(|name| name.len() <= MAX_NAME_BYTES) };
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

/// Handles an event of the card processor. All events come from its few addresses, so the route has no rate limit.
pub(super) async fn stripe_event(mut request: Request) -> Outcome {
    let service = Arc::clone(request.service());
    let signature = request.headers().get("stripe-signature").cloned();
    let signature = signature.as_ref().map_or(&b""[..], |value| value.as_bytes());
    // Refuse before reading the body: the server may have no card processor, and the body may not matter.
    service.check_signature(signature)?;
    let body = request.read_large_body(MAX_EVENT_BYTES).await?;
    let event = service.read_event(signature, &body.bytes).await?;
    drop(body);
    service.handle_event(event).await?;
    reply::ok(&json!({"received": true}))
}
