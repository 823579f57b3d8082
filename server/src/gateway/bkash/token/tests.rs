//! Tokens in virtual time, from a fake that blocks a credential after two requests in an hour.

use std::{sync::Arc, time::Duration};

use secrecy::ExposeSecret;
use serde_json::json;
use tokio::time::{Instant, advance, sleep};

use super::super::{
    Bkash,
    tests::world::{Trouble, World},
};
use crate::gateway::error::GatewayError;

async fn minutes(minutes: u64) {
    advance(Duration::from_secs(60 * minutes)).await;
}

/// The token, if the gateway accepts it.
async fn works(bkash: &Bkash) -> Result<String, GatewayError> {
    let token = bkash.tokens.get().await?;
    match bkash.call("payment status", "/payment/status", &json!({"paymentID": "none"})).await? {
        Err(rejection) if rejection.code == "2002" => Ok(token.expose_secret().to_owned()),
        other => panic!("{other:?}"),
    }
}

/// Lets a renewal in the background end.
async fn settle() {
    sleep(Duration::from_secs(1)).await;
}

#[tokio::test(start_paused = true)]
async fn a_day_of_calls_needs_at_most_two_tokens_an_hour() {
    let world = World::new();
    let bkash = world.adapter();
    for minute in 0..24 * 60 {
        works(&bkash).await.unwrap_or_else(|error| panic!("minute {minute}: {error}"));
        minutes(1).await;
    }
    let tokens = world.sent().iter().filter(|path| path.starts_with("/token")).count();
    assert!((24..=30).contains(&tokens), "{tokens}");
}

#[tokio::test(start_paused = true)]
async fn a_refused_refresh_token_is_replaced_by_the_credentials() {
    let world = World::new();
    let bkash = world.adapter();
    works(&bkash).await.unwrap();
    world.fake.expire_refresh_tokens();
    // Nobody pays for a month, then somebody does.
    minutes(30 * 24 * 60).await;
    world.sent();
    works(&bkash).await.unwrap();
    assert_eq!(world.sent()[..2], ["/token/refresh", "/token/grant"]);

    // Both requests of this hour are used, so the credentials wait for the next hour, and the old token is used.
    world.fake.expire_refresh_tokens();
    for _ in 0..180 {
        works(&bkash).await.unwrap();
        minutes(1).await;
    }
    assert!(world.sent().iter().any(|path| path == "/token/grant"));
}

#[tokio::test(start_paused = true)]
async fn requests_that_were_not_sent_do_not_count() {
    let world = World::new();
    let bkash = world.adapter();
    world.meet(&[Trouble::NoConnection; 6]);
    for _ in 0..6 {
        assert!(bkash.tokens.get().await.is_err());
        sleep(Duration::from_secs(3)).await;
    }
    assert_eq!(world.sent().len(), 0);
    works(&bkash).await.unwrap();

    // A refresh token that was not sent does not count either, and an open circuit sends nothing.
    minutes(61).await;
    world.sent();
    world.meet(&[Trouble::NoConnection; 8]);
    for _ in 0..20 {
        let _ = bkash.tokens.get().await;
        sleep(Duration::from_millis(2_100)).await;
    }
    sleep(Duration::from_secs(6)).await;
    works(&bkash).await.unwrap();
    assert_eq!(world.sent()[0], "/token/refresh");
}

