//! The settled shop is killed at random moments while customers pay, and its webhooks are doubled or dropped.

use std::{collections::BTreeMap, ffi::OsStr, net::TcpListener, process::Command, time::Duration};

use payments_client::{
    Client, PaymentId, SimulateOutcome,
    webhook::{Secret, Signer},
};
use test_support::{cluster::Cluster, server_binary};

use crate::Running;

const SECRET: &str = "whsec_8f2d1a";
/// Payments for each kill.
const PAYMENTS: usize = 10;

/// Pays for one order at the shop, which may be down, and tells the shop about it never, once or twice.
async fn buy(browser: &reqwest::Client, shop: &str, client: &Client, order: usize) {
    let checkout = loop {
        match browser.post(format!("{shop}/orders/order-{order}")).send().await {
            Ok(answer) if answer.status() == 200 => match answer.text().await {
                Ok(url) => break url,
                Err(_) => continue,
            },
            _ => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    };
    let id: PaymentId = checkout.rsplit('/').next().unwrap().parse().unwrap();
    client.checkout().simulate(&id, SimulateOutcome::Completed).await.unwrap();
    for _ in 0..order % 3 {
        let body = format!(r#"{{"id":"evt_{order}"}}"#);
        let signature = Signer::new(Secret::new(SECRET).unwrap()).sign_now(body.as_bytes()).to_string();
        let webhook = browser.post(format!("{shop}/webhooks")).header("x-service-signature", signature).body(body);
        let _ = webhook.send().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shop_on_sqlite_that_is_killed_at_random_moments_ships_each_order_once() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("shop.db");
    each_order_is_shipped_once(env!("CARGO_BIN_EXE_settled-shop"), file.as_os_str()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shop_on_postgresql_that_is_killed_at_random_moments_ships_each_order_once() {
    let url = tokio::task::spawn_blocking(|| Cluster::shared().new_database()).await.unwrap();
    // sqlx wants a host before the path of the socket.
    let url = url.replace("@/", "@localhost/");
    each_order_is_shipped_once(env!("CARGO_BIN_EXE_settled-shop-postgres"), url.as_ref()).await;
}

async fn each_order_is_shipped_once(program: &str, database: &OsStr) {
    let kills: usize = std::env::var("SHOP_KILLS").map_or(10, |kills| kills.parse().unwrap());
    let data = tempfile::tempdir().unwrap();
    let mut server = Command::new(server_binary());
    server.args(["--listen", "127.0.0.1:0", "--rate-limit", "0", "--keyless-rate-limit", "0", "--data-dir"]);
    let mut server = Running::start(server.arg(data.path().join("server")));
    let api = server.address();
    let listen = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let start = || {
        let mut shop = Command::new(program);
        shop.env("PAYMENTS_API_KEY", "sk_test_demo").env("PAYMENTS_API_URL", &api).env("WEBHOOK_SECRET", SECRET);
        Running::start(shop.env("SHOP_DATABASE", database).env("SHOP_LISTEN", &listen))
    };
    let shop = format!("http://{listen}");
    let client = Client::builder("sk_test_demo").base_url(&api).build().unwrap();
    let orders = kills * PAYMENTS;
    let buying = (0..4).map(|customer| {
        let (shop, client) = (shop.clone(), client.clone());
        tokio::spawn(async move {
            let browser = reqwest::Client::new();
            for order in (customer..orders).step_by(4) {
                buy(&browser, &shop, &client, order).await;
            }
        })
    });
    let buying: Vec<_> = buying.collect();
    let seed = fastrand::u64(..);
    let mut random = fastrand::Rng::with_seed(seed);
    for _ in 0..kills {
        let running = start();
        tokio::time::sleep(Duration::from_millis(random.u64(0..300))).await;
        drop(running);
    }
    let _running = start();
    for customer in buying {
        customer.await.unwrap();
    }
    let browser = reqwest::Client::new();
    let expected: BTreeMap<_, _> = (0..orders).map(|order| (format!("order-{order}"), "true 1".to_owned())).collect();
    let mut found = BTreeMap::new();
    for _ in 0..600 {
        let text = async { browser.get(format!("{shop}/orders")).send().await?.text().await };
        let text = text.await.unwrap_or_default();
        found = text.lines().filter_map(|line| line.split_once(' ')).map(|(n, it)| (n.into(), it.into())).collect();
        if found == expected {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(found, expected, "seed {seed}");
}
