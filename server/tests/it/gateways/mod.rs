//! Live payments through both gateways, which are strict fakes on this machine.

mod calls;
mod payments;
mod refunds;

use crate::live::Live;

async fn live() -> Live {
    Live::start("gateway-timeout = 1").await
}

/// A payment that its customer has approved at bKash, and where the browser is sent back to.
async fn approved(live: &Live, wallet: &str) -> (String, String) {
    let id = live.create(7.0, "BDT").await;
    let (_, attempt) = live.pay(&id).await;
    let back = live.bkash.program().approve(&attempt, wallet).unwrap();
    (id, back)
}
