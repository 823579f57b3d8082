//! The customers' banks, which inquire about card payments, dispute them and decide, and an operator who records the letters
//! of the mobile-money gateway.

use std::sync::Arc;

use payments_core::{Amount, PaymentId};
use payments_server::parts::{AdminReply, AdminRequest, DisputeOutcome, DisputeRequest};

use super::{Trouble, dashboard::part_of_a_payment, notes::Recorded, operator::administer, world::World};

/// How often the operator repeats a command.
const TRIES: u32 = 60;

/// Works until the world ends.
pub(super) async fn work(world: Arc<World>) {
    loop {
        world.fate.wait(5_000..=60_000).await;
        if world.fate.strikes(Trouble::Disputes, 2) {
            gateway_fakes::at(world.fate.now_seconds(), || act(&world));
        }
        if world.fate.strikes(Trouble::Disputes, 4) {
            record(&world).await;
        }
    }
}

fn act(world: &World) {
    let (fate, stripe) = (&world.fate, &world.around.stripe);
    let disputes = stripe.disputes();
    let Some(dispute) = fate.choose(&disputes).filter(|_| fate.one_in(2)) else { return open(world) };
    let what = fate.number(0..=4);
    let did = match what {
        0 => stripe.escalate(dispute),
        1 => stripe.answer_dispute(dispute),
        2 => stripe.reinstate(dispute),
        _ => stripe.close_dispute(dispute, what == 3),
    };
    fate.note(format_args!("what happens to {dispute} is {what}: {did}"));
}

/// Disputes a part of some payment.
fn open(world: &World) {
    if let Some((reference, part)) = part_of_a_payment(world) {
        let is_inquiry = world.fate.one_in(3);
        world.fate.note(format_args!("a bank disputes {part} of {reference}"));
        world.around.stripe.open_dispute(&reference, part, "fraudulent", is_inquiry);
    }
}

/// Records a dispute of a wallet's payment from its letter to its end, with every command twice.
async fn record(world: &World) {
    let books = world.around.bkash.books();
    let paid: Vec<_> = books.iter().filter(|entry| entry.taken > 0).collect();
    let Some(entry) = world.fate.choose(&paid) else { return };
    let merchants = world.merchants();
    let orders = merchants.iter().flat_map(|it| it.orders().clone());
    let of_entry = |payment: &String| entry.reference.contains(payment.as_str());
    let Some(payment) = orders.filter_map(|order| order.payment).find(of_entry) else { return };
    let Ok(id) = payment.parse::<PaymentId>() else { return };
    let nth = world.recorded_disputes.lock().iter().filter(|it| it.payment == id).count();
    let minor = world.fate.number(1..=entry.amount_minor);
    let amount = Amount::from_minor(minor);
    let request = DisputeRequest::Open {
        payment,
        amount,
        reference: format!("letter {nth}"),
        reason: None,
        evidence_due_by: None,
        returns_fee: world.fate.one_in(2),
    };
    // The payment may not be known as paid yet.
    let Some(dispute) = twice(world, request).await else { return };
    let moved = |part: &str, is_reinstated| DisputeRequest::Move {
        dispute: dispute.clone(),
        amount,
        reference: format!("{part} {nth}"),
        is_reinstated,
    };
    let is_won = world.fate.one_in(2);
    let mut recorded = twice(world, moved("withdrawn", false)).await.is_some();
    if is_won {
        recorded &= twice(world, moved("reinstated", true)).await.is_some();
    }
    let outcome = if is_won { DisputeOutcome::Won } else { DisputeOutcome::Lost };
    recorded &= twice(world, DisputeRequest::Close { dispute, outcome }).await.is_some();
    if !recorded {
        return world.violation(format!("the dispute letter {nth} of {id} could not be recorded to its end"));
    }
    let taken = if is_won { 0 } else { minor };
    let asked_before = (!is_won).then(|| world.refunds_asked());
    world.recorded_disputes.lock().push(Recorded { payment: id, taken, asked_before });
}

/// Gives a command twice, each time until its outcome is known. Returns the dispute, or `None` if it is refused.
async fn twice(world: &World, request: DisputeRequest) -> Option<String> {
    let first = known_outcome(world, &request).await?;
    let again = known_outcome(world, &request).await?;
    if first != again {
        world.violation(format!("the same command about {first} was about {again} the second time"));
    }
    Some(first)
}

async fn known_outcome(world: &World, request: &DisputeRequest) -> Option<String> {
    for _ in 0..TRIES {
        match administer(world, AdminRequest::Disputes(request.clone())).await {
            Some(AdminReply::Dispute { dispute }) => return Some(dispute.dispute.to_string()),
            Some(AdminReply::Error { error, .. }) if error.contains("cannot be disputed") => return None,
            _ => world.fate.wait(500..=5_000).await,
        }
    }
    None
}
