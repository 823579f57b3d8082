//! What a merchant's shop does: creates payments, repeats requests, reads, refunds, and remembers the answers.

use std::{sync::Arc, time::Duration};

use hyper::StatusCode;
use payments_core::Environment;
use payments_server::parts::{AdminReply, AdminRequest};
use serde_json::{Value, json};
use tokio::{task::JoinSet, time::sleep};

use super::{
    ask::{Ask, Key, amount, text},
    customer,
    endpoints::{BETWEEN_PINGS_MILLIS, Manners, Receiver, TEST_EVENT},
    merchant::{Merchant, Order},
    node::Response,
    payouts,
    world::World,
};

/// How endpoints behave. The first endpoint of each merchant always behaves well.
const MANNERS: [Manners; 6] =
    [Manners::Good, Manners::Good, Manners::Slow, Manners::Flaky, Manners::Broken, Manners::Silent];
/// How long a secret that was replaced goes on signing.
const OVERLAP_SECONDS: i64 = 600;
/// How many endpoints a merchant has in each environment.
const ENDPOINTS: usize = 2;

impl Merchant {
    /// A merchant signs up and adds endpoints, before anything goes wrong.
    pub(super) async fn arrive(world: &Arc<World>, number: usize) {
        let Some(service) = world.nodes.first().and_then(|node| node.service()) else { return };
        let name = format!("merchant {number}");
        let AdminReply::Workspace { id, .. } = service.administer(AdminRequest::CreateWorkspace { name }).await else {
            return world.violation("a workspace was not created");
        };
        let mut keys = Vec::new();
        for environment in [Environment::Live, Environment::Test] {
            let (workspace, app, name, scopes, expires_at) = (id.clone(), None, None, Vec::new(), None);
            let create =
                AdminRequest::CreateKey { workspace, environment, app, only_its_app: false, name, scopes, expires_at };
            match service.administer(create).await {
                AdminReply::Key { key } => keys.push(key),
                _ => return world.violation("a key was not created"),
            }
        }
        let [live_key, test_key] = [keys[0].clone(), keys[1].clone()].map(Key::new);
        let mut endpoints = Vec::new();
        for (key, is_live) in [(&live_key, true), (&test_key, false)] {
            for nth in 0..ENDPOINTS {
                let manners = world.fate.choose(&MANNERS).copied().filter(|_| nth > 0).unwrap_or(Manners::Good);
                let host = format!("hook-{number}-{}-{nth}.example", if is_live { "live" } else { "test" });
                let retries = if world.fate.one_in(2) { "standard" } else { "none" };
                let body = json!({"url": format!("https://{host}/hook"), "events": "*", "retries": retries});
                let Some(made) = world.ask(Ask::post("/api/v1/webhooks", body).by(key)).await else {
                    return world.violation("an endpoint was not created");
                };
                let made = made.json();
                let receiver = Receiver::new(host.clone(), manners);
                receiver.rotate(text(&made, "secret"), i64::MAX);
                let mut hosts = world.around.hosts.lock();
                hosts.insert(host, Arc::clone(&receiver));
                endpoints.push((text(&made, "id"), is_live, receiver));
            }
        }
        // The end of a number says what the bank of the sandbox does.
        let wallet = world.fate.choose(&["01770618575", "01770610001", "01770610002"]).copied().unwrap_or_default();
        for key in [&live_key, &test_key] {
            payouts::set_destination(world, &service, &id, key, wallet).await;
        }
        let merchant = Arc::new(Self::new(number, id, [live_key, test_key], endpoints));
        world.merchants.lock().push(merchant);
    }

