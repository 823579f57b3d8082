//! The settled shop and shops with planted faults, in many worlds.

use std::sync::atomic::{AtomicU64, Ordering};

use payments_client::{
    Event, EventKind,
    inbox::BoxError,
    testing::{Input, World, Worlds},
    webhook::{Secret, Verifier},
};
use sqlx::{
    Connection, SqliteConnection, SqlitePool, query, query_as, raw_sql,
    sqlite::{SqliteConnectOptions, SqlitePoolOptions},
};

use crate::shop::{Shop, TABLES, settle};

/// What a shop that believes webhooks does wrong.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Planted {
    Nothing,
    ShipsOnTheRedirect,
    TrustsTheHeader,
    IgnoresDuplicates,
    UpdatesWithoutATransaction,
}

/// A database in memory, with the shop's tables. It lasts as long as the connection: sqlx closes those of the pool whose queries
/// are cut off.
async fn database() -> Result<(SqlitePool, SqliteConnection), sqlx::Error> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let name = format!("file:world-{}", NEXT.fetch_add(1, Ordering::Relaxed));
    let options = SqliteConnectOptions::new().filename(name).in_memory(true).shared_cache(true);
    let lasting = SqliteConnection::connect_with(&options).await?;
    let pool = SqlitePoolOptions::new().max_connections(1).connect_with(options).await?;
    raw_sql(TABLES).execute(&pool).await?;
    raw_sql("CREATE TABLE seen (event TEXT PRIMARY KEY)").execute(&pool).await?;
    Ok((pool, lasting))
}

/// Each paid order is marked and has one parcel, and no other order has.
async fn check(world: &World, pool: &SqlitePool) -> Result<(), BoxError> {
    let sql = "SELECT paid, (SELECT count(*) FROM parcels WHERE parcels.number = orders.number) FROM orders \
               WHERE number = $1";
    for order in world.truth().orders {
        let row: Option<(bool, i64)> = query_as(sql).bind(&order.number).fetch_optional(pool).await?;
        let expected = if order.was_paid() { (true, 1) } else { (false, 0) };
        if row.unwrap_or_default() != expected || order.payments.len() > 1 {
            let (paid, parcels) = row.unwrap_or_default();
            return Err(format!("{} is paid: {}; the shop: {paid}, parcels {parcels}", order.number, expected.0).into());
        }
    }
    Ok(())
}

#[tokio::test]
async fn the_settled_shop_ships_each_paid_order_once_in_every_world() {
    let count = std::env::var("SHOP_WORLDS").map_or(200, |worlds| worlds.parse().unwrap());
    let begun = std::time::Instant::now();
    let settled = async |world: World| {
        let (pool, _lasting) = database().await?;
        let handle = async |input| {
            // A new one each time: a shop that is cut off loses what it has in memory.
            let verifier = Verifier::new(Secret::new(world.secret())?);
            let shop = Shop::new(world.client(), pool.clone(), verifier);
            match input {
                Input::Order(order) => drop(shop.buy(&order.number).await?),
                Input::Webhook(webhook) if shop.woken_by(&webhook.signature, &webhook.body) != 200 => {}
                Input::Webhook(_) | Input::Tick => drop(shop.inbox.run_once(settle).await?),
                _ => {}
            }
            Ok::<_, BoxError>(())
        };
        world.play(handle).await?;
        check(&world, &pool).await
    };
    Worlds::new().count(count).run(settled).await.unwrap();
    println!("{count} worlds took {:?}", begun.elapsed());
}

async fn run(planted: Planted) -> Result<(), payments_client::testing::WorldFailure> {
    let shop = async |world: World| {
        let (pool, _lasting) = database().await?;
        let verifier = Verifier::new(Secret::new(world.secret())?);
        let shop = Shop::new(world.client(), pool.clone(), verifier.clone());
        let handle = async |input| {
            match input {
                Input::Order(order) => drop(shop.buy(&order.number).await?),
                Input::Return(browser) if planted == Planted::ShipsOnTheRedirect && browser.status == "completed" => {
                    ship(&pool, browser.payment_id.as_str(), &browser.order, planted).await?;
                }
                Input::Webhook(webhook) => {
                    let event = Event::from_verified(verifier.verify(&webhook.signature, &webhook.body)?)?;
                    let kind = if planted == Planted::TrustsTheHeader { &webhook.event } else { event.kind().as_str() };
                    if kind == EventKind::PaymentCompleted.as_str() {
                        let payment = event.payment()?;
                        ship(&pool, payment.id.as_str(), &payment.merchant_transaction_id, planted).await?;
                    }
                }
                _ => {}
            }
            Ok::<_, BoxError>(())
        };
        world.play(handle).await?;
        check(&world, &pool).await
    };
    Worlds::new().webhooks_arrive().run(shop).await
}

async fn ship(pool: &SqlitePool, payment: &str, number: &str, planted: Planted) -> Result<(), sqlx::Error> {
    let seen = query("INSERT INTO seen VALUES ($1) ON CONFLICT DO NOTHING").bind(payment);
    let paid = query("UPDATE orders SET paid = TRUE WHERE number = $1").bind(number);
    let parcel = query("INSERT INTO parcels (number) VALUES ($1)").bind(number);
    if planted == Planted::UpdatesWithoutATransaction {
        if seen.execute(pool).await?.rows_affected() == 1 {
            paid.execute(pool).await?;
            parcel.execute(pool).await?;
        }
        return Ok(());
    }
    let mut tx = pool.begin().await?;
    let is_new = seen.execute(&mut *tx).await?.rows_affected() == 1;
    if is_new || planted == Planted::IgnoresDuplicates {
        paid.execute(&mut *tx).await?;
        parcel.execute(&mut *tx).await?;
    }
    tx.commit().await
}

#[tokio::test]
async fn each_planted_fault_is_found_within_200_worlds() {
    run(Planted::Nothing).await.unwrap();
    for planted in [
        Planted::ShipsOnTheRedirect,
        Planted::TrustsTheHeader,
        Planted::IgnoresDuplicates,
        Planted::UpdatesWithoutATransaction,
    ] {
        let failure = run(planted).await.unwrap_err();
        println!("{planted:?}: {failure}\n");
    }
}
