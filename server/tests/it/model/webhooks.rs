//! Operations on webhook endpoints and deliveries.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{
    merchant::{Delivery, Endpoint, Merchant, index_in, page_of},
    steps::Who,
    world::World,
};
use crate::server::eventually;

/// Nothing listens on this port.
pub(super) const DOWN: &str = "http://127.0.0.1:9/hook";
/// Maximum secrets that sign: the present one and the last three.
const MOST_SECRETS: usize = 4;

impl World {
    pub(super) async fn subscribe(
        &mut self,
        who: Who,
        events: &'static [&'static str],
        is_down: bool,
        key: Option<&'static str>,
    ) {
        let url = self.url(is_down);
        let body = json!({"url": url, "events": events}).to_string();
        self.fanned_out(who).await;
        let Some(answer) = self.post(who, "/webhooks", key, &body).await else { return };
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
        let endpoint = answer.json();
        assert_eq!((&endpoint["url"], &endpoint["events"]), (&json!(url), &json!(events)));
        let text = |name: &str| endpoint[name].as_str().unwrap().to_owned();
        let (id, secret) = (text("id"), text("secret"));
        self.of_mut(who).endpoints.push(Endpoint {
            id,
            text: answer.text,
            secrets: vec![secret],
            events,
            is_active: true,
            is_down,
            is_removed: false,
        });
    }

    fn url(&self, is_down: bool) -> String {
        if is_down { DOWN.to_owned() } else { self.receiver.url() }
    }

    pub(super) async fn update(
        &mut self,
        who: Who,
        index: usize,
        events: &'static [&'static str],
        is_active: bool,
        is_down: bool,
    ) {
        let Some(index) = index_in(&self.of(who).endpoints, index) else { return };
        // Pending deliveries follow the endpoint's state at their attempt.
        self.all_ended(who).await;
        let path = format!("/webhooks/{}", self.of(who).endpoints[index].id);
        let url = self.url(is_down);
        let body = json!({"url": url, "events": events, "isActive": is_active}).to_string();
        let answer = self.ask(who, Method::PATCH, &path, None, Some(&body)).await;
        let endpoint = &mut self.of_mut(who).endpoints[index];
        if endpoint.is_removed {
            return answer.assert_refused(404, "webhook endpoint");
        }
        let updated = answer.json();
        assert_eq!((&updated["events"], &updated["isActive"]), (&json!(events), &json!(is_active)));
        assert_eq!((&updated["url"], &updated["secret"]), (&json!(url), &json!(endpoint.secrets[0])));
        (endpoint.events, endpoint.is_active, endpoint.is_down) = (events, is_active, is_down);
        endpoint.text = answer.text;
    }

    pub(super) async fn rotate(&mut self, who: Who, index: usize, overlaps: bool, key: Option<&'static str>) {
        let Some(index) = index_in(&self.of(who).endpoints, index) else { return };
        // Pending deliveries are signed with the secrets at their attempt.
        self.all_ended(who).await;
        let path = format!("/webhooks/{}/rotate-secret", self.of(who).endpoints[index].id);
        let body = json!({"overlapSeconds": if overlaps { 86_400 } else { 0 }}).to_string();
        let Some(answer) = self.post(who, &path, key, &body).await else { return };
        let endpoint = &mut self.of_mut(who).endpoints[index];
        if endpoint.is_removed {
            return answer.assert_refused(404, "webhook endpoint");
        }
        let rotated = answer.json();
        let secret = rotated["secret"].as_str().unwrap().to_owned();
        assert!(!endpoint.secrets.contains(&secret), "the secret is the same");
        if !overlaps {
            endpoint.secrets.remove(0);
        }
        endpoint.secrets.insert(0, secret);
        endpoint.secrets.truncate(MOST_SECRETS);
        assert_eq!(rotated["previousSecretExpiresAt"].is_string(), endpoint.secrets.len() > 1, "{rotated}");
        endpoint.text = answer.text;
    }

    pub(super) async fn unsubscribe(&mut self, who: Who, index: usize) {
        let Some(index) = index_in(&self.of(who).endpoints, index) else { return };
        let path = format!("/webhooks/{}", self.of(who).endpoints[index].id);
        self.fanned_out(who).await;
        let answer = self.ask(who, Method::DELETE, &path, None, None).await;
        if std::mem::replace(&mut self.of_mut(who).endpoints[index].is_removed, true) {
            return answer.assert_refused(404, "webhook endpoint");
        }
        assert_eq!(answer.json(), json!({"success": true, "message": "Webhook endpoint removed"}));
    }

    pub(super) async fn ping(&mut self, who: Who, index: usize, key: Option<&'static str>) {
        let Some(index) = index_in(&self.of(who).endpoints, index) else { return };
        let Endpoint { id, is_down, is_removed, .. } = &self.of(who).endpoints[index];
        let (id, is_down, is_removed) = (id.clone(), *is_down, *is_removed);
        // The list has deliveries in the order in which they were made.
        self.fanned_out(who).await;
        let Some(answer) = self.post(who, &format!("/webhooks/{id}/test"), key, "{}").await else { return };
        if is_removed {
            return answer.assert_refused(404, "webhook endpoint");
        }
        let delivery = answer.json();
        let status = if is_down { "failed" } else { "success" };
        assert_eq!((&delivery["event"], &delivery["status"]), (&json!("test.ping"), &json!(status)));
        let data = delivery["payload"]["data"].clone();
        let made = self.of(who).endpoints[index].delivery("test.ping", data);
        self.of_mut(who).deliveries.push(made);
    }

    /// Sends one of the listed deliveries again.
    pub(super) async fn resend(&mut self, who: Who, index: usize, key: Option<&'static str>) {
        let Some(nth) = index_in(&self.of(who).deliveries, index) else { return };
        self.fanned_out(who).await;
        let path = format!("/webhooks/deliveries?page={}&limit=1", nth + 1);
        let ended = eventually("the delivery to end", async || {
            let mut list = self.get(who, &path).await.json();
            let delivery = list["items"][0].take();
            (delivery["status"] != "pending").then_some(delivery)
        })
        .await;
        let endpoints = &self.of(who).endpoints;
        let to = endpoints.iter().position(|endpoint| endpoint.id == ended["webhookId"]).unwrap();
        let later = self.all_deliveries(who, Some(to)).await.iter().position(|other| other["id"] == ended["id"]);
        let path = format!("/webhooks/deliveries/{}/resend", ended["id"].as_str().unwrap());
        let Some(answer) = self.post(who, &path, key, "{}").await else { return };
        let endpoint = &self.of(who).endpoints[to];
        if endpoint.is_removed {
            return answer.assert_refused(409, "endpoint was removed");
        }
        if !endpoint.is_active {
            return answer.assert_refused(409, "endpoint is not active");
        }
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
        let again = answer.json();
        assert_eq!((&again["status"], &again["payload"]), (&json!("pending"), &ended["payload"]));
        let Merchant { endpoints, deliveries, .. } = self.of_mut(who);
        let known = deliveries.iter_mut().rev().filter(|known| known.endpoint == endpoints[to].id).nth(later.unwrap());
        let known = known.unwrap();
        known.is_resent = true;
        let again = endpoints[to].delivery(known.event, known.data.clone());
        deliveries.push(again);
    }

    /// Resends the deliveries that an endpoint missed.
    pub(super) async fn recover(&mut self, who: Who, index: usize) {
        let Some(index) = index_in(&self.of(who).endpoints, index) else { return };
        self.all_ended(who).await;
        let id = self.of(who).endpoints[index].id.clone();
        let since = r#"{"since": "2020-01-01T00:00:00Z"}"#;
        let answer = self.ask(who, Method::POST, &format!("/webhooks/{id}/recover"), None, Some(since)).await;
        let Merchant { endpoints, deliveries, .. } = self.of_mut(who);
        let endpoint = &endpoints[index];
        if endpoint.is_removed {
            return answer.assert_refused(404, "webhook endpoint");
        }
        if !endpoint.is_active {
            return answer.assert_refused(409, "endpoint is not active");
        }
        let missed = deliveries.iter_mut().filter(|one| one.endpoint == id && one.is_missed && !one.is_resent);
        let mut again = Vec::new();
        for missed in missed.filter(|one| one.event != "test.ping") {
            missed.is_resent = true;
            again.push(endpoint.delivery(missed.event, missed.data.clone()));
        }
        assert_eq!(answer.json(), json!({"resent": again.len(), "hasMore": false, "next": null}));
        if again.is_empty() {
            return;
        }
        // Deliveries of one millisecond have no order, so use the server's.
        let path = format!("/webhooks/deliveries?webhookId={id}&limit={}", again.len());
        let listed = self.get(who, &path).await.json();
        for made in listed["items"].as_array().unwrap().iter().rev() {
            let is_same = |one: &Delivery| made["event"] == one.event && made["payload"]["data"] == one.data;
            let nth = again.iter().position(is_same).unwrap_or_else(|| panic!("it was not missed: {made}"));
            let again = again.remove(nth);
            self.of_mut(who).deliveries.push(again);
        }
    }

    pub(super) async fn endpoints(&self, who: Who) {
        let answer = self.get(who, "/webhooks").await;
        let endpoints = self.of(who).endpoints.iter().filter(|endpoint| !endpoint.is_removed);
        // Sort by id, because ids of one millisecond are not in the order of creation.
        let texts: BTreeMap<_, _> = endpoints.map(|endpoint| (&endpoint.id, &*endpoint.text)).collect();
        let expected = format!("[{}]", texts.into_values().collect::<Vec<_>>().join(","));
        assert_eq!((answer.status, answer.text), (StatusCode::OK, expected));
    }

    /// Compares a page of deliveries with the model and returns it.
    pub(super) async fn deliveries(&self, who: Who, endpoint: Option<usize>, page: usize, limit: usize) -> Vec<Value> {
        self.fanned_out(who).await;
        let endpoint = endpoint.map(|index| &self.of(who).endpoints[index]);
        let endpoint = endpoint.map(|endpoint| (endpoint.id.clone(), endpoint.is_removed));
        let filter = endpoint.as_ref().map(|(id, _)| format!("&webhookId={id}")).unwrap_or_default();
        let answer = self.get(who, &format!("/webhooks/deliveries?page={page}&limit={limit}{filter}")).await;
        if endpoint.as_ref().is_some_and(|(_, is_removed)| *is_removed) {
            answer.assert_refused(404, "webhook endpoint");
            return Vec::new();
        }
        let all = self.of(who).deliveries.iter();
        let listed: Vec<_> = all.filter(|one| endpoint.as_ref().is_none_or(|(id, _)| *id == one.endpoint)).collect();
        let mut list = answer.json();
        assert_eq!(list["total"], listed.len(), "{}", answer.text);
        let expected = page_of(listed.iter(), page, limit);
        let expected: Vec<_> = expected.iter().map(|one| (json!(one.event), &one.data)).collect();
        let Value::Array(items) = list["items"].take() else { panic!("{}", answer.text) };
        // The deliveries of one event are created at one moment, so they have no order.
        let found = items.iter().map(|item| (item["event"].clone(), &item["payload"]["data"]));
        assert_eq!(found.collect::<Vec<_>>(), expected);
        for item in &items {
            let is_expected = |one: &&Delivery| {
                item["webhookId"] == one.endpoint && item["event"] == one.event && item["payload"]["data"] == one.data
            };
            assert!(listed.iter().copied().any(|one| is_expected(&one)), "{item}");
        }
        items
    }

    /// Reads every page of deliveries.
    pub(super) async fn all_deliveries(&self, who: Who, endpoint: Option<usize>) -> Vec<Value> {
        let mut all = Vec::new();
        for page in 1.. {
            let items = self.deliveries(who, endpoint, page, 7).await;
            if items.is_empty() {
                break;
            }
            all.extend(items);
        }
        let each: BTreeSet<_> = all.iter().map(|delivery| delivery["id"].to_string()).collect();
        assert_eq!(each.len(), all.len(), "a delivery is listed twice");
        all
    }

    /// Waits until each event has its deliveries. An event goes to the endpoints that exist when it is fanned out.
    async fn fanned_out(&self, who: Who) {
        eventually("every event to be fanned out", async || {
            let list = self.get(who, "/webhooks/deliveries?limit=1").await.json();
            (list["total"] == self.of(who).deliveries.len()).then_some(())
        })
        .await;
    }

    async fn all_ended(&self, who: Who) {
        eventually("every delivery to end", async || {
            let all = self.all_deliveries(who, None).await;
            all.iter().all(|delivery| delivery["status"] != "pending").then_some(())
        })
        .await;
    }

    /// Waits for every delivery to end and asserts that reachable endpoints received theirs.
    pub(super) async fn check_deliveries(&self, who: Who) {
        self.all_ended(who).await;
        let received = self.receiver.received();
        for (index, endpoint) in self.of(who).endpoints.iter().enumerate() {
            let expected = self.of(who).deliveries.iter().rev().filter(|one| one.endpoint == endpoint.id);
            for (delivery, expected) in self.all_deliveries(who, Some(index)).await.into_iter().zip(expected) {
                assert_eq!(delivery["status"], if expected.is_missed { "failed" } else { "success" }, "{delivery}");
                let id = delivery["id"].as_str().unwrap();
                let arrived = received.iter().find(|received| received.headers["x-service-delivery"] == *id);
                assert_eq!(arrived.is_none(), expected.is_missed, "{delivery}");
                if let Some(arrived) = arrived {
                    assert_eq!(arrived.signatures(), expected.secrets.len(), "{delivery}");
                    assert!(expected.secrets.iter().all(|secret| arrived.verified_with_any_age(secret)), "{delivery}");
                    assert_eq!(serde_json::from_slice::<Value>(&arrived.body).unwrap(), delivery["payload"]);
                }
            }
        }
    }
}
