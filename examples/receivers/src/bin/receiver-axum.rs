//! A webhook receiver on axum.
#![forbid(unsafe_code)]

use std::{error::Error, process::ExitCode};

use axum::{Router, http::StatusCode, routing::post};
use webhook_verify::adapters::axum::VerifiedBody;

#[tokio::main]
async fn main() -> ExitCode {
    receivers::exit_code(run().await)
}

async fn run() -> Result<(), Box<dyn Error>> {
    let app = Router::new().route("/webhooks", post(webhook)).with_state(receivers::receiver()?);
    let listener = tokio::net::TcpListener::bind(receivers::address()?).await?;
    receivers::greet(listener.local_addr()?);
    Ok(axum::serve(listener, app).await?)
}

async fn webhook(VerifiedBody(verified): VerifiedBody) -> StatusCode {
    receivers::handle(verified).await
}
