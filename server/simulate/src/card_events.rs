//! Brings the card processor's signed events to the servers: late, twice, in any order, or not at all.

use std::sync::Arc;

use serde_json::Value;

use super::{
    Trouble,
    world::{Ask, World},
};

/// Works until the world ends.
pub(super) async fn bring(world: Arc<World>) {
    loop {
        world.fate.wait(200..=6_000).await;
        let mut events = world.around.stripe.take_events();
        while let Some(event) = world.fate.take_one(&mut events) {
            let body = serde_json::from_str::<Value>(&event.body).unwrap_or_default();
            let ask = Ask::post("/gateways/stripe/webhook", body).signed(event.signature);
            let times = if world.fate.one_in(5) { 2 } else { 1 };
            for _ in 0..times {
                if !world.fate.strikes(Trouble::GatewayLink, 10) {
                    // The processor would try again later, but by then the server has queried it.
                    let _ = world.try_once(&ask).await;
                }
            }
        }
    }
}
