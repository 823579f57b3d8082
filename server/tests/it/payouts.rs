//! Payouts of the sandbox, over HTTP, as a merchant makes them.

use payments_client::{
    Amount, BankAccount, Client, CreatePayout, Currency, ErrorCode, EventKind, Payout, PayoutInterval, PayoutStatus,
    SetDestination, SetPayoutSchedule, SimulateOutcome, TransactionKind,
};
use reqwest::Method;
use serde_json::json;

use crate::{
    engine::Engine,
    server::{Server, payment_of},
};

fn account(number: &str) -> SetDestination {
    let (holder, bank) = ("Karim Stores".to_owned(), "010271234".to_owned());
    SetDestination::bank_account(Currency::Bdt, BankAccount { holder, bank, number: number.to_owned() })
}

async fn earn(server: &Server, client: &Client, taka: u64) {
    let id = server.create(&payment_of(&json!(taka))).await["id"].as_str().unwrap().parse().unwrap();
    client.checkout().simulate(&id, SimulateOutcome::Completed).await.unwrap();
}

/// The payout once its status is this one.
async fn until(client: &Client, payout: &Payout, status: PayoutStatus) -> Payout {
    for _ in 0..600 {
        let found = client.payouts().retrieve(&payout.id).await.unwrap();
        if found.status == status {
            return found;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("{} never became {status}", payout.id);
}

async fn refused(outcome: impl IntoFuture<Output = payments_client::Result<Payout>>) -> ErrorCode {
    outcome.await.unwrap_err().code().unwrap().clone()
}

/// What is available, and the balance, in minor units.
async fn money(client: &Client) -> (i128, i128) {
    let balance = client.account().balance().await.unwrap();
    (balance.available.unwrap().bdt.as_minor(), balance.bdt_balance.as_minor())
}

async fn a_merchant_is_paid_out_to_the_paisa(engine: Engine) {
    let mut server = Server::start_on(engine, &[]);
    let client = server.client();
    let all = || client.payouts().create(CreatePayout::all(Currency::Bdt));
    let of = |taka: u64| client.payouts().create(CreatePayout::of(Amount::from_minor(taka * 100), Currency::Bdt));

    assert_eq!(refused(all()).await, ErrorCode::PayoutDestinationMissing);
    let set = client.payouts().set_destination(&account("1234567890123")).await.unwrap();
    assert_eq!((&*set.destination.last4, set.schedule.interval), ("0123", PayoutInterval::Manual));
    assert_eq!(refused(all()).await, ErrorCode::PayoutNotAvailable);
    earn(&server, &client, 1_000).await;
    assert_eq!(money(&client).await, (95_000, 95_000));
    assert_eq!(refused(of(951)).await, ErrorCode::PayoutNotAvailable);

    // All of it, once, however often the request arrives.
    let first = all().idempotency_key("first").await.unwrap();
    assert_eq!((first.amount.as_minor(), &first.status), (95_000, &PayoutStatus::Requested));
    assert_eq!(all().idempotency_key("first").await.unwrap().id, first.id);
    let first = until(&client, &first, PayoutStatus::Paid).await;
    assert!(first.reference.is_some() && first.approved_at <= first.sent_at && first.sent_at <= first.paid_at);
    assert_eq!(money(&client).await, (0, 0));

    // A refused one puts the money back, and so does one that the bank sends back.
    earn(&server, &client, 100).await;
    client.payouts().set_destination(&account("1230001")).await.unwrap();
    let failed = until(&client, &of(40).await.unwrap(), PayoutStatus::Failed).await;
    assert!(failed.reason.is_some() && failed.paid_at.is_none());
    assert_eq!(money(&client).await, (9_500, 9_500));
    client.payouts().set_destination(&account("1230002")).await.unwrap();
    let returned = until(&client, &of(60).await.unwrap(), PayoutStatus::Returned).await;
    assert!(returned.paid_at.is_some());
    assert_eq!(money(&client).await, (9_500, 9_500));
    assert_eq!(refused(client.payouts().cancel(&returned.id)).await, ErrorCode::PayoutNotAllowed);

    // The statement of the returned payout is what happened since the first one, and adds up.
    let rows = client.payouts().transactions(&returned.id).limit(100).await.unwrap();
    let kinds: Vec<_> = rows.items.iter().map(|it| it.kind.as_str()).collect();
    assert_eq!(kinds, ["payout", "payout_reversed", "payout", "fee", "payment"]);
    let sum: i128 = rows.items.iter().map(|it| it.amount.as_minor()).sum();
    let statement = &returned.statement;
    assert_eq!(statement.opening_balance.as_minor() + sum, statement.closing_balance.as_minor());
    assert_eq!((rows.items[0].balance, rows.has_more), (statement.closing_balance, false));
    let table =
        server.request(Method::GET, &format!("/payouts/{}/transactions.csv", returned.id)).send().await.unwrap();
    let table = table.text().await.unwrap();
    assert!(table.lines().count() == 6 && table.lines().nth(1).unwrap().ends_with(returned.id.as_str()), "{table}");

    let daily = SetPayoutSchedule::new(Currency::Bdt, PayoutInterval::Daily);
    let set = client.payouts().set_schedule(&daily).await.unwrap();
    assert!(set.schedule.next_at.is_some());
    server.crash_and_restart();
    assert_eq!(client.payouts().destinations().await.unwrap(), [set]);
    let listed = client.payouts().list().await.unwrap();
    let ids: Vec<_> = listed.items.iter().map(|it| it.id.clone()).collect();
    assert_eq!(ids, [returned.id.clone(), failed.id, first.id.clone()]);
    let rest = client.payouts().list().after(&returned.id).limit(1).await.unwrap();
    assert_eq!((rest.items[0].status.clone(), rest.has_more), (PayoutStatus::Failed, true));
    let events = client.events().list().limit(100).await.unwrap().items;
    let of_first = |kind| events.iter().filter(|it| *it.kind() == kind).count();
    let kinds = [EventKind::PayoutCreated, EventKind::PayoutPaid, EventKind::PayoutFailed, EventKind::PayoutReturned];
    assert_eq!(kinds.map(of_first), [3, 2, 1, 1]);
    let paid = client.account().transactions().limit(100).await.unwrap().items;
    assert!(paid.iter().any(|it| it.kind == TransactionKind::Payout && it.payout_id.as_ref() == Some(&first.id)));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merchant_is_paid_out_to_the_paisa_on_a_directory() {
    a_merchant_is_paid_out_to_the_paisa(Engine::Directory).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merchant_is_paid_out_to_the_paisa_on_postgresql() {
    a_merchant_is_paid_out_to_the_paisa(Engine::Postgres).await;
}
