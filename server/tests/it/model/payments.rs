//! Operations on payments.

use std::time::Instant;

use gateway_fakes::{bkash, stripe};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use tokio::time::sleep_until;

use super::{
    merchant::{Payment, index_in, minor_units, money, page_of, public},
    steps::Who,
    world::{MARGIN, World},
};
use crate::server::eventually;

/// How many attempts a payment may have.
const MAX_ATTEMPTS: u32 = 10;

impl World {
    pub(super) async fn create(&mut self, who: Who, amount: &str, currency: &'static str, key: Option<&'static str>) {
        let body = format!(
            r#"{{"amount":{amount},"currency":"{currency}","success_url":"https://shop.example/paid","cancel_url":"https://shop.example/cart"}}"#
        );
        let begun = Instant::now();
        let Some(answer) = self.post(who, "/payments", key, &body).await else { return };
        let minor = minor_units(amount);
        if minor == 0 {
            return answer.assert_refused(400, "amount must be a positive number");
        }
        if currency == "USD" && !(50..=99_999_999).contains(&minor) {
            return answer.assert_refused(400, "amount must be from 0.5 to 999999.99 in USD, the limits of Stripe");
        }
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
        let payment = Payment {
            id: answer.json()["id"].as_str().unwrap().to_owned(),
            who,
            minor,
            currency,
            raw: "created",
            method: None,
            refunds: Vec::new(),
            attempts: 0,
            expires_between: (begun + self.session_ttl, Instant::now() + self.session_ttl),
            text: answer.text.clone(),
        };
        payment.assert_shown_as(&answer.text);
        self.of_mut(who).payments.push(payment);
        self.expect(who, "payment.created", &answer.json());
    }

    /// Records a payment's new status and asserts that the API shows it.
    pub(super) async fn change_status(&mut self, who: Who, index: usize, raw: &'static str) {
        let answer = self.get(who, &format!("/payments/{}", self.of(who).payments[index].id)).await;
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
        let payment = &mut self.of_mut(who).payments[index];
        (payment.raw, payment.text) = (raw, answer.text.clone());
        payment.assert_shown_as(&answer.text);
        if raw == "paid" {
            self.expect(who, "payment.completed", &answer.json());
        }
    }

    /// Ends a test session by `simulate` or `pay`.
    pub(super) async fn simulate(&mut self, who: Who, index: usize, verb: &str, body: &Value, outcome: &'static str) {
        let Some(index) = index_in(&self.of(who).payments, index) else { return };
        let Payment { id, raw, .. } = &self.of(who).payments[index];
        let (id, raw) = (id.clone(), *raw);
        let path = format!("/checkout/{id}/{verb}");
        let answer = self.ask(who, Method::POST, &path, None, Some(&body.to_string())).await;
        if who == Who::Live {
            return answer.assert_refused(403, "a live payment cannot be simulated");
        }
        if raw != "created" {
            return answer.assert_refused(409, &format!("a payment that is {raw} cannot become {outcome}"));
        }
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
        let page = if outcome == "paid" { "paid" } else { "cart" };
        let redirect = format!("https://shop.example/{page}?payment_id={id}&status={}", public(outcome));
        let expected = json!({"status": outcome, "redirectUrl": redirect, "success": outcome == "paid"});
        assert_eq!(answer.json(), expected);
        if outcome == "paid" {
            self.of_mut(who).payments[index].method = Some("test");
        }
        self.change_status(who, index, outcome).await;
    }

    /// Goes back to the shop from the checkout page.
    pub(super) async fn leave(&mut self, index: usize) {
        let Some(index) = index_in(&self.of(Who::Live).payments, index) else { return };
        let Payment { id, raw, .. } = &self.of(Who::Live).payments[index];
        let (url, raw) = (format!("{}/checkout/{id}", self.live.server.url), *raw);
        let answer = self.http.post(url).body("action=leave").send().await.unwrap();
        assert_eq!(answer.status(), StatusCode::OK);
        if ["created", "pending"].contains(&raw) {
            self.change_status(Who::Live, index, "cancelled").await;
        }
    }

