//! Payment lists: pages, totals and the status filter, compared with a model.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use futures_util::StreamExt;
use reqwest::Method;
use serde_json::{Value, json};

use crate::server::{Server, payment_of};

async fn page(server: &Server, query: &str) -> Value {
    server.get(&format!("/payments?{query}")).await
}

fn ids(page: &Value) -> Vec<String> {
    page["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_of_every_list_matches_a_model_before_and_after_a_crash() {
    let mut server = Server::start();
    // The model: ids with their status, newest first.
    let mut model: Vec<(String, &str)> = Vec::new();
    for number in 0..33_usize {
        let body = payment_of(&json!(number + 1));
        let payment = server.create(&body).await;
        model.insert(0, (payment["id"].as_str().unwrap().to_owned(), "pending"));
        // End some older payments, so that the status lists get gaps.
        let status = ["completed", "failed", "cancelled", "pending"][number % 4];
        let ended = &mut model[number / 2];
        if status != "pending" && ended.1 == "pending" {
            let simulate = format!("/api/v1/checkout/{}/simulate", ended.0);
            server.keyless(Method::POST, &simulate).json(&json!({"status": status})).send().await.unwrap();
            ended.1 = status;
        }
    }
    for crash in [false, true] {
        if crash {
            server.crash_and_restart();
        }
        for filter in [None, Some("pending"), Some("completed"), Some("failed"), Some("cancelled"), Some("expired")] {
            let expected: Vec<&String> = model
                .iter()
                .filter(|(_, status)| filter.is_none_or(|filter| filter == *status))
                .map(|(id, _)| id)
                .collect();
            let filter = filter.map(|status| format!("&status={status}")).unwrap_or_default();
            for limit in [1, 7, 20, 100] {
                for number in 1..=expected.len() / limit + 2 {
                    let page = page(&server, &format!("page={number}&limit={limit}{filter}")).await;
                    let skipped = (number - 1) * limit;
                    assert_eq!(
                        ids(&page).iter().collect::<Vec<_>>(),
                        expected.iter().skip(skipped).take(limit).copied().collect::<Vec<_>>()
                    );
                    assert_eq!(
                        (&page["total"], &page["page"], &page["limit"]),
                        (&json!(expected.len()), &json!(number), &json!(limit))
                    );
                }
            }
        }
    }
    let default = page(&server, "").await;
    assert_eq!((&default["page"], &default["limit"], ids(&default).len()), (&json!(1), &json!(20), 20));
}

/// Reads every page of a list: ids with their status.
async fn all_pages(server: &Server, filter: &str) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for number in 1.. {
        let page = page(server, &format!("page={number}&limit=100{filter}")).await;
        let items = page["items"].as_array().unwrap();
        let text = |item: &Value, name: &str| item[name].as_str().unwrap().to_owned();
        all.extend(items.iter().map(|item| (text(item, "id"), text(item, "status"))));
        if items.len() < 100 {
            return all;
        }
    }
    unreachable!("pages are counted from 1 on")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_list_over_many_blocks_has_the_same_order_as_the_full_list() {
    let server = Server::start();
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let post = async |path: String, body: Value| {
        let request = http.post(format!("{}/api/v1{path}", server.url)).bearer_auth("sk_test_demo").json(&body);
        request.send().await.unwrap().error_for_status().unwrap().json::<Value>().await.unwrap()
    };
    let body = payment_of(&json!(5));
    let creates = futures_util::stream::iter(0..1_300).map(|_| post("/payments".into(), body.clone()));
    creates.buffer_unordered(32).for_each(async |_| ()).await;
    let created = all_pages(&server, "").await;
    assert_eq!(created.len(), 1_300);
    // End a run of payments, which empties whole blocks, and every seventh of the others.
    let ended = created.iter().enumerate().filter(|(index, _)| (300..900).contains(index) || index % 7 == 0);
    let simulations = futures_util::stream::iter(ended).map(|(index, (id, _))| {
        let status = ["completed", "failed"][index % 2];
        post(format!("/checkout/{id}/simulate"), json!({"status": status}))
    });
    simulations.buffer_unordered(32).for_each(async |_| ()).await;

    let all = all_pages(&server, "").await;
    for status in ["pending", "completed", "failed", "cancelled"] {
        let expected: Vec<_> = all.iter().filter(|(_, known)| known == status).cloned().collect();
        assert_eq!(all_pages(&server, &format!("&status={status}")).await, expected, "{status}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_find_every_listed_payment_while_writers_create_more() {
    let server = Arc::new(Server::start_with(&["--rate-limit", "0"]));
    let writers = (0..8).map(|writer| {
        let server = Arc::clone(&server);
        tokio::spawn(async move {
            for number in 0..40 {
                let create = || {
                    let request = server.request(Method::POST, "/payments");
                    request.header("idempotency-key", format!("{writer}-{number}")).json(&payment_of(&json!(1))).send()
                };
                let (first, second) = tokio::join!(create(), create());
                let (first, second) = (first.unwrap(), second.unwrap());
                assert_eq!((first.status().as_u16(), second.status().as_u16()), (201, 201));
                let first = first.text().await.unwrap();
                assert_eq!(second.text().await.unwrap(), first);
                let id = ids(&json!({"items": [serde_json::from_str::<Value>(&first).unwrap()]})).remove(0);
                let read = server.request(Method::GET, &format!("/payments/{id}")).send().await.unwrap();
                assert_eq!(read.text().await.unwrap(), first);
            }
        })
    });
    let writers = futures_util::future::join_all(writers);
    let is_over = Arc::new(AtomicBool::new(false));
    let readers = ["limit=20", "limit=20&status=pending"].map(|query| {
        let (server, is_over) = (Arc::clone(&server), Arc::clone(&is_over));
        tokio::spawn(async move {
            let mut pages = 0;
            while !is_over.load(Ordering::Relaxed) {
                let answer = server.request(Method::GET, &format!("/payments?{query}")).send().await.unwrap();
                assert_eq!(answer.status(), 200);
                let page: Value = answer.json().await.unwrap();
                let (listed, total) = (ids(&page), page["total"].as_u64().unwrap());
                assert!(listed.len() as u64 >= total.min(20), "{} of {total}", listed.len());
                for id in listed.iter().take(2) {
                    let read = server.request(Method::GET, &format!("/payments/{id}")).send().await.unwrap();
                    assert_eq!(read.status(), 200, "{id} is listed but not found");
                }
                pages += 1;
            }
            pages
        })
    });
    writers.await.into_iter().for_each(|writer| writer.unwrap());
    is_over.store(true, Ordering::Relaxed);
    for reader in readers {
        assert!(reader.await.unwrap() > 10);
    }
    assert_eq!(page(&server, "limit=1").await["total"], 320);
}
