//! A webhook receiver on warp.
#![forbid(unsafe_code)]

use std::{error::Error, process::ExitCode};

use warp::{Filter, Reply};
use webhook_verify::adapters::warp::verified;

#[tokio::main]
async fn main() -> ExitCode {
    receivers::exit_code(run().await)
}

async fn run() -> Result<(), Box<dyn Error>> {
    let webhook =
        warp::path!("webhooks").and(warp::post()).and(verified(receivers::receiver()?)).then(async |body| match body {
            Ok(verified) => receivers::handle(verified).await.into_response(),
            Err(refusal) => Reply::into_response(refusal),
        });
    let listener = tokio::net::TcpListener::bind(receivers::address()?).await?;
    receivers::greet(listener.local_addr()?);
    warp::serve(webhook).incoming(listener).run().await;
    Ok(())
}
