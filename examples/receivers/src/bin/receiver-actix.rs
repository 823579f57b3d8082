//! A webhook receiver on actix-web.
#![forbid(unsafe_code)]

use std::{error::Error, process::ExitCode};

use actix_web::{App, HttpResponse, HttpServer, http::StatusCode, web};
use webhook_verify::adapters::actix_web::VerifiedBody;

#[actix_web::main]
async fn main() -> ExitCode {
    receivers::exit_code(run().await)
}

async fn run() -> Result<(), Box<dyn Error>> {
    let receiver = receivers::receiver()?;
    let app = move || App::new().app_data(receiver.clone()).route("/webhooks", web::post().to(webhook));
    let server = HttpServer::new(app).workers(1).bind(receivers::address()?)?;
    server.addrs().into_iter().for_each(receivers::greet);
    Ok(server.run().await?)
}

async fn webhook(body: VerifiedBody) -> HttpResponse {
    let status = receivers::handle(body.0).await.as_u16();
    // actix-web uses another version of `http`.
    HttpResponse::new(StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR))
}
