//! Which ways to pay a customer sees, and what choosing one leads to. No gateway is named: the test takes the names from the
//! checkout session.

use gateway_fakes::Does;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::{
    engine::Engine,
    market::{Market, return_by},
};

async fn market() -> Market {
    Market::open(Engine::Directory, gateway_fakes::all(), "").await
}

impl Market {
    async fn session(&self, id: &str) -> Value {
        self.server.keyless(Method::GET, &format!("/api/v1/checkout/{id}")).send().await.unwrap().json().await.unwrap()
    }

    async fn names(&self, id: &str) -> Vec<String> {
        let session = self.session(id).await;
        session["ways"].as_array().unwrap().iter().map(|way| way["name"].as_str().unwrap().to_owned()).collect()
    }

    async fn pay(&self, id: &str, body: &Value) -> (StatusCode, Value) {
        let pay = self.server.keyless(Method::POST, &format!("/api/v1/checkout/{id}/pay"));
        let answer = pay.json(body).send().await.unwrap();
        (answer.status(), answer.json().await.unwrap())
    }

    async fn page(&self, id: &str, language: &str) -> String {
        let page = self.server.keyless(Method::GET, &format!("/checkout/{id}?lang={language}")).send().await.unwrap();
        page.text().await.unwrap()
    }
}

