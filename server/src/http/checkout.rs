//! `/api/v1/checkout`: the keyless routes behind the checkout page.

use payments_core::{DemoSession, Pay, Simulate};
use warp::{
    Filter,
    http::{Method, StatusCode},
    reply::Response,
};

use super::{
    Routes, Server, first_of, gate,
    incoming::{Incoming, incoming},
    reply::{self, Problem},
};
use crate::service::Service;

pub(super) fn routes(server: &Server) -> Routes {
    let at_demo = server.clone();
    let demo = warp::path!("api" / "v1" / "checkout" / "demo-session").and(incoming()).then(move |incoming| {
        let server = at_demo.clone();
        async move { gate::keyless(&server, incoming, |incoming| demo_session(&server.service, incoming)).await }
    });
    let at_session = server.clone();
    let session = warp::path!("api" / "v1" / "checkout" / String).and(incoming()).then(move |id: String, incoming| {
        let server = at_session.clone();
        async move { gate::keyless(&server, incoming, |incoming| session(&server.service, &id, incoming)).await }
    });
    let at_action = server.clone();
    let action = warp::path!("api" / "v1" / "checkout" / String / Action).and(incoming());
    let action = action.then(move |id: String, action: Action, incoming| {
        let server = at_action.clone();
        async move { gate::keyless(&server, incoming, |incoming| act(&server.service, &id, action, incoming)).await }
    });
    first_of([demo.boxed(), session.boxed(), action.boxed()])
}

/// What can be done to a session.
#[derive(Debug, Clone, Copy)]
enum Action {
    Simulate,
    Pay,
}

impl std::str::FromStr for Action {
    type Err = ();

    fn from_str(segment: &str) -> Result<Self, ()> {
        match segment {
            "simulate" => Ok(Self::Simulate),
            "pay" => Ok(Self::Pay),
            _ => Err(()),
        }
    }
}

async fn session(service: &Service, id: &str, incoming: Incoming) -> Result<Response, Problem> {
    match incoming.method {
        Method::GET => reply::json(StatusCode::OK, &service.checkout_session(id).await?),
        _ => Err(Problem::MethodNotAllowed("GET, HEAD")),
    }
}

async fn act(service: &Service, id: &str, action: Action, incoming: Incoming) -> Result<Response, Problem> {
    let body = posted(incoming).await?;
    let outcome = match action {
        Action::Simulate => service.simulate(id, Simulate::from_json(&body)?).await?,
        Action::Pay => service.pay(id, &Pay::from_json(&body)?).await?,
    };
    reply::json(StatusCode::OK, &outcome)
}

async fn demo_session(service: &Service, incoming: Incoming) -> Result<Response, Problem> {
    let body = posted(incoming).await?;
    reply::json(StatusCode::CREATED, &service.create_demo_session(DemoSession::from_json(&body)?).await?)
}

async fn posted(mut incoming: Incoming) -> Result<bytes::Bytes, Problem> {
    match incoming.method {
        Method::POST => incoming.read_json().await,
        _ => Err(Problem::MethodNotAllowed("POST")),
    }
}
