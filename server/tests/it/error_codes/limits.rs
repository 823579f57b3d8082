//! The codes of limits of a workspace.

use reqwest::Method;
use serde_json::json;

use super::Table;
use crate::server::{Server, payment_of};

/// New payments beyond the limits of their workspace.
pub(super) async fn rows(table: &mut Table, server: &Server) {
    let key = server.new_key("Limited", "test");
    let create =
        |amount| server.keyless(Method::POST, "/api/v1/payments").bearer_auth(&key).json(&payment_of(&json!(amount)));
    server.run(&["workspaces", "limits", "Limited", "--payment-at-most", "BDT=5", "--day-at-most", "BDT=7"]);
    table.row(create(6), 409, "payment_limit_exceeded", &[]).await;
    assert_eq!(create(5).send().await.unwrap().status(), 201);
    table.row(create(5), 409, "day_limit_exceeded", &[]).await;
    server.run(&["workspaces", "limits", "Limited", "--payments-a-minute", "1"]);
    table.row(create(1), 429, "payment_rate_exceeded", &[]).await;
}