    /// Does business until the world ends. Waits for its customers.
    pub(super) async fn trade(self: Arc<Self>, world: Arc<World>) {
        let mut customers = JoinSet::new();
        while world.goes_on() {
            let pace = world.setup.pace_millis;
            world.fate.wait(pace / 4..=pace * 7 / 4).await;
            match world.fate.number(0..=99) {
                0..10 => self.create(&world, &mut customers).await,
                10..15 => self.repeat(&world).await,
                15..57 => self.read(&world).await,
                57 | 58 => payouts::ask(&world, &self).await,
                59 => payouts::ask_again(&world, &self).await,
                60..72 => self.list(&world).await,
                72..80 => self.account(&world).await,
                80..87 => self.refund(&world).await,
                87..89 => self.repeat_refund(&world).await,
                89..91 => self.rotate(&world).await,
                91..93 => self.resend(&world).await,
                93 => self.ping(&world).await,
                _ => self.read_events(&world).await,
            }
            while customers.try_join_next().is_some() {}
        }
        while customers.join_next().await.is_some() {}
    }

    async fn create(self: &Arc<Self>, world: &Arc<World>, customers: &mut JoinSet<()>) {
        let nth = self.orders().len();
        let is_live = !world.fate.one_in(3);
        let gateways = ["bkash", "bkash", "stripe", "stripe", "sslcommerz"];
        let gateway = world.fate.choose(&gateways).copied().unwrap_or("stripe");
        let minor = world.fate.number(1_000..=500_000);
        let number = format!("order-{}-{nth}", self.number);
        let mut body = json!({"amount": amount(minor), "currency": if gateway == "stripe" { "USD" } else { "BDT" },
            "merchantTransactionId": number, "success_url": "https://shop.example/paid",
            "cancel_url": "https://shop.example/cart",
            "customer": {"name": "Karim", "email": "karim@example.com", "phone": "01712345678"}});
        if is_live {
            body["ways"] = json!([gateway]);
        }
        let order = Order { number, is_live, body, payment: None, rank: 0, refunds: Vec::new() };
        self.orders().push(order.clone());
        let Some(id) = self.send_order(world, nth, order).await else { return };
        if is_live {
            customers.spawn(customer::visit(Arc::clone(world), id, gateway));
        } else if !world.fate.one_in(4) {
            let action = world.fate.choose(&["success", "fail", "cancel"]).copied().unwrap_or("success");
            let simulate = Ask::post(format!("/api/v1/checkout/{id}/simulate"), json!({"action": action}));
            let _ = world.ask(simulate).await;
        }
    }

    /// Sends an order, for the first time or again. Returns the payment.
    async fn send_order(&self, world: &World, nth: usize, order: Order) -> Option<String> {
        let ask = Ask::post("/api/v1/payments", order.body.clone()).by(self.key(order.is_live)).once(&order.number);
        let answer = world.ask(ask).await?;
        if answer.status != StatusCode::CREATED {
            world.violation(format!("{} is answered with {}: {}", order.number, answer.status, answer.json()));
            return None;
        }
        let id = text(&answer.json(), "id");
        let mut orders = self.orders();
        match &orders[nth].payment {
            Some(known) if *known != id => {
                world.violation(format!("{} has two payments, {known} and {id}", order.number));
            }
            Some(_) if !answer.is_replayed => world.violation(format!("{} is answered twice as new", order.number)),
            _ => orders[nth].payment = Some(id.clone()),
        }
        Some(id)
    }

    /// Sends the same order again, with the same key.
    async fn repeat(&self, world: &World) {
        if let Some((nth, order)) = self.some_order(world, |_| true) {
            self.send_order(world, nth, order).await;
        }
    }

    /// Reads a payment, and checks that it is there and has not gone back.
    async fn read(&self, world: &World) {
        let Some((nth, order)) = self.some_order(world, |order| order.payment.is_some()) else { return };
        let id = order.payment.unwrap_or_default();
        let ask = Ask::get(format!("/api/v1/payments/{id}")).by(self.key(order.is_live));
        let Some(answer) = world.ask(ask).await else { return };
        if answer.status != StatusCode::OK {
            return world.violation(format!("{id}, which was acknowledged, is answered with {}", answer.status));
        }
        self.saw(world, nth, &answer);
    }

