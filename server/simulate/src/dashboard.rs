//! A person at the card processor's dashboard, who refunds payments there, and the customers' banks, which take a refund late
//! or send it back.

use std::sync::Arc;

use super::{Trouble, world::World};

/// How a refund may begin.
const WAITS: [&str; 2] = ["processing", "insufficient_funds"];

/// Works until the world ends.
pub(super) async fn work(world: Arc<World>) {
    loop {
        world.fate.wait(5_000..=60_000).await;
        if world.fate.strikes(Trouble::Dashboard, 2) {
            gateway_fakes::at(world.fate.now_seconds(), || act(&world));
        }
    }
}

fn act(world: &World) {
    let (fate, stripe) = (&world.fate, &world.around.stripe);
    match fate.number(0..=4) {
        0 => refund(world),
        1 => {
            if let Some(waits) = fate.choose(&WAITS) {
                stripe.next_refund_waits(waits);
            }
        }
        2 => {
            let (portal, is_sent) = (&world.around.sslcommerz, !fate.one_in(4));
            let ended = fate.choose(&portal.refunds()).is_some_and(|refund| portal.finish_refund(refund, is_sent));
            fate.note(format_args!("a refund of the portal ends: {ended}, sent: {is_sent}"));
        }
        3 => {
            if let Some(refund) = fate.choose(&stripe.refunds()) {
                fate.note(format_args!("the bank takes {refund}"));
                stripe.succeed_refund(refund);
            }
        }
        _ => {
            if let Some(refund) = fate.choose(&stripe.refunds()) {
                fate.note(format_args!("the bank sends {refund} back"));
                stripe.fail_refund(refund);
            }
        }
    }
}

/// Refunds a part of some payment.
fn refund(world: &World) {
    if let Some((reference, part)) = part_of_a_payment(world) {
        world.fate.note(format_args!("somebody refunds {part} of {reference} in the dashboard"));
        let made = world.around.stripe.refund_part_by_hand(&reference, part);
        world.dashboard_refunds.lock().extend(made.map(|_| part));
    }
}

/// A card payment by its reference, and a part of what is left of it, in minor units.
pub(super) fn part_of_a_payment(world: &World) -> Option<(String, u64)> {
    let mut books = world.around.stripe.books();
    books.retain(|entry| entry.taken > 0 && entry.refunded_minor < entry.amount_minor);
    let entry = world.fate.choose(&books)?;
    Some((entry.reference.clone(), world.fate.number(1..=entry.amount_minor - entry.refunded_minor)))
}
