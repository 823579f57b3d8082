//! A webhook receiver on hyper, through the tower layer.
#![forbid(unsafe_code)]

use std::{
    convert::Infallible,
    error::Error,
    pin::Pin,
    process::ExitCode,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::server::conn::http1;
use hyper_util::{rt::TokioIo, rt::TokioTimer, service::TowerToHyperService};
use tower_layer::Layer;
use tower_service::Service;
use webhook_verify::{Verified, adapters::tower::VerifyLayer};

#[tokio::main]
async fn main() -> ExitCode {
    receivers::exit_code(run().await)
}

async fn run() -> Result<(), Box<dyn Error>> {
    let service = VerifyLayer::new(receivers::receiver()?).layer(Webhook);
    let listener = tokio::net::TcpListener::bind(receivers::address()?).await?;
    receivers::greet(listener.local_addr()?);
    loop {
        let (stream, _) = listener.accept().await?;
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service.clone()));
        tokio::spawn(connection);
    }
}

/// The inner service, which gets only verified requests.
#[derive(Clone)]
struct Webhook;

impl Service<Request<Full<Bytes>>> for Webhook {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Full<Bytes>>) -> Self::Future {
        Box::pin(async move {
            let mut response = Response::default();
            *response.status_mut() = match request.extensions_mut().remove::<Verified<Bytes>>() {
                Some(verified) => receivers::handle(verified).await,
                None => StatusCode::INTERNAL_SERVER_ERROR,
            };
            Ok(response)
        })
    }
}