    /// Compares a payment with the status that was seen before the request.
    fn saw(&self, world: &World, nth: usize, answer: &Response) {
        let payment = answer.json();
        let rank = rank(&text(&payment, "rawStatus"));
        let order = &mut self.orders()[nth];
        // A payment is paid again if one of its refunds failed.
        let has_failed = payment["refunds"].as_array().is_some_and(|it| it.iter().any(|it| it["status"] == "failed"));
        // Nobody reads an order twice at the same time, so nothing else was seen since the request.
        if rank < order.rank && !(has_failed && text(&payment, "rawStatus") == "paid") {
            world.violation(format!("{} was further before: {payment}", order.number));
        }
        order.rank = rank;
    }

    async fn list(&self, world: &World) {
        let is_live = world.fate.one_in(2);
        let (page, limit) = (world.fate.number(1..=3), world.fate.number(1..=20));
        let status = ["", "&status=pending", "&status=completed", "&status=refunded", "&status=failed"];
        let status = world.fate.choose(&status).copied().unwrap_or_default();
        let path = format!("/api/v1/payments?page={page}&limit={limit}{status}");
        let Some(answer) = world.ask(Ask::get(path).by(self.key(is_live))).await else { return };
        let list = answer.json();
        for item in list["items"].as_array().into_iter().flatten() {
            let is_own = text(item, "merchantTransactionId").starts_with(&format!("order-{}-", self.number));
            if !is_own || (text(item, "environment") == "live") != is_live {
                world.violation(format!("merchant {} sees {item}", self.number));
            }
        }
    }

    async fn account(&self, world: &World) {
        let path = if world.fate.one_in(2) { "/api/v1/account" } else { "/api/v1/account/transactions?limit=20" };
        let _ = world.ask(Ask::get(path).by(self.key(world.fate.one_in(2)))).await;
    }

    async fn read_events(&self, world: &World) {
        let path =
            if world.fate.one_in(2) { "/api/v1/events?limit=20" } else { "/api/v1/webhooks/deliveries?limit=20" };
        let _ = world.ask(Ask::get(path).by(self.key(world.fate.one_in(2)))).await;
    }

    /// Refunds a paid payment, or a part of it.
    async fn refund(&self, world: &World) {
        let paid = |order: &Order| order.is_live && order.rank == rank("paid");
        let Some((nth, order)) = self.some_order(world, paid) else { return self.read(world).await };
        let key = format!("{}-refund-{}", order.number, order.refunds.len());
        let body = match world.fate.one_in(2) {
            true => json!({"reason": key}),
            false => json!({"reason": key, "amount": amount(world.fate.number(1..=100_000))}),
        };
        self.orders()[nth].refunds.push((key, body, false));
        let of = order.refunds.len();
        self.send_refund(world, nth, of).await;
    }

    async fn repeat_refund(&self, world: &World) {
        let Some((nth, order)) = self.some_order(world, |order| !order.refunds.is_empty()) else { return };
        let of = world.fate.number(0..=order.refunds.len() as u64 - 1);
        self.send_refund(world, nth, usize::try_from(of).unwrap_or_default()).await;
    }

    async fn send_refund(&self, world: &World, nth: usize, of: usize) {
        let (id, key, body) = {
            let order = &self.orders()[nth];
            let (key, body, _) = order.refunds[of].clone();
            (order.payment.clone().unwrap_or_default(), key, body)
        };
        let ask = Ask::post(format!("/api/v1/payments/{id}/refund"), body).by(self.key(true)).once(&key);
        let Some(answer) = world.ask(ask).await else { return };
        let is_done = answer.status == StatusCode::OK;
        let refund = &mut self.orders()[nth].refunds[of];
        if refund.2 && !is_done {
            world.violation(format!("{key} was made and is answered with {}: {}", answer.status, answer.json()));
        }
        refund.2 |= is_done;
    }

