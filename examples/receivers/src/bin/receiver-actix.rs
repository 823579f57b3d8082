//! A webhook receiver on actix-web.
#![forbid(unsafe_code)]

use std::error::Error;

use actix_web::{App, HttpResponse, HttpServer, Responder, web};
use webhook_verify::adapters::actix_web::VerifiedBody;

#[actix_web::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let receiver = receivers::receiver()?;
    let app = move || App::new().app_data(receiver.clone()).route("/webhooks", web::post().to(webhook));
    let server = HttpServer::new(app).workers(1).bind(receivers::address()?)?;
    server.addrs().into_iter().for_each(receivers::greet);
    Ok(server.run().await?)
}

async fn webhook(body: VerifiedBody) -> impl Responder {
    receivers::handle(body.0);
    HttpResponse::Ok()
}
