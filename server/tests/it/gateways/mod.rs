//! Live payments through strict fakes of the gateways.

mod amounts;
mod bkash_notices;
mod bkash_v2;
mod calls;
mod card_disputes;
mod costs;
mod coverage;
mod disputes;
mod other_answers;
mod partial_refunds;
mod payments;
mod payouts;
mod payouts_at_once;
mod platform;
mod refunds;
mod refunds_elsewhere;
mod returns;
mod reviews;
mod second_try;
mod settlements;
mod sslcommerz;
mod story;
mod stripe_events;
mod tokens;
mod ways;

use crate::{engine::Engine, live::Live};

const ENGINES: [Engine; 2] = [Engine::Directory, Engine::Postgres];

async fn live() -> Live {
    Live::start("gateway-timeout = 1").await
}

/// Creates a payment that its customer approves at bKash. Returns its id and the return URL.
async fn approved(live: &Live, wallet: &str) -> (String, String) {
    let id = live.create(7.0, "BDT").await;
    let (_, attempt) = live.pay(&id).await;
    let back = live.bkash.program().approve(&attempt, wallet).unwrap();
    (id, back)
}