    /// Rotates an endpoint's secret. The old one signs for ten minutes more, and the endpoint knows the new one a while later.
    async fn rotate(&self, world: &Arc<World>) {
        let Some((id, is_live, receiver)) = world.fate.choose(&self.endpoints).cloned() else { return };
        if !self.may(world, &format!("rotate {id}"), OVERLAP_SECONDS * 1_100) {
            return;
        }
        let key = format!("rotate-{id}-{}", world.fate.number(0..=u64::MAX));
        let body = json!({"overlapSeconds": OVERLAP_SECONDS});
        let ask = Ask::post(format!("/api/v1/webhooks/{id}/rotate-secret"), body).by(self.key(is_live)).once(&key);
        let Some(answer) = world.ask(ask).await.filter(|answer| answer.status == StatusCode::OK) else { return };
        let others_until = world.fate.now_millis() + OVERLAP_SECONDS * 1_000;
        let world = Arc::clone(world);
        tokio::spawn(async move {
            world.fate.wait(0..=60_000).await;
            receiver.rotate(text(&answer.json(), "secret"), others_until);
        });
    }

    /// Asks for a test event, in two requests at once with one key.
    async fn ping(&self, world: &World) {
        let Some((id, is_live, _)) = world.fate.choose(&self.endpoints).cloned() else { return };
        let what = format!("ping-{id}");
        if !self.may(world, &what, BETWEEN_PINGS_MILLIS) {
            return;
        }
        let ask = Ask::post(format!("/api/v1/webhooks/{id}/test"), json!({})).by(self.key(is_live));
        let ask = ask.once(&format!("{what}-{}", world.fate.now_millis()));
        let (_, _) = tokio::join!(world.ask(ask.clone()), world.ask(ask));
        self.done().insert(what, world.fate.now_millis());
    }

    /// Whether `what` may be done: its last time must be at least `millis` ago.
    fn may(&self, world: &World, what: &str, millis: i64) -> bool {
        let (now, mut done) = (world.fate.now_millis(), self.done());
        if done.get(what).is_some_and(|at| at + millis > now) {
            return false;
        }
        done.insert(what.to_owned(), now);
        true
    }

    async fn resend(&self, world: &World) {
        let is_live = world.fate.one_in(2);
        let list = world.ask(Ask::get("/api/v1/webhooks/deliveries?limit=20").by(self.key(is_live))).await;
        let items = list.map(|list| list.json()["items"].as_array().cloned().unwrap_or_default()).unwrap_or_default();
        // Test events are left out: one that comes again would look like a second one.
        let may_come_again = |item: &&Value| item["status"] != "pending" && item["event"] != TEST_EVENT;
        let ended: Vec<String> = items.iter().filter(may_come_again).map(|item| text(item, "id")).collect();
        if let Some(id) = world.fate.choose(&ended) {
            let key = format!("resend-{id}");
            let ask = Ask::post(format!("/api/v1/webhooks/deliveries/{id}/resend"), json!({})).by(self.key(is_live));
            let _ = world.ask(ask.once(&key)).await;
        }
        sleep(Duration::from_millis(1)).await;
    }

    fn some_order(&self, world: &World, fits: impl Fn(&Order) -> bool) -> Option<(usize, Order)> {
        let orders = self.orders();
        // Only the last orders: earlier ones have ended.
        let first = orders.len().saturating_sub(60);
        let fitting: Vec<usize> = (first..orders.len()).filter(|nth| fits(&orders[*nth])).collect();
        world.fate.choose(&fitting).map(|nth| (*nth, orders[*nth].clone()))
    }
}

/// How far a payment has come. Late money makes a failed one paid.
fn rank(raw_status: &str) -> u8 {
    match raw_status {
        "paid" => 2,
        "refunded" => 3,
        "failed" | "cancelled" | "expired" => 1,
        _ => 0,
    }
}
