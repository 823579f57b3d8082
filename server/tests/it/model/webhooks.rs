//! What is done with webhook endpoints and their deliveries.

use std::collections::BTreeMap;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{
    merchant::{Endpoint, Owed, page_of, place_in},
    steps::Who,
    world::World,
};
use crate::server::eventually;

/// Nobody listens there.
pub(super) const DEAD: &str = "http://127.0.0.1:9/hook";

impl World {
    pub(super) async fn subscribe(
        &mut self,
        who: Who,
        events: &'static [&'static str],
        is_dead: bool,
        key: Option<&'static str>,
    ) {
        let url = if is_dead { DEAD.to_owned() } else { self.receiver.url() };
        let body = json!({"url": url, "events": events}).to_string();
        let Some(told) = self.post(who, "/webhooks", key, &body).await else { return };
        assert_eq!(told.status, StatusCode::CREATED, "{}", told.text);
        let endpoint = told.json();
        assert_eq!((&endpoint["url"], &endpoint["events"]), (&json!(url), &json!(events)));
        let text = |name: &str| endpoint[name].as_str().unwrap().to_owned();
        let (id, secret) = (text("id"), text("secret"));
        self.of_mut(who).endpoints.push(Endpoint { id, text: told.text, secret, events, is_dead, is_removed: false });
    }

    pub(super) async fn unsubscribe(&mut self, who: Who, place: usize) {
        let Some(place) = place_in(&self.of(who).endpoints, place) else { return };
        let path = format!("/webhooks/{}", self.of(who).endpoints[place].id);
        let told = self.ask(who, Method::DELETE, &path, None, None).await;
        if std::mem::replace(&mut self.of_mut(who).endpoints[place].is_removed, true) {
            return told.is_refused(404, "webhook endpoint");
        }
        assert_eq!(told.json(), json!({"success": true, "message": "Webhook endpoint removed"}));
    }

    pub(super) async fn ping(&mut self, who: Who, place: usize, key: Option<&'static str>) {
        let Some(place) = place_in(&self.of(who).endpoints, place) else { return };
        let Endpoint { id, is_dead, is_removed, .. } = &self.of(who).endpoints[place];
        let (id, is_dead, is_removed) = (id.clone(), *is_dead, *is_removed);
        let Some(told) = self.post(who, &format!("/webhooks/{id}/test"), key, "{}").await else { return };
        if is_removed {
            return told.is_refused(404, "webhook endpoint");
        }
        let delivery = told.json();
        let status = if is_dead { "failed" } else { "success" };
        assert_eq!((&delivery["event"], &delivery["status"]), (&json!("test.ping"), &json!(status)));
        let data = delivery["payload"]["data"].clone();
        self.of_mut(who).owed.push(Owed { endpoint: id, event: "test.ping", data });
    }

    pub(super) async fn endpoints(&self, who: Who) {
        let told = self.get(who, "/webhooks").await;
        let endpoints = self.of(who).endpoints.iter().filter(|endpoint| !endpoint.is_removed);
        // By their ids, which are those of time; two of one millisecond come in either order.
        let texts: BTreeMap<_, _> = endpoints.map(|endpoint| (&endpoint.id, &*endpoint.text)).collect();
        let expected = format!("[{}]", texts.into_values().collect::<Vec<_>>().join(","));
        assert_eq!((told.status, told.text), (StatusCode::OK, expected));
    }

    /// Looks at a page of the deliveries, and returns it.
    pub(super) async fn deliveries(&self, who: Who, endpoint: Option<usize>, page: usize, limit: usize) -> Vec<Value> {
        let endpoint = endpoint.map(|place| &self.of(who).endpoints[place]);
        let endpoint = endpoint.map(|endpoint| (endpoint.id.clone(), endpoint.is_removed));
        let filter = endpoint.as_ref().map(|(id, _)| format!("&webhookId={id}")).unwrap_or_default();
        let told = self.get(who, &format!("/webhooks/deliveries?page={page}&limit={limit}{filter}")).await;
        if endpoint.as_ref().is_some_and(|(_, is_removed)| *is_removed) {
            told.is_refused(404, "webhook endpoint");
            return Vec::new();
        }
        let owed = self.of(who).owed.iter();
        let listed: Vec<_> = owed.filter(|owed| endpoint.as_ref().is_none_or(|(id, _)| *id == owed.endpoint)).collect();
        let mut answer = told.json();
        assert_eq!(answer["total"], listed.len(), "{}", told.text);
        let expected = page_of(listed.iter(), page, limit);
        let expected: Vec<_> =
            expected.iter().map(|owed| (json!(owed.endpoint), json!(owed.event), &owed.data)).collect();
        let Value::Array(items) = answer["items"].take() else { panic!("{}", told.text) };
        let found =
            items.iter().map(|item| (item["webhookId"].clone(), item["event"].clone(), &item["payload"]["data"]));
        assert_eq!(found.collect::<Vec<_>>(), expected);
        items
    }

    /// Every page of the deliveries.
    pub(super) async fn all_deliveries(&self, who: Who, endpoint: Option<usize>) -> Vec<Value> {
        let mut all = Vec::new();
        for page in 1.. {
            let items = self.deliveries(who, endpoint, page, 7).await;
            if items.is_empty() {
                break;
            }
            all.extend(items);
        }
        all
    }

    /// Every delivery comes to its end, is listed, and has arrived where somebody listens.
    pub(super) async fn every_delivery(&self, who: Who) {
        eventually("every delivery to be made", async || {
            let all = self.all_deliveries(who, None).await;
            all.iter().all(|delivery| delivery["status"] != "pending").then_some(())
        })
        .await;
        let received = self.receiver.received();
        for (place, endpoint) in self.of(who).endpoints.iter().enumerate() {
            for delivery in self.all_deliveries(who, Some(place)).await {
                assert_eq!(delivery["status"], if endpoint.is_dead { "failed" } else { "success" }, "{delivery}");
                let id = delivery["id"].as_str().unwrap();
                let arrived = received.iter().find(|received| received.headers["x-service-delivery"] == *id);
                assert_eq!(arrived.is_none(), endpoint.is_dead, "{delivery}");
                if let Some(arrived) = arrived {
                    assert!(arrived.verified_with_any_age(&endpoint.secret));
                    assert_eq!(serde_json::from_slice::<Value>(&arrived.body).unwrap(), delivery["payload"]);
                }
            }
        }
    }
}
