//! `/healthz` and `/readyz`: for whoever watches the server. Neither is limited.

use warp::{
    Filter,
    http::{Method, StatusCode},
    reply::Response,
};

use super::{
    Routes, Server, first_of,
    incoming::{Incoming, incoming},
    limit::Verdict,
    reply::{self, Problem},
};

pub(super) fn routes(server: &Server) -> Routes {
    let healthy = warp::path!("healthz").and(incoming()).then(async |incoming: Incoming| {
        // The process is there and answers; it may still be without its store.
        answer(&incoming.method, Ok(()))
    });
    let at_ready = server.clone();
    let ready = warp::path!("readyz").and(incoming()).then(move |incoming: Incoming| {
        let server = at_ready.clone();
        async move { answer(&incoming.method, server.service.is_ready().await.map_err(Problem::from)) }
    });
    first_of([healthy.boxed(), ready.boxed()])
}

fn answer(method: &Method, outcome: Result<(), Problem>) -> Response {
    let body = serde_json::json!({"status": "ok"});
    let outcome = match *method {
        Method::GET => outcome.and_then(|()| reply::json(StatusCode::OK, &body)),
        _ => Err(Problem::MethodNotAllowed("GET, HEAD")),
    };
    let mut response = outcome.unwrap_or_else(Problem::into_response);
    Verdict::UNLIMITED.write(&mut response);
    response
}
