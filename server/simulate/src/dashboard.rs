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
    match fate.number(0..=3) {
        0 => refund(world),
        1 => {
            if let Some(waits) = fate.choose(&WAITS) {
                stripe.next_refund_waits(waits);
            }
        }
        2 => {
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
    let books = world.around.stripe.books();
    let paid: Vec<_> =
        books.iter().filter(|entry| entry.taken > 0 && entry.refunded_minor < entry.amount_minor).collect();
    if let Some(entry) = world.fate.choose(&paid) {
        let part = world.fate.number(1..=entry.amount_minor - entry.refunded_minor);
        world.fate.note(format_args!("somebody refunds {part} of {} in the dashboard", entry.reference));
        let made = world.around.stripe.refund_part_by_hand(&entry.reference, part);
        world.dashboard_refunds.lock().extend(made.map(|_| part));
    }
}