fn id_of(payment: &Value) -> &str {
    payment["id"].as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_customer_chooses_among_the_ways_of_the_payments_currency() {
    let market = market().await;
    let payment = market.create(&json!({})).await;
    let names = market.names(id_of(&payment)).await;
    let of_currency = market.fakes.iter().map(|fake| fake.program()).filter(|fake| fake.currency() == "BDT");
    assert_eq!(names, of_currency.map(|fake| fake.name()).collect::<Vec<_>>());
    assert!(names.len() > 1);
    for language in ["en", "bn"] {
        let page = market.page(id_of(&payment), language).await;
        for name in &names {
            assert!(page.contains(&format!(r#"name="paymentMethod" value="{name}""#)), "{page}");
        }
    }
    // Each way leads to its own gateway, and the money of each counts.
    for name in &names {
        let payment = market.create(&json!({})).await;
        let (status, paying) = market.pay(id_of(&payment), &json!({"paymentMethod": name})).await;
        assert_eq!(status, StatusCode::OK, "{paying}");
        let (url, fake) = (paying["redirectUrl"].as_str().unwrap(), market.fakes.iter());
        let fake = fake.into_iter().find(|fake| fake.program().name() == name).unwrap();
        assert!(url.starts_with(&fake.url()), "{url}");
        let back = fake.program().visit(url, Does::Pays).unwrap();
        let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy().build().unwrap();
        assert_eq!(return_by(&http, &back).send().await.unwrap().status(), StatusCode::SEE_OTHER);
        market.becomes(id_of(&payment), "paid").await;
        let receipt = market.page(id_of(&payment), "en").await;
        assert!(receipt.contains("Paid with"), "{receipt}");
    }
    // The specification's words still work, and an unknown word is refused with the known ones.
    let (status, paying) = market.pay(id_of(&payment), &json!({"paymentMethod": "cash"})).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(names.iter().all(|name| paying["message"][0].as_str().unwrap().contains(name)), "{paying}");
    assert_eq!(market.pay(id_of(&payment), &json!({"paymentMethod": "mfs"})).await.0, StatusCode::OK);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_way_after_a_failed_attempt_is_charged_once() {
    let market = market().await;
    let payment = market.create(&json!({})).await;
    let [first, second, ..] = &*market.names(id_of(&payment)).await else { panic!("two ways") };
    let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy().build().unwrap();
    for (name, does, status) in [(first, Does::HasNoMoney, "pending"), (second, Does::Pays, "paid")] {
        let (_, paying) = market.pay(id_of(&payment), &json!({"paymentMethod": name})).await;
        let url = paying["redirectUrl"].as_str().unwrap();
        let fake = market.fakes.iter().find(|fake| fake.program().name() == name).unwrap();
        assert!(url.starts_with(&fake.url()), "{url}");
        let back = fake.program().visit(url, does).unwrap();
        return_by(&http, &back).send().await.unwrap();
        market.becomes(id_of(&payment), status).await;
    }
    let taken: u32 = market.fakes.iter().flat_map(|fake| fake.program().books()).map(|entry| entry.taken).sum();
    assert_eq!(taken, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_merchant_names_the_ways_of_a_payment_and_the_operator_those_of_a_workspace() {
    let market = market().await;
    let all = market.names(id_of(&market.create(&json!({})).await)).await;
    let last = all.last().unwrap();
    let one = market.create(&json!({"ways": [last]})).await;
    assert_eq!((one["ways"].clone(), market.names(id_of(&one)).await), (json!([last]), vec![last.clone()]));
    let (status, refused) = market.pay(id_of(&one), &json!({"paymentMethod": all[0]})).await;
    assert_eq!((status, &refused["code"]), (StatusCode::BAD_REQUEST, &json!("payment_method_invalid")));
    let create = |ways: Value| {
        let create = market.server.keyless(Method::POST, "/api/v1/payments").bearer_auth(&market.key);
        create.json(&crate::market::order(&json!({"ways": ways}))).send()
    };
    for ways in [json!(["cash"]), json!(["test"])] {
        let refused = create(ways.clone()).await.unwrap();
        assert_eq!(refused.status(), StatusCode::BAD_REQUEST, "{ways}");
        assert_eq!(refused.json::<Value>().await.unwrap()["fields"][0]["field"], "ways");
    }
    let reversed: Vec<&str> = all.iter().rev().map(String::as_str).collect();
    let command = [&["workspaces", "ways", "--workspace", "Rahim & Sons"][..], &reversed].concat();
    assert_eq!(market.server.run(&command).trim(), reversed.join(" "));
    assert_eq!(market.names(id_of(&market.create(&json!({})).await)).await, reversed);
    market.server.run(&["workspaces", "ways", "--workspace", "Rahim & Sons", last]);
    let payment = market.create(&json!({})).await;
    assert_eq!(market.names(id_of(&payment)).await, std::slice::from_ref(last));
    // One way needs no choice.
    let page = market.page(id_of(&payment), "en").await;
    assert!(!page.contains(r#"type="radio""#) && page.contains(r#"value="pay""#), "{page}");
    assert_eq!(market.server.run(&["workspaces", "ways", "--workspace", "Rahim & Sons"]).trim(), "all");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_checkout_asks_for_what_the_chosen_way_needs_and_the_payment_lacks() {
    let market = market().await;
    let payment = market.create(&json!({"customer": {"name": "Karim"}})).await;
    let id = id_of(&payment);
    let page = market.page(id, "en").await;
    let asks = page.contains(r#"name="customerEmail""#);
    assert!(asks && !page.contains(r#"name="customerName""#), "{page}");
    let mut needy = None;
    for name in market.names(id).await {
        let (status, answer) = market.pay(id, &json!({"paymentMethod": name, "phoneNumber": "01712345678"})).await;
        if status == StatusCode::BAD_REQUEST {
            assert_eq!(
                (&answer["fields"][0]["field"], &answer["code"]),
                (&json!("customerEmail"), &json!("field_missing"))
            );
            needy = Some(name);
            break;
        }
        return_to_choice(&market, id, &answer).await;
    }
    let needy = needy.expect("a way that needs an e-mail address");
    let form = [("action", "pay"), ("paymentMethod", &*needy), ("phoneNumber", "01712345678"), ("customerEmail", " ")];
    let submit = |form: [(&str, &str); 4]| {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
        let post = market.server.keyless(Method::POST, &format!("/checkout/{id}?lang=en"));
        post.header("content-type", "application/x-www-form-urlencoded").body(body).send()
    };
    let again = submit(form).await.unwrap();
    assert_eq!(again.status(), StatusCode::BAD_REQUEST);
    let page = again.text().await.unwrap();
    assert!(page.contains("This way to pay needs it.") && page.contains(r#"value="01712345678""#), "{page}");
    let [action, way, phone, _] = form;
    let sent = submit([action, way, phone, ("customerEmail", "karim@example.com")]).await.unwrap();
    assert_eq!(sent.status(), StatusCode::SEE_OTHER);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_blank_field_of_the_customer_counts_as_missing() {
    let market = market().await;
    let blank = json!({"name": " ", "email": "  ", "phone": " "});
    let known = json!({"phoneNumber": "01712345678", "customerName": "Karim", "customerEmail": "karim@example.com"});
    for field in ["customerName", "customerEmail", "phoneNumber"] {
        let payment = market.create(&json!({"customer": blank})).await;
        let (id, mut refused) = (id_of(&payment), Vec::new());
        for way in market.names(id).await {
            let mut body = known.clone();
            body["paymentMethod"] = json!(way);
            // A number must be one, so it is left out.
            body[field] = if field == "phoneNumber" { Value::Null } else { json!(" ") };
            let (status, answer) = market.pay(id, &body).await;
            if status == StatusCode::OK {
                return_to_choice(&market, id, &answer).await;
                continue;
            }
            assert_eq!((status, &answer["code"]), (StatusCode::BAD_REQUEST, &json!("field_missing")), "{answer}");
            assert_eq!(answer["fields"][0]["field"], field);
            refused.push(way);
        }
        let page = market.page(id, "en").await;
        assert!(!refused.is_empty() && page.contains(&format!(r#"name="{field}""#)), "{field}: {page}");
    }
}

/// Gives the attempt up, so that the customer can choose again.
async fn return_to_choice(market: &Market, id: &str, paying: &Value) {
    let url = paying["redirectUrl"].as_str().unwrap();
    let fake = market.fakes.iter().find(|fake| url.starts_with(&fake.url())).unwrap();
    let back = fake.program().visit(url, Does::HasNoMoney).unwrap();
    let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy().build().unwrap();
    return_by(&http, &back).send().await.unwrap();
    market.becomes(id, "pending").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_gateway_is_not_offered_and_its_open_attempts_are_still_paid() {
    let market = market().await;
    let open = market.create(&json!({})).await;
    let (_, paying) = market.pay(id_of(&open), &json!({})).await;
    let url = paying["redirectUrl"].as_str().unwrap();
    let fake = market.fakes.iter().find(|fake| url.starts_with(&fake.url())).unwrap();
    let name = fake.program().name();
    let wrong = market.server.try_run(&["gateways", "disable", name, "--until", "2020-01-01"]);
    assert!(!wrong.status.success() && String::from_utf8_lossy(&wrong.stderr).contains("this time has passed"));
    market.server.run(&["gateways", "disable", name, "--until", "2099-01-01"]);
    let list = market.server.run(&["gateways", "list"]);
    let line = list.lines().find(|line| line.starts_with(name)).unwrap();
    assert!(line.contains("calls answered in the last hour; paused until 2099-01-01"), "{list}");
    let new = market.create(&json!({})).await;
    assert!(!market.names(id_of(&new)).await.contains(&name.to_owned()));
    // Without another way, the customer reads that payments are paused.
    let only = market.create(&json!({"ways": [name]})).await;
    let (status, answer) = market.pay(id_of(&only), &json!({})).await;
    assert_eq!((status, &answer["code"]), (StatusCode::SERVICE_UNAVAILABLE, &json!("gateway_unavailable")));
    assert!(market.page(id_of(&only), "en").await.contains("Payments are paused for a moment"));

    let back = fake.program().visit(url, Does::Pays).unwrap();
    let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy().build().unwrap();
    return_by(&http, &back).send().await.unwrap();
    market.becomes(id_of(&open), "paid").await;
    market.server.run(&["gateways", "enable", name]);
    assert_eq!(market.pay(id_of(&only), &json!({})).await.0, StatusCode::OK);
}
