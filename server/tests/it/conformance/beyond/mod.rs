//! The second part: the server's additions to the specification, against the real server. A client that was written for the
//! specification notices no addition, and each addition works as documented. Each addition also has its own tests.

mod checkout;
mod developing;
mod finding;
mod keys;
mod money;
mod report;
mod shop;
mod webhooks;

use self::report::Report;
use super::world::World;
use crate::engine::Engine;

#[tokio::test(flavor = "multi_thread")]
async fn additions_go_unnoticed_by_a_client_of_the_specification_and_work_as_documented() {
    run(Engine::Directory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn additions_go_unnoticed_by_a_client_of_the_specification_and_work_as_documented_on_postgresql() {
    run(Engine::Postgres).await;
}

async fn run(engine: Engine) {
    let world = World::new(engine).await;
    let mut report = Report::default();
    money::partial_refunds(&world, &mut report).await;
    money::activity(&world, &mut report).await;
    money::transactions(&world, &mut report).await;
    money::second_try(&world, &mut report).await;
    webhooks::resend(&world, &mut report).await;
    webhooks::retries(&world, &mut report).await;
    webhooks::rotation_and_edits(&world, &mut report).await;
    webhooks::test_events(&world, &mut report).await;
    webhooks::list_of_events(&world, &mut report).await;
    finding::filters(&world, &mut report).await;
    finding::timeline(&world, &mut report).await;
    keys::restricted_keys(&world, &mut report).await;
    keys::list_of_keys(&world, &mut report).await;
    keys::error_codes(&world, &mut report).await;
    keys::request_log(&world, &mut report).await;
    checkout::line_items(&world, &mut report).await;
    developing::listen(&world, &mut report).await;
    developing::trigger_and_reset(&world, &mut report).await;
    developing::test_clock(&world, &mut report).await;
    report.end();
}
