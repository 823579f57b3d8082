//! The Rust examples of the reference compile, and those that need no id run.

use payments_client::Client;

use crate::server::{SANDBOX_KEY, Server};

#[path = "../../docs/snippets.rs"]
#[allow(dead_code, unreachable_pub, reason = "the others are only compiled, and the page shows none of their heads")]
mod snippets;

#[tokio::test(flavor = "multi_thread")]
async fn the_references_rust_examples_run() {
    let server = Server::start();
    let client = &Client::builder(SANDBOX_KEY).base_url(&server.url).build().unwrap();
    snippets::create_payment(client).await.unwrap();
    snippets::list_payments(client).await.unwrap();
    snippets::list_transactions(client).await.unwrap();
    snippets::list_events(client).await.unwrap();
    snippets::list_requests(client).await.unwrap();
    snippets::advance_sandbox(client).await.unwrap();
    snippets::create_demo_session(client).await.unwrap();
    snippets::retrieve_account(client).await.unwrap();
    snippets::retrieve_activity(client).await.unwrap();
}
