//! Operations on webhook endpoints and deliveries.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{
    merchant::{Delivery, Endpoint, index_in, page_of},
    steps::Who,
    world::World,
};
use crate::server::eventually;

/// Nothing listens on this port.
pub(super) const DOWN: &str = "http://127.0.0.1:9/hook";

impl World {
    pub(super) async fn subscribe(
        &mut self,
        who: Who,
        events: &'static [&'static str],
        is_down: bool,
        key: Option<&'static str>,
    ) {
        let url = if is_down { DOWN.to_owned() } else { self.receiver.url() };
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
            secret,
            events,
            is_active: true,
            is_down,
            is_removed: false,
        });
    }

    pub(super) async fn update(&mut self, who: Who, index: usize, events: &'static [&'static str], is_active: bool) {
        let Some(index) = index_in(&self.of(who).endpoints, index) else { return };
        // What is pending follows the endpoint as it is then.
        self.all_ended(who).await;
        let path = format!("/webhooks/{}", self.of(who).endpoints[index].id);
        let body = json!({"events": events, "isActive": is_active}).to_string();
        let answer = self.ask(who, Method::PATCH, &path, None, Some(&body)).await;
        let endpoint = &mut self.of_mut(who).endpoints[index];
        if endpoint.is_removed {
            return answer.assert_refused(404, "webhook endpoint");
        }
        let updated = answer.json();
        assert_eq!((&updated["events"], &updated["isActive"]), (&json!(events), &json!(is_active)));
        (endpoint.events, endpoint.is_active, endpoint.text) = (events, is_active, answer.text);
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
        let Some(answer) = self.post(who, &format!("/webhooks/{id}/test"), key, "{}").await else { return };
        if is_removed {
            return answer.assert_refused(404, "webhook endpoint");
        }
        let delivery = answer.json();
        let status = if is_down { "failed" } else { "success" };
        assert_eq!((&delivery["event"], &delivery["status"]), (&json!("test.ping"), &json!(status)));
        let data = delivery["payload"]["data"].clone();
        self.of_mut(who).deliveries.push(Delivery { endpoint: id, event: "test.ping", data });
    }

    /// Sends one of the listed deliveries again.
    pub(super) async fn resend(&mut self, who: Who, index: usize, key: Option<&'static str>) {
        let Some(nth) = index_in(&self.of(who).deliveries, index) else { return };
        let path = format!("/webhooks/deliveries?page={}&limit=1", nth + 1);
        let ended = eventually("the delivery to end", async || {
            let mut list = self.get(who, &path).await.json();
            let delivery = list["items"][0].take();
            (delivery["status"] != "pending").then_some(delivery)
        })
        .await;
        let path = format!("/webhooks/deliveries/{}/resend", ended["id"].as_str().unwrap());
        let Some(answer) = self.post(who, &path, key, "{}").await else { return };
        let endpoint = self.of(who).endpoints.iter().find(|endpoint| endpoint.id == ended["webhookId"]).unwrap();
        if endpoint.is_removed {
            return answer.assert_refused(409, "endpoint was removed");
        }
        if !endpoint.is_active {
            return answer.assert_refused(409, "endpoint is not active");
        }
        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.text);
        let (again, endpoint) = (answer.json(), endpoint.id.clone());
        assert_eq!((&again["status"], &again["payload"]), (&json!("pending"), &ended["payload"]));
        let known = self.of(who).deliveries.iter().find(|known| ended["event"] == known.event).unwrap().event;
        let data = ended["payload"]["data"].clone();
        self.of_mut(who).deliveries.push(Delivery { endpoint, event: known, data });
    }

    pub(super) async fn endpoints(&self, who: Who) {
        let answer = self.get(who, "/webhooks").await;
        let endpoints = self.of(who).endpoints.iter().filter(|endpoint| !endpoint.is_removed);
        // Sorted by id: ids of one millisecond have no order of creation.
        let texts: BTreeMap<_, _> = endpoints.map(|endpoint| (&endpoint.id, &*endpoint.text)).collect();
        let expected = format!("[{}]", texts.into_values().collect::<Vec<_>>().join(","));
        assert_eq!((answer.status, answer.text), (StatusCode::OK, expected));
    }

    /// Compares a page of deliveries with the model and returns it.
    pub(super) async fn deliveries(&self, who: Who, endpoint: Option<usize>, page: usize, limit: usize) -> Vec<Value> {
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
        // The deliveries of one event are made at one moment and have no order.
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

    /// Waits until each event has its deliveries. An event goes to the endpoints that are there when it is fanned out.
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
            for delivery in self.all_deliveries(who, Some(index)).await {
                assert_eq!(delivery["status"], if endpoint.is_down { "failed" } else { "success" }, "{delivery}");
                let id = delivery["id"].as_str().unwrap();
                let arrived = received.iter().find(|received| received.headers["x-service-delivery"] == *id);
                assert_eq!(arrived.is_none(), endpoint.is_down, "{delivery}");
                if let Some(arrived) = arrived {
                    assert!(arrived.verified_with_any_age(&endpoint.secret));
                    assert_eq!(serde_json::from_slice::<Value>(&arrived.body).unwrap(), delivery["payload"]);
                }
            }
        }
    }
}
