//! A customer at the checkout of a live payment.

use std::{ops::RangeInclusive, sync::Arc, time::Duration};

use gateway_fakes::{Back, bkash, stripe};
use hyper::{Method, StatusCode};
use serde_json::json;
use tokio::time::sleep;

use super::{
    Trouble,
    ask::{Ask, text},
    node::BASE_URL,
    world::World,
};

/// What a customer does at the gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    Pays,
    /// Pays, and does not come back.
    ClosesTheTab,
    Cancels,
    /// Looks at the gateway's page, and does nothing.
    Leaves,
    /// Has no money.
    CannotPay,
    /// Has no money, and tries again with other means.
    TriesAgain,
    /// Has no money, and goes back to the shop.
    GoesBack,
    /// Pays just before or just after the session ends, and does not come back.
    PaysAtTheLastMoment,
    /// Tries to pay at that moment, without money.
    FailsAtTheLastMoment,
}

const HABITS: [Does; 13] = [
    Does::Pays,
    Does::Pays,
    Does::Pays,
    Does::Pays,
    Does::ClosesTheTab,
    Does::ClosesTheTab,
    Does::Cancels,
    Does::Leaves,
    Does::CannotPay,
    Does::TriesAgain,
    Does::GoesBack,
    Does::PaysAtTheLastMoment,
    Does::FailsAtTheLastMoment,
];

/// How long a customer takes who pays at the last moment: about the five minutes of the session.
const LAST_MOMENT_MILLIS: RangeInclusive<u64> = 280_000..=301_000;
/// How often a customer asks whether there can be another attempt.
const PATIENCE: u32 = 20;

/// Visits the checkout, in most cases.
pub(super) async fn visit(world: Arc<World>, payment: String, gateway: &'static str) {
    if world.fate.one_in(12) {
        return;
    }
    world.fate.wait(200..=20_000).await;
    let does = world.fate.choose(&HABITS).copied().unwrap_or(Does::Pays);
    let Some(attempt) = begin(&world, &payment).await else { return };
    let is_late = matches!(does, Does::PaysAtTheLastMoment | Does::FailsAtTheLastMoment);
    world.fate.wait(if is_late { LAST_MOMENT_MILLIS } else { 500..=15_000 }).await;
    let is_dollar = gateway == "stripe";
    let back = at_gateway(&world, &payment, &attempt, gateway, does);
    let is_refused = matches!(does, Does::TriesAgain | Does::GoesBack);
    let was_open = back.is_some();
    if is_refused && is_dollar {
        world.fate.wait(100..=2_000).await;
        gateway_fakes::at(world.fate.now_seconds(), || world.around.stripe.finish(&attempt, false));
    }
    if let Some(back) = back.filter(|_| !is_late && does != Does::ClosesTheTab) {
        come_back(&world, &back).await;
    }
    match does {
        Does::TriesAgain => try_again(&world, &payment, &attempt, gateway).await,
        Does::GoesBack => go_back(&world, &payment).await,
        _ => {}
    }
    // A card session that was cancelled or has expired is never paid, a wallet's money moves only when the server sends a
    // capture, and the portal's page can be paid at any time.
    let has_failed = matches!(does, Does::CannotPay | Does::FailsAtTheLastMoment);
    let may_be_late = match gateway {
        "stripe" => is_refused && was_open,
        "bkash" => is_refused || has_failed,
        _ => true,
    };
    if may_be_late && world.fate.strikes(Trouble::LateMoney, 4) {
        world.fate.wait(1_000..=400_000).await;
        take_late(&world, &attempt, gateway);
    }
}

/// Begins or goes on with an attempt. Returns the gateway's id of it; `None` if the session has ended.
async fn begin(world: &World, payment: &str) -> Option<String> {
    let answer = world.ask(Ask::post(format!("/api/v1/checkout/{payment}/pay"), json!({}))).await?;
    if answer.status != StatusCode::OK {
        return None;
    }
    text(&answer.json(), "redirectUrl").rsplit(['/', '=']).next().map(str::to_owned)
}

/// What the customer does there. Returns how the gateway sends the customer back.
fn at_gateway(world: &World, payment: &str, attempt: &str, gateway: &str, does: Does) -> Option<Back> {
    world.fate.note(format_args!("the customer of {payment} {does:?} {attempt}"));
    let (bkash, stripe, portal) = (&world.around.bkash, &world.around.stripe, &world.around.sslcommerz);
    let has_no_money = matches!(does, Does::TriesAgain | Does::GoesBack | Does::CannotPay | Does::FailsAtTheLastMoment);
    let url = gateway_fakes::at(world.fate.now_seconds(), || match (gateway, does) {
        (_, Does::Leaves) => Err(None),
        ("sslcommerz", Does::Cancels) => Err(portal.cancel(attempt)),
        ("sslcommerz", _) => Err(if has_no_money { portal.fail(attempt) } else { portal.pay(attempt) }),
        ("bkash", Does::Cancels) => Ok(bkash.cancel(attempt)),
        ("bkash", _) => Ok(bkash.approve(attempt, if has_no_money { bkash::POOR_WALLET } else { bkash::WALLET })),
        (_, Does::TriesAgain | Does::GoesBack) => Ok(stripe.pay(attempt, stripe::SLOW_CARD)),
        (_, Does::Cancels) => Ok(Some(format!("{BASE_URL}/gateways/stripe/return/{payment}?outcome=cancel"))),
        (_, _) => Ok(stripe.pay(attempt, if has_no_money { stripe::DECLINED_CARD } else { stripe::CARD })),
    });
    url.map_or_else(|back| back, |url| Some(Back { method: Method::GET, url: url?, form: <_>::default() }))
}

/// Returns to the server, now and then twice.
async fn come_back(world: &World, back: &Back) {
    let path = back.url.strip_prefix(BASE_URL).unwrap_or(&back.url);
    let ask = match back.method {
        Method::GET => Ask::get(path),
        _ => Ask::form(path, back.body()),
    };
    let times = if world.fate.one_in(4) { 2 } else { 1 };
    for _ in 0..times {
        if let Some(answer) = world.ask(ask.clone()).await
            && answer.status != StatusCode::SEE_OTHER
        {
            world.violation(format!("a return to {path} is answered with {}", answer.status));
        }
    }
}

async fn try_again(world: &World, payment: &str, first: &str, gateway: &str) {
    for _ in 0..PATIENCE {
        match begin(world, payment).await {
            Some(attempt) if attempt != first => {
                world.fate.wait(500..=10_000).await;
                if let Some(back) = at_gateway(world, payment, &attempt, gateway, Does::Pays) {
                    come_back(world, &back).await;
                }
                return;
            }
            Some(_) => sleep(Duration::from_secs(2)).await,
            None => return,
        }
    }
}

/// Goes back to the shop as soon as the attempt counts as failed.
async fn go_back(world: &World, payment: &str) {
    for _ in 0..PATIENCE {
        let answer = world.ask(Ask::form(format!("/checkout/{payment}"), "action=leave")).await;
        if answer.is_none_or(|answer| answer.status == StatusCode::SEE_OTHER) {
            return;
        }
        sleep(Duration::from_secs(2)).await;
    }
}

/// The gateway takes the money of an attempt after all.
fn take_late(world: &World, attempt: &str, gateway: &str) {
    let Some(fake) = world.around.fakes().into_iter().find(|fake| fake.name() == gateway) else { return };
    if fake.books().iter().any(|entry| entry.id == attempt && entry.taken == 0) {
        world.fate.note(format_args!("the money of {attempt} arrives late"));
        gateway_fakes::at(world.fate.now_seconds(), || fake.take_late(attempt));
    }
}
