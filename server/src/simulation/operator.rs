//! The operator: sends refunds of mobile money by hand, and decides what needs a decision.

use std::sync::Arc;

use super::world::World;
use crate::service::{AdminReply, AdminRequest};

/// Works until the world ends.
pub(super) async fn work(world: Arc<World>) {
    loop {
        world.fate.wait(20_000..=120_000).await;
        let Some(service) = world.fate.choose(&world.nodes).and_then(|node| node.service()) else { continue };
        if let AdminReply::Refunds { refunds } = service.administer(AdminRequest::ListRefunds).await
            && let Some(row) = world.fate.choose(&refunds)
        {
            let (refund, reference) = (row.refund.to_string(), format!("transfer of {}", row.refund));
            world.fate.note(format_args!("the operator settles {refund}"));
            let _ = service.administer(AdminRequest::SettleRefund { refund, reference }).await;
        }
    }
}
