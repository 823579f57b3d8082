//! What is done with payments.

use std::time::Instant;

use gateway_fakes::{bkash, stripe};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::sleep_until;

use super::{
    merchant::{Payment, minor_units, money, page_of, place_in, public},
    steps::Who,
    world::{MARGIN, World},
};
use crate::server::eventually;

impl World {
    pub(super) async fn create(&mut self, who: Who, amount: &str, currency: &'static str, key: Option<&'static str>) {
        let body = format!(
            r#"{{"amount":{amount},"currency":"{currency}","success_url":"https://shop.example/paid","cancel_url":"https://shop.example/cart"}}"#
        );
        let begun = Instant::now();
        let Some(told) = self.post(who, "/payments", key, &body).await else { return };
        let minor = minor_units(amount);
        if minor == 0 {
            return told.is_refused(400, "amount must be a positive number");
        }
        assert_eq!(told.status, StatusCode::CREATED, "{}", told.text);
        let payment = Payment {
            id: told.json()["id"].as_str().unwrap().to_owned(),
            who,
            minor,
            currency,
            raw: "created",
            method: None,
            ends: (begun + self.life, Instant::now() + self.life),
            text: told.text.clone(),
        };
        payment.agrees_with(&told.text);
        self.of_mut(who).payments.push(payment);
        self.owe(who, "payment.created", &told.json());
    }

    /// A payment has moved: the API must show it so from now on.
    pub(super) async fn moved(&mut self, who: Who, place: usize, raw: &'static str) {
        let told = self.get(who, &format!("/payments/{}", self.of(who).payments[place].id)).await;
        assert_eq!(told.status, StatusCode::OK, "{}", told.text);
        let payment = &mut self.of_mut(who).payments[place];
        (payment.raw, payment.text) = (raw, told.text.clone());
        payment.agrees_with(&told.text);
        if raw == "paid" {
            self.owe(who, "payment.completed", &told.json());
        }
    }

    /// The customer of a test session ends it, by `simulate` or by `pay`.
    pub(super) async fn simulate(&mut self, who: Who, place: usize, verb: &str, body: &Value, outcome: &'static str) {
        let Some(place) = place_in(&self.of(who).payments, place) else { return };
        let Payment { id, raw, .. } = &self.of(who).payments[place];
        let (id, raw) = (id.clone(), *raw);
        let path = format!("/checkout/{id}/{verb}");
        let told = self.ask(who, Method::POST, &path, None, Some(&body.to_string())).await;
        if who == Who::Live {
            return told.is_refused(403, "a live payment cannot be simulated");
        }
        if raw != "created" {
            return told.is_refused(409, &format!("a payment that is {raw} cannot become {outcome}"));
        }
        assert_eq!(told.status, StatusCode::OK, "{}", told.text);
        let page = if outcome == "paid" { "paid" } else { "cart" };
        let redirect = format!("https://shop.example/{page}?payment_id={id}&status={}", public(outcome));
        let expected = json!({"status": outcome, "redirectUrl": redirect, "success": outcome == "paid"});
        assert_eq!(told.json(), expected);
        if outcome == "paid" {
            self.of_mut(who).payments[place].method = Some("test");
        }
        self.moved(who, place, outcome).await;
    }

    /// The customer of a live session goes to the gateway, ends it there, and comes back.
    pub(super) async fn pay(&mut self, place: usize, outcome: &'static str) {
        let Some(place) = place_in(&self.of(Who::Live).payments, place) else { return };
        let Payment { id, raw, currency, minor, .. } = &self.of(Who::Live).payments[place];
        let (id, raw, currency, minor) = (id.clone(), *raw, *currency, *minor);
        if raw != "created" {
            let told = self.ask(Who::Live, Method::POST, &format!("/checkout/{id}/pay"), None, Some("{}")).await;
            return told.is_refused(409, &format!("a payment that is {raw} cannot become processing"));
        }
        if !(100..10_000_000).contains(&minor) {
            // The processor takes neither very little nor very much.
            return;
        }
        let (_, attempt) = self.live.pay(&id).await;
        let cancelled = format!("{}/gateways/stripe/return/{id}?outcome=cancel", self.live.server.url);
        let (bkash, stripe) = (self.live.bkash.program(), self.live.stripe.program());
        let (back, method, raw) = match (currency, outcome) {
            ("BDT", "paid") => (bkash.approve(&attempt, bkash::WALLET), "mfs", outcome),
            ("BDT", "failed") => (bkash.approve(&attempt, bkash::POOR_WALLET), "mfs", outcome),
            ("BDT", _) => (bkash.cancel(&attempt), "mfs", outcome),
            (_, "paid") => (stripe.pay(&attempt, stripe::CARD), "card", outcome),
            // Whose card is declined is asked for another one, and can only give up.
            (_, _) => (Some(cancelled), "card", "cancelled"),
        };
        self.live.come_back(&back.unwrap()).await;
        self.of_mut(Who::Live).payments[place].method = Some(method);
        self.moved(Who::Live, place, raw).await;
    }

