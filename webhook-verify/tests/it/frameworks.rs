//! The answer of each framework to a request that its adapter refuses, and when the tower layer is ready.

use core::{
    convert::Infallible,
    fmt::Debug,
    future::Ready,
    task::{Context, Poll, Waker},
};

use actix_web::ResponseError;
use axum_core::response::IntoResponse;
use bytes::Bytes;
use futures_util::FutureExt;
use http::{Request, Response, header::CONTENT_TYPE};
use http_body_util::{BodyExt, Full};
use tower_layer::Layer;
use tower_service::Service;
use warp::Reply;
use webhook_verify::adapters::{
    Receiver, Refusal,
    tower::{Verify, VerifyLayer},
};

use crate::verifier;

const REFUSAL: Refusal = Refusal::TooLarge { max_body_bytes: 8 };

/// Status, content type and body of a response. The body must be complete.
fn read<B: http_body::Body<Error: Debug>>(response: Response<B>) -> (u16, String, String) {
    let (parts, body) = response.into_parts();
    let body = body.collect().now_or_never().unwrap().unwrap().to_bytes();
    let content_type = parts.headers[CONTENT_TYPE].to_str().unwrap();
    (parts.status.as_u16(), content_type.to_owned(), String::from_utf8(body.to_vec()).unwrap())
}

fn expected(refusal: Refusal) -> (u16, String, String) {
    (refusal.status().as_u16(), "application/json".to_owned(), refusal.to_json())
}

#[test]
fn axum_and_warp_answer_a_refusal_with_its_status_and_json() {
    assert_eq!(read(IntoResponse::into_response(REFUSAL)), expected(REFUSAL));
    assert_eq!(read(Reply::into_response(REFUSAL)), expected(REFUSAL));
}

#[test]
fn actix_web_answers_a_refusal_with_its_status_and_json() {
    let answer = REFUSAL.error_response();
    let content_type = answer.headers().get("content-type").unwrap().to_str().unwrap().to_owned();
    let status = answer.status().as_u16();
    assert_eq!(ResponseError::status_code(&REFUSAL), answer.status());
    let body = actix_web::body::to_bytes(answer.into_body()).now_or_never().unwrap().unwrap();
    assert_eq!((status, content_type, String::from_utf8(body.to_vec()).unwrap()), expected(REFUSAL));
}

/// A service behind the tower layer.
#[derive(Clone)]
struct Handler {
    is_ready: bool,
}

impl Service<Request<Full<Bytes>>> for Handler {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        if self.is_ready { Poll::Ready(Ok(())) } else { Poll::Pending }
    }

    fn call(&mut self, _: Request<Full<Bytes>>) -> Self::Future {
        panic!("the handler got a request that was refused")
    }
}

fn behind_the_layer(is_ready: bool) -> Verify<Handler> {
    VerifyLayer::new(Receiver::new(verifier())).layer(Handler { is_ready })
}

#[test]
fn the_tower_layer_answers_a_refusal_with_its_status_and_json() {
    let unsigned = Request::new(Full::new(Bytes::from_static(crate::BODY)));
    let answer = behind_the_layer(true).call(unsigned).now_or_never().unwrap().unwrap();
    assert_eq!(read(answer), expected(Refusal::Unverified(webhook_verify::HeaderFault::Missing.into())));
}

#[test]
fn the_tower_layer_is_ready_when_its_service_is() {
    let mut context = Context::from_waker(Waker::noop());
    for is_ready in [true, false] {
        let mut service = behind_the_layer(is_ready);
        let ready = Service::<Request<Full<Bytes>>>::poll_ready(&mut service, &mut context);
        assert_eq!(ready.is_ready(), is_ready);
    }
}
