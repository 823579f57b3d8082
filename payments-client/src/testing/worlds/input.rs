//! What reaches a shop in a world, and what is true at its end.

use bytes::Bytes;
use payments_core::{Money, Payment, PaymentId};

/// What reaches the shop.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Input {
    /// A customer orders, or asks again for the checkout of an order. Create its payment, with the order's number as
    /// `merchantTransactionId`.
    Order(Order),
    /// A browser comes back from the checkout, or says so.
    Return(Return),
    /// A request arrives at the webhook endpoint.
    Webhook(Webhook),
    /// The shop's background task runs, such as one run of an inbox or a reconciliation.
    Tick,
}

/// A customer's order.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Order {
    /// Its number, such as `order-1`.
    pub number: String,
    /// What it costs.
    pub money: Money,
}

/// A request to the success URL or the cancel URL. Anybody can send it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Return {
    /// The order's number, which a shop has in the path or in a cookie.
    pub order: String,
    /// The parameter `payment_id`.
    pub payment_id: PaymentId,
    /// The parameter `status`, true or not.
    pub status: String,
}

/// A request to the shop's webhook endpoint. Anybody can send it.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Webhook {
    /// The header `x-service-signature`. Its time is that of the machine, as verifiers read it.
    pub signature: String,
    /// The header `x-service-event`, which is not signed.
    pub event: String,
    /// The body.
    pub body: Bytes,
}

impl Webhook {
    /// The names and values of the headers, for a router.
    #[must_use]
    pub fn headers(&self) -> [(&'static str, &str); 3] {
        [
            ("content-type", "application/json"),
            ("x-service-signature", &self.signature),
            ("x-service-event", &self.event),
        ]
    }
}

/// What is true at the end of a world.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Truth {
    /// The orders that customers placed.
    pub orders: Vec<PlacedOrder>,
    /// All payments, oldest first.
    pub payments: Vec<Payment>,
}

/// An order, and its payments.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct PlacedOrder {
    /// Its number.
    pub number: String,
    /// What it costs.
    pub money: Money,
    /// Its payments, oldest first. A shop that charges once has at most one.
    pub payments: Vec<Payment>,
}

impl PlacedOrder {
    /// Whether one of its payments was paid. It may be refunded since.
    #[must_use]
    pub fn was_paid(&self) -> bool {
        self.payments.iter().any(Payment::was_paid)
    }
}
