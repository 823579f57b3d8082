//! Lists: pages, totals and the filter by public status, against a model in the test.

use reqwest::Method;
use serde_json::{Value, json};

use crate::server::{Server, payment_of};

async fn page(server: &Server, query: &str) -> Value {
    let answer = server.request(Method::GET, &format!("/payments?{query}")).send().await.unwrap();
    answer.json().await.unwrap()
}

fn ids(page: &Value) -> Vec<String> {
    page["items"].as_array().unwrap().iter().map(|item| item["id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_page_of_every_list_is_what_a_model_says_before_and_after_a_crash() {
    let mut server = Server::start();
    // The model: ids with their public status, newest first.
    let mut model: Vec<(String, &str)> = Vec::new();
    for number in 0..33_usize {
        let body = payment_of(&json!(number + 1));
        let payment = server.create(&body).await;
        model.insert(0, (payment["id"].as_str().unwrap().to_owned(), "pending"));
        // Settle some that are not the newest, so that the lists of a status get gaps.
        let status = ["completed", "failed", "cancelled", "pending"][number % 4];
        let settled = &mut model[number / 2];
        if status != "pending" && settled.1 == "pending" {
            let simulate = format!("/api/v1/checkout/{}/simulate", settled.0);
            server.keyless(Method::POST, &simulate).json(&json!({"status": status})).send().await.unwrap();
            settled.1 = status;
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
