//! The operator: sends refunds of mobile money by hand, decides manual reviews, replaces keys, and restores backups.

use std::{sync::Arc, time::Duration};

use gateway_fakes::Entry;
use payments_core::Environment;
use payments_server::parts::{AdminReply, AdminRequest, KeyRow, ManualOutcome};
use tokio::time::timeout;

use super::{merchant::Merchant, world::World};

/// How long a command waits for its server.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long a replaced key may still work: less than the quiet time at the end of a world.
const KEY_OVERLAP_SECONDS: u32 = 60;
/// How often the operator repeats a command.
const TRIES: u32 = 60;

/// Works until the world ends.
pub(super) async fn work(world: Arc<World>) {
    loop {
        world.fate.wait(20_000..=120_000).await;
        settle_refund(&world).await;
        decide_review(&world).await;
        if world.goes_on() && world.fate.one_in(4) {
            replace_key(&world).await;
        }
        if world.goes_on() && world.fate.one_in(6) {
            world.around.database.backups.restore_beside();
        }
    }
}

/// Sends a command to some server. `None` if its outcome stays unknown.
pub(super) async fn administer(world: &World, request: AdminRequest) -> Option<AdminReply> {
    let service = world.fate.choose(&world.nodes)?.service()?;
    timeout(PATIENCE, service.administer(request)).await.ok()
}

async fn settle_refund(world: &World) {
    if let Some(AdminReply::Refunds { refunds }) = administer(world, AdminRequest::ListRefunds { due_days: None }).await
        && let Some(row) = world.fate.choose(&refunds)
    {
        let (refund, reference) = (row.refund.to_string(), format!("transfer of {}", row.refund));
        world.fate.note(format_args!("the operator settles {refund}"));
        let _ = administer(world, AdminRequest::SettleRefund { refund, reference }).await;
    }
}

/// Decides a manual review by the gateways' books, as the operator does.
async fn decide_review(world: &World) {
    if let Some(AdminReply::Reviews { reviews }) = administer(world, AdminRequest::ListReviews).await
        && let Some(row) = world.fate.choose(&reviews)
    {
        let is_of =
            |entry: &Entry| entry.reference.contains(row.payment.as_str()) || row.what.contains(&entry.reference);
        let is_taken = world.around.books().filter(is_of).any(|entry| entry.taken > 0);
        let is_of_refund = world.around.sslcommerz.refunds().iter().any(|refund| row.what.contains(refund));
        let outcome = match is_taken {
            // Only a refund that went nowhere is left to a person.
            _ if is_of_refund => Some(ManualOutcome::NotRefunded),
            true => Some(ManualOutcome::Paid),
            false => Some(ManualOutcome::Failed),
        };
        let outcome = outcome.filter(|_| is_of_refund || row.raw_status.is_open());
        world.fate.note(format_args!("the operator decides {}: {outcome:?}", row.payment));
        let (payment, note, transaction) = (row.payment.to_string(), "looked into the books".to_owned(), None);
        let _ = administer(world, AdminRequest::ResolveReview { payment, note, outcome, transaction }).await;
    }
}

/// Replaces a merchant's key, and tells the merchant. If an answer is lost, its key is lost too, and the next key replaces
/// it.
async fn replace_key(world: &World) {
    let merchants = world.merchants();
    let Some(merchant) = world.fate.choose(&merchants) else { return };
    let is_live = world.fate.one_in(2);
    // An overlap that begins while the clock is ahead ends late.
    let overlaps = [0, if world.around.skew() > 0 { 0 } else { KEY_OVERLAP_SECONDS }];
    let overlap_seconds = world.fate.choose(&overlaps).copied().unwrap_or(0);
    for _ in 0..TRIES {
        if let Some(id) = key_of(world, merchant, is_live).await
            && let Some(AdminReply::Key { key }) =
                administer(world, AdminRequest::RotateKey { id, overlap_seconds }).await
        {
            world.fate.note(format_args!("the operator replaces a key of {}", merchant.workspace));
            let old = merchant.key(is_live).replace(key);
            merchant.revoked.lock().push(old);
            return;
        }
        world.fate.wait(500..=2_000).await;
    }
    world.violation("a key could not be replaced");
}

/// The id of the key that works and was not replaced.
async fn key_of(world: &World, merchant: &Merchant, is_live: bool) -> Option<String> {
    let environment = if is_live { Environment::Live } else { Environment::Test };
    let Some(AdminReply::Keys { keys }) = administer(world, AdminRequest::ListKeys).await else { return None };
    let is_own = |key: &KeyRow| key.workspace == merchant.workspace && key.environment == environment;
    let works = |key: &KeyRow| key.revoked_at.is_none() && key.replaced_by.is_none();
    keys.into_iter().find(|key| is_own(key) && works(key)).map(|key| key.id)
}
