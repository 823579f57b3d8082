//! A shop that ships each order once, even if it crashes or its webhooks are lost or repeated: its orders and its inbox
//! share a database.

use std::{env, process::ExitCode, sync::Arc};

use bytes::Bytes;
use payments_client::{
    Client, CreatePayment, Event, EventKind, Money,
    inbox::{BoxError, Inbox, Start},
    webhook::{Secret, Verifier},
};
use sqlx::{query, query_as, raw_sql};
use warp::{Filter, http::StatusCode, reply};

use crate::database::{self, Pool, Store, Tx};

/// `parcels` is an outbox: a packer takes its rows and sends them.
pub(crate) const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS orders (number TEXT PRIMARY KEY, paid BOOLEAN NOT NULL DEFAULT FALSE);
    CREATE TABLE IF NOT EXISTS parcels (number TEXT NOT NULL REFERENCES orders);
";

pub(crate) async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("the shop ended: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<(), BoxError> {
    let verifier = Verifier::new(Secret::new(&env::var("WEBHOOK_SECRET")?)?);
    let pool = database::open(env::var("SHOP_DATABASE").ok()).await?;
    raw_sql(TABLES).execute(&pool).await?;

    let shop = Shop::new(Client::from_env()?, pool, verifier);
    let settled = shop.inbox.clone();
    let settled = tokio::spawn(async move { settled.run(settle).await });

    let listen = env::var("SHOP_LISTEN").unwrap_or_else(|_| "127.0.0.1:3000".into());
    let listener = tokio::net::TcpListener::bind(&listen).await;
    let listener = listener.map_err(|error| format!("cannot listen on SHOP_LISTEN={listen}: {error}"))?;
    println!("the shop listens on http://{}", listener.local_addr()?);

    let shop = Arc::new(shop);
    let with_shop = warp::any().map(move || Arc::clone(&shop));
    let buy = warp::path!("orders" / String)
        .and(warp::post())
        .and(with_shop.clone())
        .then(|number: String, shop: Arc<Shop>| async move { answer(shop.buy(&number).await) });
    let orders = warp::path!("orders")
        .and(warp::get())
        .and(with_shop.clone())
        .then(|shop: Arc<Shop>| async move { answer(shop.orders().await) });
    let webhooks = warp::path!("webhooks")
        .and(warp::post())
        .and(warp::body::content_length_limit(256 * 1024))
        .and(warp::header::<String>("x-service-signature"))
        .and(warp::body::bytes())
        .and(with_shop)
        .map(|signature: String, body: Bytes, shop: Arc<Shop>| shop.woken_by(&signature, &body));
    tokio::select! {
        () = warp::serve(buy.or(orders).or(webhooks)).incoming(listener).run() => Ok(()),
        ended = settled => Ok(ended??),
    }
}

/// What an event changes. It commits together with the inbox's cursor.
pub(crate) async fn settle(tx: &mut Tx, event: &Event) -> Result<(), BoxError> {
    if *event.kind() == EventKind::PaymentCompleted {
        let number = event.payment()?.merchant_transaction_id;
        query("UPDATE orders SET paid = TRUE WHERE number = $1").bind(&number).execute(&mut **tx).await?;
        query("INSERT INTO parcels (number) VALUES ($1)").bind(&number).execute(&mut **tx).await?;
    }
    Ok(())
}

pub(crate) struct Shop {
    client: Client,
    pool: Pool,
    pub(crate) inbox: Inbox<Store>,
    verifier: Verifier,
}

impl Shop {
    pub(crate) fn new(client: Client, pool: Pool, verifier: Verifier) -> Self {
        let inbox = Inbox::new(client.clone(), Store::new(pool.clone())).name("orders").start(Start::Beginning);
        Self { client, pool, inbox, verifier }
    }

    /// Creates an order and its payment, each once. Returns the checkout's URL.
    pub(crate) async fn buy(&self, number: &str) -> Result<String, BoxError> {
        let insert = query("INSERT INTO orders (number) VALUES ($1) ON CONFLICT DO NOTHING");
        insert.bind(number).execute(&self.pool).await?;
        let params = CreatePayment::of(Money::taka(750))
            .success_url("https://shop.example/paid")
            .cancel_url("https://shop.example/cart")
            .unique_merchant_transaction_id(number);
        Ok(self.client.payments().create(params).idempotency_key(number).await?.checkout_url)
    }

    /// Each order, whether it is paid, and how many parcels it has.
    async fn orders(&self) -> Result<String, BoxError> {
        let sql =
            "SELECT number, paid, (SELECT count(*) FROM parcels WHERE parcels.number = orders.number) FROM orders";
        let rows: Vec<(String, bool, i64)> = query_as(sql).fetch_all(&self.pool).await?;
        Ok(rows.iter().map(|(number, paid, parcels)| format!("{number} {paid} {parcels}\n")).collect())
    }

    /// A webhook only wakes the inbox, so it may be lost or come twice.
    pub(crate) fn woken_by(&self, signature: &str, body: &[u8]) -> StatusCode {
        match self.verifier.verify(signature, body) {
            Ok(webhook) => {
                self.inbox.wake(&webhook);
                StatusCode::OK
            }
            Err(_) => StatusCode::BAD_REQUEST,
        }
    }
}

fn answer(result: Result<String, BoxError>) -> impl warp::Reply {
    let (text, status) = match result {
        Ok(text) => (text, StatusCode::OK),
        Err(error) => (error.to_string(), StatusCode::SERVICE_UNAVAILABLE),
    };
    reply::with_status(text, status)
}