    /// Ends an attempt of a live session at the gateway and returns to the shop. After a failed attempt, the next call tries
    /// again.
    pub(super) async fn pay(&mut self, index: usize, outcome: &'static str) {
        let Some(index) = index_in(&self.of(Who::Live).payments, index) else { return };
        let Payment { id, raw, currency, minor, .. } = &self.of(Who::Live).payments[index];
        let (id, raw, currency, minor) = (id.clone(), *raw, *currency, *minor);
        if !["created", "pending"].contains(&raw) {
            let answer = self.ask(Who::Live, Method::POST, &format!("/checkout/{id}/pay"), None, Some("{}")).await;
            return answer.assert_refused(409, &format!("a payment that is {raw} cannot become processing"));
        }
        if !(100..10_000_000).contains(&minor) {
            // The gateways refuse very small and very large amounts.
            return;
        }
        let (_, attempt) = self.live.pay(&id).await;
        self.of_mut(Who::Live).payments[index].attempts += 1;
        let is_last = self.of(Who::Live).payments[index].attempts == MAX_ATTEMPTS;
        let cancelled = format!("{}/gateways/stripe/return/{id}?outcome=cancel", self.live.server.url);
        let (bkash, stripe) = (self.live.bkash.program(), self.live.stripe.program());
        let (back, method, raw) = match (currency, outcome) {
            ("BDT", "paid") => (bkash.approve(&attempt, bkash::WALLET), "mfs", outcome),
            ("BDT", "failed") => {
                (bkash.approve(&attempt, bkash::POOR_WALLET), "mfs", if is_last { "failed" } else { "pending" })
            }
            ("BDT", _) => (bkash.cancel(&attempt), "mfs", outcome),
            (_, "paid") => (stripe.pay(&attempt, stripe::CARD), "card", outcome),
            // After a declined card the customer can only cancel.
            (_, _) => (Some(cancelled), "card", "cancelled"),
        };
        self.live.come_back(&back.unwrap()).await;
        self.of_mut(Who::Live).payments[index].method = Some(method);
        self.change_status(Who::Live, index, raw).await;
    }

    pub(super) async fn refund(
        &mut self,
        who: Who,
        index: usize,
        percent: Option<u64>,
        reason: Option<&str>,
        key: Option<&'static str>,
    ) {
        let Some(index) = index_in(&self.of(who).payments, index) else { return };
        let payment = &self.of(who).payments[index];
        let (path, raw, left) = (format!("/payments/{}/refund", payment.id), payment.raw, payment.left());
        let part = percent.map(|percent| (payment.minor * percent / 100).max(1));
        let mut body = reason.map_or(json!({}), |reason| json!({"reason": reason}));
        if let Some(part) = part {
            body["amount"] = money(part);
        }
        let Some(answer) = self.post(who, &path, key, &body.to_string()).await else { return };
        if who == Who::Test {
            return answer.assert_refused(409, "a test payment cannot become refunded");
        }
        if raw != "paid" {
            return answer.assert_refused(409, &format!("a payment that is {raw} cannot become refunded"));
        }
        let minor = part.unwrap_or(left);
        if minor > left {
            return answer.assert_refused(409, &format!("{} of this payment is left to refund", money(left)));
        }
        let (raw, kind) =
            if minor == left { ("refunded", "payment.refunded") } else { ("paid", "payment.partially_refunded") };
        if minor < left && key.is_none() {
            return answer.assert_refused(400, "needs an Idempotency-Key");
        }
        assert_eq!(answer.status, StatusCode::OK, "{}", answer.text);
        let payment = &mut self.of_mut(who).payments[index];
        payment.refunds.push(minor);
        (payment.raw, payment.text) = (raw, answer.text.clone());
        payment.assert_shown_as(&answer.text);
        self.read(who, index).await;
        let mut data = answer.json();
        assert_eq!(data["refund"]["reason"], json!(reason));
        data["refund_reason"] = json!(reason);
        self.expect(who, kind, &data);
    }

    /// Asserts that the payment is unchanged and that the other merchant does not see it.
    pub(super) async fn read(&self, who: Who, index: usize) {
        let path = format!("/payments/{}", self.of(who).payments[index].id);
        let answer = self.get(who, &path).await;
        assert_eq!((answer.status, &answer.text), (StatusCode::OK, &self.of(who).payments[index].text));
        let stranger = if who == Who::Live { Who::Test } else { Who::Live };
        self.get(stranger, &path).await.assert_refused(404, "payment");
    }

