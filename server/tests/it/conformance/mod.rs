//! The specification against the real server, one case per row. Sections and rows have the specification's names. The
//! report lists failed cases and rows without a case.

mod beyond;
mod payments;
mod report;
mod requests;
mod webhooks;
mod world;

use self::{report::Report, world::World};
use crate::engine::Engine;

#[tokio::test(flavor = "multi_thread")]
async fn the_server_meets_every_row_of_the_specification() {
    run(Engine::Directory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_server_meets_every_row_of_the_specification_on_postgresql() {
    run(Engine::Postgres).await;
}

async fn run(engine: Engine) {
    let world = World::new(engine).await;
    let mut report = Report::default();
    let slow =
        tokio::join!(webhooks::a_hanging_endpoint(engine), requests::a_body_that_does_not_arrive(world.server()));
    payments::payments(&world, &mut report).await;
    payments::transitions(&world, &mut report).await;
    webhooks::account_and_webhooks(&world, &mut report).await;
    payments::checkout(&world, &mut report).await;
    requests::idempotency_and_authentication(&world, &mut report).await;
    webhooks::events(&world, &mut report).await;
    requests::errors_and_limits(&world, &mut report).await;
    let ((took, delivery), timeout) = slow;
    let is_one = delivery["attempts"] == 1 && delivery["status"] == "failed" && delivery["responseStatus"].is_null();
    report.row(
        "Delivery",
        "One attempt, 8 second timeout",
        is_one && (7..12).contains(&took.as_secs()),
        &(took, delivery),
    );
    report.row("Errors", "408", timeout.starts_with("HTTP/1.1 408"), &timeout);
    report.end();
}
