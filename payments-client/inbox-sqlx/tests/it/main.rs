//! The inbox over a real server, with effects in SQLite and PostgreSQL.
#![cfg(all(feature = "sqlite", feature = "postgres"))]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[macro_use]
mod suite;
mod postgres;
mod sqlite;

use payments_client::{Client, CreatePayment, Money, PaymentId, testing::TestServer};

async fn server() -> TestServer {
    TestServer::start_program(test_support::server_binary()).await.unwrap()
}

/// Creates payments, one event each.
async fn create(client: &Client, payments: usize) -> Vec<PaymentId> {
    let mut ids = Vec::new();
    for _ in 0..payments {
        let params = CreatePayment::of(Money::taka(750))
            .success_url("https://shop.example/paid")
            .cancel_url("https://shop.example/cart");
        ids.push(client.payments().create(params).await.unwrap().id);
    }
    ids
}