#[tokio::test(start_paused = true)]
async fn a_broken_gateway_does_not_use_up_both_requests_at_once() {
    let world = World::new();
    let bkash = world.adapter();
    world.meet(&[Trouble::BadGateway]);
    for _ in 0..20 {
        assert!(bkash.tokens.get().await.is_err());
        sleep(Duration::from_secs(10)).await;
    }
    assert_eq!(world.sent().len(), 1, "tries are spaced");
    minutes(2).await;
    works(&bkash).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn after_a_lost_answer_to_a_refresh_the_credentials_are_sent() {
    let world = World::new();
    let bkash = world.adapter();
    works(&bkash).await.unwrap();
    minutes(61).await;
    world.sent();
    world.meet(&[Trouble::AnswerLost]);
    assert!(bkash.tokens.get().await.is_err());
    minutes(6).await;
    works(&bkash).await.unwrap();
    assert_eq!(world.sent()[..2], ["/token/refresh", "/token/grant"]);
}

#[tokio::test(start_paused = true)]
async fn a_caller_who_hangs_up_does_not_lose_the_token() {
    let world = World::new();
    let bkash = world.adapter();
    let tokens = Arc::clone(&bkash.tokens);
    let caller = tokio::spawn(async move { tokens.get().await.is_ok() });
    sleep(Duration::from_millis(50)).await;
    caller.abort();
    settle().await;
    works(&bkash).await.unwrap();
    assert_eq!(world.sent().len(), 2, "one request for a token, one call with it");
    assert_eq!(world.fake.token_calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn nobody_waits_for_a_renewal_while_the_old_token_is_valid() {
    let world = World::new();
    let bkash = world.adapter();
    let first = works(&bkash).await.unwrap();
    minutes(52).await;
    let begun = Instant::now();
    assert_eq!(bkash.tokens.get().await.unwrap().expose_secret(), first);
    assert_eq!(begun.elapsed(), Duration::ZERO);
    settle().await;
    assert_ne!(works(&bkash).await.unwrap(), first);
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_was_ahead_delays_nothing_for_longer_than_an_hour() {
    let world = World::new();
    world.set_clock(10 * 3600);
    let bkash = world.adapter();
    works(&bkash).await.unwrap();
    minutes(51).await;
    works(&bkash).await.unwrap();
    settle().await;
    world.set_clock(-10 * 3600);
    works(&bkash).await.unwrap();
    minutes(10).await;
    let mut waited = 0;
    while works(&bkash).await.is_err() {
        waited += 1;
        assert!(waited <= 60, "no token after an hour");
        minutes(1).await;
    }
    for minute in 0..180 {
        works(&bkash).await.unwrap_or_else(|error| panic!("minute {minute}: {error}"));
        minutes(1).await;
    }
}

#[tokio::test(start_paused = true)]
async fn one_401_does_not_end_the_only_token() {
    let world = World::new();
    let bkash = world.adapter();
    let first = bkash.tokens.get().await.unwrap();
    bkash.tokens.refuse(&first);
    // No other token may be requested yet, so this one stays in use.
    assert_eq!(works(&bkash).await.unwrap(), first.expose_secret());
    minutes(6).await;
    assert_ne!(works(&bkash).await.unwrap(), first.expose_secret());

    // A token that bKash has really ended is replaced as soon as allowed.
    world.fake.revoke_tokens();
    assert!(works(&bkash).await.is_err());
    minutes(61).await;
    works(&bkash).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_token_is_used_only_for_the_account_that_it_was_granted_to() {
    let world = World::new();
    let bkash = world.adapter();
    let first = works(&bkash).await.unwrap();
    let other = world.adapter_for("v1.2.0-beta", "another");
    world.sent();
    assert!(other.tokens.get().await.is_err(), "the fake does not know this user");
    assert_eq!(world.sent(), ["/token/grant"]);
    // This account counts its own failure, and a server that still uses the first account goes on.
    assert_eq!(works(&bkash).await.unwrap(), first);
    assert_eq!(works(&world.adapter()).await.unwrap(), first, "the token survives a restart");
}

#[tokio::test(start_paused = true)]
async fn two_servers_share_one_token() {
    let world = World::new();
    let servers = [world.adapter(), world.adapter()];
    let (one, other) = tokio::join!(works(&servers[0]), works(&servers[1]));
    assert_eq!(one.unwrap(), other.unwrap());
    assert_eq!(world.fake.token_calls(), 1);
}

#[tokio::test(start_paused = true)]
async fn v2_has_its_own_paths_for_tokens() {
    let world = World::new();
    let bkash = world.adapter_of("v2");
    bkash.tokens.get().await.unwrap();
    minutes(51).await;
    bkash.tokens.get().await.unwrap();
    settle().await;
    assert_eq!(world.sent(), ["/auth/grant-token", "/auth/refresh-token"]);
}