    pub(super) async fn list(&self, who: Who, status: Option<&str>, page: usize, limit: usize) {
        let filter = status.map(|status| format!("&status={status}")).unwrap_or_default();
        let answer = self.get(who, &format!("/payments?page={page}&limit={limit}{filter}")).await;
        let payments = self.of(who).payments.iter();
        let listed: Vec<_> =
            payments.filter(|payment| status.is_none_or(|status| status == public(payment.raw))).collect();
        let items: Vec<&str> = page_of(listed.iter(), page, limit).iter().map(|payment| &*payment.text).collect();
        let (items, total) = (items.join(","), listed.len());
        let expected = format!(r#"{{"items":[{items}],"total":{total},"page":{page},"limit":{limit}}}"#);
        assert_eq!((answer.status, answer.text), (StatusCode::OK, expected));
    }

    /// Asserts the result of a filter by currency, part by part.
    pub(super) async fn find(&self, who: Who, currency: &str, status: Option<&str>) {
        let status_filter = status.map(|status| format!("&status={status}")).unwrap_or_default();
        let mut found = Vec::new();
        let mut after = String::new();
        loop {
            let part =
                self.get(who, &format!("/payments?limit=3&currency={currency}{status_filter}{after}")).await.json();
            let items = part["items"].as_array().unwrap();
            found.extend(items.iter().map(|payment| payment["id"].as_str().unwrap().to_owned()));
            if part["hasMore"] == false {
                break;
            }
            after = format!("&after={}", part["next"].as_str().unwrap());
        }
        let payments = self.of(who).payments.iter().rev();
        let expected = payments.filter(|payment| {
            payment.currency == currency && status.is_none_or(|status| status == public(payment.raw))
        });
        assert_eq!(found, expected.map(|payment| payment.id.clone()).collect::<Vec<_>>(), "{currency} {status:?}");
    }

    pub(super) async fn account(&self, who: Who) {
        let account = self.get(who, "/account").await.json();
        let balances = self.get(who, "/account/balance").await.json();
        let sum = |currency, raws: &[&str], part: fn(&Payment) -> u64| {
            let payments = self.of(who).payments.iter();
            let summed = payments.filter(|payment| payment.currency == currency && raws.contains(&payment.raw));
            (money(summed.clone().map(part).sum()), summed.count())
        };
        let (bdt, usd) = (sum("BDT", &["paid"], Payment::owed).0, sum("USD", &["paid"], Payment::owed).0);
        let ever = |currency| sum(currency, &["paid", "refunded"], |payment| payment.minor);
        let ((bdt_volume, bdt_count), (usd_volume, usd_count)) = (ever("BDT"), ever("USD"));
        let expected = json!({"bdt": bdt, "usd": usd, "bdt_balance": bdt, "usd_balance": usd});
        for (name, balance) in [("bdt", &bdt), ("usd", &usd)] {
            let available = balances["available"][name].as_f64().unwrap();
            // Refunds under way take from it.
            assert!((0.0..=balance.as_f64().unwrap().max(0.0)).contains(&available), "{balances}");
            assert_eq!(account["balance"]["available"][name], balances["available"][name]);
        }
        for (name, balance) in account["balance"].as_object().unwrap().iter().chain(balances.as_object().unwrap()) {
            assert!(
                ["available", "pending"].contains(&name.as_str()) || expected[name] == *balance,
                "{name}: {balance}"
            );
        }
        let volume = json!({"bdt": bdt_volume, "usd": usd_volume, "total_payments": bdt_count + usd_count});
        assert_eq!(account["volume"], volume);
    }

    /// Waits for every open session that expires by this time.
    pub(super) async fn wait_for_expiry(&mut self, by: Instant) {
        loop {
            let payments = self.merchants.iter().flat_map(|merchant| &merchant.payments);
            let ending = payments
                .filter(|payment| payment.is_open() && payment.expires_between.0 <= by.max(Instant::now() + MARGIN));
            let Some(expired) = ending.map(|payment| payment.expires_between.1).max() else { return };
            sleep_until(expired.into()).await;
            for who in [Who::Test, Who::Live] {
                for index in 0..self.of(who).payments.len() {
                    let payment = &self.of(who).payments[index];
                    if payment.is_open() && payment.expires_between.1 <= expired {
                        self.expire(who, index).await;
                    }
                }
            }
        }
    }

    /// Asserts that an expired session cannot be paid and that its payment ends soon: failed if its last attempt failed.
    pub(super) async fn expire(&mut self, who: Who, index: usize) {
        let Payment { id, raw, .. } = &self.of(who).payments[index];
        let (id, has_failed) = (id.clone(), *raw == "pending");
        let answer = self.ask(who, Method::POST, &format!("/checkout/{id}/pay"), None, Some("{}")).await;
        answer.assert_refused(409, "cannot become");
        let ended = if has_failed { "failed" } else { "expired" };
        if !has_failed {
            assert_eq!(self.get(who, &format!("/checkout/{id}")).await.json()["isExpired"], true);
        }
        let path = format!("/payments/{id}");
        let has_ended = async || (self.get(who, &path).await.json()["rawStatus"] == ended).then_some(());
        eventually("the payment to end", has_ended).await;
        self.change_status(who, index, ended).await;
    }
}
