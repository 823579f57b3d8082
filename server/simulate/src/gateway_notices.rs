//! Brings the gateways' signed notices to the servers: late, twice, in any order, or not at all.

use std::sync::Arc;

use serde_json::Value;

use super::{Trouble, ask::Ask, node::BASE_URL, world::World};

/// Works until the world ends.
pub(super) async fn bring(world: Arc<World>) {
    loop {
        world.fate.wait(200..=6_000).await;
        let events = world.around.stripe.take_events().into_iter().map(|event| {
            let body = serde_json::from_str::<Value>(&event.body).unwrap_or_default();
            Ask::post("/gateways/stripe/webhook", body).signed(event.signature)
        });
        let notices = world.around.sslcommerz.take_notices().into_iter().map(|notice| {
            let path = notice.url.strip_prefix(BASE_URL).unwrap_or(&notice.url);
            Ask::form(path, notice.body())
        });
        let mut asks: Vec<_> = events.chain(notices).collect();
        while let Some(ask) = world.fate.take_one(&mut asks) {
            let times = if world.fate.one_in(5) { 2 } else { 1 };
            for _ in 0..times {
                if !world.fate.strikes(Trouble::GatewayLink, 10) {
                    // The gateway would try again later, but by then the server has queried it.
                    let _ = world.try_once(&ask).await;
                }
            }
        }
    }
}