    pub(super) async fn refund(&mut self, who: Who, place: usize, reason: Option<&str>, key: Option<&'static str>) {
        let Some(place) = place_in(&self.of(who).payments, place) else { return };
        let Payment { id, raw, .. } = &self.of(who).payments[place];
        let (path, raw) = (format!("/payments/{id}/refund"), *raw);
        let body = reason.map_or(json!({}), |reason| json!({"reason": reason}));
        let Some(told) = self.post(who, &path, key, &body.to_string()).await else { return };
        if who == Who::Test {
            return told.is_refused(409, "a test payment cannot become refunded");
        }
        if raw != "paid" {
            return told.is_refused(409, &format!("a payment that is {raw} cannot become refunded"));
        }
        assert_eq!(told.status, StatusCode::OK, "{}", told.text);
        self.moved(who, place, "refunded").await;
        assert_eq!(told.text, self.of(who).payments[place].text);
        let mut data = told.json();
        assert_eq!(data["refund"]["reason"], json!(reason));
        data["refund_reason"] = json!(reason);
        self.owe(who, "payment.refunded", &data);
    }

    /// Nobody has moved this payment, and nobody else sees it.
    pub(super) async fn read(&self, who: Who, place: usize) {
        let path = format!("/payments/{}", self.of(who).payments[place].id);
        let told = self.get(who, &path).await;
        assert_eq!((told.status, &told.text), (StatusCode::OK, &self.of(who).payments[place].text));
        let stranger = if who == Who::Live { Who::Test } else { Who::Live };
        self.get(stranger, &path).await.is_refused(404, "payment");
    }

    pub(super) async fn list(&self, who: Who, status: Option<&str>, page: usize, limit: usize) {
        let filter = status.map(|status| format!("&status={status}")).unwrap_or_default();
        let told = self.get(who, &format!("/payments?page={page}&limit={limit}{filter}")).await;
        let payments = self.of(who).payments.iter();
        let listed: Vec<_> =
            payments.filter(|payment| status.is_none_or(|status| status == public(payment.raw))).collect();
        let items: Vec<&str> = page_of(listed.iter(), page, limit).iter().map(|payment| &*payment.text).collect();
        let (items, total) = (items.join(","), listed.len());
        let expected = format!(r#"{{"items":[{items}],"total":{total},"page":{page},"limit":{limit}}}"#);
        assert_eq!((told.status, told.text), (StatusCode::OK, expected));
    }

    pub(super) async fn account(&self, who: Who) {
        let account = self.get(who, "/account").await.json();
        let balances = self.get(who, "/account/balance").await.json();
        let sum = |currency, raws: &[&str], part: fn(&Payment) -> u64| {
            let payments = self.of(who).payments.iter();
            let summed = payments.filter(|payment| payment.currency == currency && raws.contains(&payment.raw));
            (money(summed.clone().map(part).sum()), summed.count())
        };
        let (bdt, usd) = (sum("BDT", &["paid"], Payment::net).0, sum("USD", &["paid"], Payment::net).0);
        let ever = |currency| sum(currency, &["paid", "refunded"], |payment| payment.minor);
        let ((bdt_volume, bdt_count), (usd_volume, usd_count)) = (ever("BDT"), ever("USD"));
        assert_eq!(account["balance"], json!({"bdt": bdt, "usd": usd, "bdt_balance": bdt, "usd_balance": usd}));
        assert_eq!(balances, json!({"bdt_balance": bdt, "usd_balance": usd}));
        let volume = json!({"bdt": bdt_volume, "usd": usd_volume, "total_payments": bdt_count + usd_count});
        assert_eq!(account["volume"], volume);
    }

    /// Waits for the end of every open session that ends by this time.
    pub(super) async fn let_sessions_end(&mut self, by: Instant) {
        loop {
            let payments = self.merchants.iter().flat_map(|merchant| &merchant.payments);
            let ending =
                payments.filter(|payment| payment.is_open() && payment.ends.0 <= by.max(Instant::now() + MARGIN));
            let Some(over) = ending.map(|payment| payment.ends.1).max() else { return };
            sleep_until(over.into()).await;
            for who in [Who::Test, Who::Live] {
                for place in 0..self.of(who).payments.len() {
                    let payment = &self.of(who).payments[place];
                    if payment.is_open() && payment.ends.1 <= over {
                        self.expire(who, place).await;
                    }
                }
            }
        }
    }

    /// A session whose life is over cannot be paid from that moment on, and soon the payment says so.
    pub(super) async fn expire(&mut self, who: Who, place: usize) {
        let id = self.of(who).payments[place].id.clone();
        let told = self.ask(who, Method::POST, &format!("/checkout/{id}/pay"), None, Some("{}")).await;
        told.is_refused(409, "a payment that is expired cannot become");
        assert_eq!(self.get(who, &format!("/checkout/{id}")).await.json()["isExpired"], true);
        let path = format!("/payments/{id}");
        let is_swept = async || (self.get(who, &path).await.json()["rawStatus"] == "expired").then_some(());
        eventually("a session to be ended", is_swept).await;
        self.moved(who, place, "expired").await;
    }
}
