//! The checkout page in a browser without JavaScript.

use gateway_fakes::{Fault, bkash, stripe};
use payments_client::{CreateWebhook, EventKind, Subscription};
use reqwest::{Method, Response, StatusCode};
use serde_json::{Value, json};

use crate::{
    live::Live,
    receiver::Receiver,
    server::{Server, payment_of},
};

async fn post(server: &Server, path: &str, form: &'static str) -> Response {
    let request = server.keyless(Method::POST, path).header("content-type", "application/x-www-form-urlencoded");
    request.body(form).send().await.unwrap()
}

async fn get(server: &Server, path: &str) -> String {
    server.keyless(Method::GET, path).send().await.unwrap().text().await.unwrap()
}

/// Follows a form's redirect to the page that forwards the browser, and returns the target.
async fn forwarded_to(server: &Server, answer: Response) -> String {
    assert_eq!(answer.status(), StatusCode::SEE_OTHER);
    let here = answer.headers()["location"].to_str().unwrap().to_owned();
    assert!(here.starts_with("/checkout/"), "a form redirects off site: {here}");
    let page = get(server, &here).await;
    let (_, rest) = page.split_once("content=\"0;url=").unwrap_or_else(|| panic!("the page forwards nowhere: {page}"));
    let target = rest.split_once('"').unwrap().0.replace("&#38;", "&").replace("&amp;", "&");
    assert!(page.contains("class=\"button go\""), "no link for browsers that do not forward");
    target
}

async fn new_payment(server: &Server, body: &Value) -> (String, Value) {
    let payment: Value =
        server.request(Method::POST, "/payments").json(body).send().await.unwrap().json().await.unwrap();
    (format!("/checkout/{}", payment["id"].as_str().unwrap()), payment)
}

#[tokio::test(flavor = "multi_thread")]
async fn each_simulator_button_ends_the_session_with_its_status() {
    let server = Server::start();
    for (button, shown, status, back) in [
        ("action=success", "Paid", "completed", "https://shop.example/paid"),
        ("action=fail", "The payment failed", "failed", "https://shop.example/cart"),
        ("action=cancel", "You cancelled this payment", "cancelled", "https://shop.example/cart"),
    ] {
        let (path, payment) = new_payment(&server, &payment_of(&json!(12.5))).await;
        let id = payment["id"].as_str().unwrap();
        let page = get(&server, &path).await;
        assert!(page.contains("No money moves.") && page.contains("৳12.50"), "{page}");
        let answer = post(&server, &path, button).await;
        assert_eq!(answer.status(), StatusCode::SEE_OTHER);
        let page = get(&server, answer.headers()["location"].to_str().unwrap()).await;
        assert!(page.contains(&format!("href=\"{back}?payment_id={id}&#38;status={status}\"")), "{page}");
        // A second click and a reload show the result and change nothing.
        let again = post(&server, &path, "action=success").await;
        assert_eq!(again.status(), StatusCode::OK);
        for page in [again.text().await.unwrap(), get(&server, &path).await] {
            assert!(page.contains(shown), "{page}");
            assert!(!page.contains("<form") && !page.contains("name=\"action\""), "{page}");
            assert_eq!(page.contains("Receipt"), status == "completed", "{page}");
        }
        let read = server.get(&format!("/payments/{id}")).await;
        assert_eq!(read["status"], status);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_live_customer_pays_at_the_gateway_and_returns_to_a_paid_page() {
    let live = Live::start("gateway-timeout = 1").await;
    for (currency, amount, form) in [
        ("BDT", "৳1,250.00", "action=pay&paymentMethod=mfs&phoneNumber=%2B880+1770-618575"),
        ("USD", "$1,250.00", "action=pay&paymentMethod=card"),
    ] {
        let id = live.create(1250.0, currency).await;
        let path = format!("/checkout/{id}");
        let page = get(&live.server, &path).await;
        assert!(page.contains(amount) && page.contains("Rahim &#38; Sons") && page.contains("Two cups"), "{page}");
        assert!(!page.contains("Test payment"), "{page}");
        assert_eq!(page.contains("name=\"phoneNumber\""), currency == "BDT");
        let target = forwarded_to(&live.server, post(&live.server, &path, form).await).await;
        // The back button and another click lead to the same attempt.
        assert_eq!(forwarded_to(&live.server, post(&live.server, &path, form).await).await, target);
        let page = get(&live.server, &path).await;
        assert!(page.contains("We are checking your payment") && page.contains(&target), "{page}");
        assert!(
            page.contains("<noscript><meta http-equiv=\"refresh\""),
            "the page does not refresh without JavaScript"
        );
        let attempt = target.rsplit('/').next().unwrap();
        let back = match currency {
            "BDT" => live.bkash.program().approve(attempt, bkash::WALLET),
            _ => live.stripe.program().pay(attempt, stripe::CARD),
        };
        live.come_back(&back.unwrap()).await;
        let page = get(&live.server, &path).await;
        assert!(
            page.contains("Paid on") && page.contains(if currency == "BDT" { "Dhaka time" } else { "UTC" }),
            "{page}"
        );
        assert!(page.contains(&format!("https://shop.example/paid?payment_id={id}&#38;status=completed")), "{page}");
        let late = post(&live.server, &path, form).await;
        assert!(late.text().await.unwrap().contains("Paid"), "a paid payment is not paid again");
    }
    assert_eq!(live.bkash.program().books().iter().map(|entry| entry.taken).sum::<u32>(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_and_the_receipt_show_the_order_and_never_the_metadata() {
    let live = Live::start("gateway-timeout = 1").await;
    let body = json!({"amount": 1250, "success_url": "https://shop.example/paid", "cancel_url": "https://shop.example/cart",
        "merchantTransactionId": "A-17 <b>", "metadata": {"note": "margin 40%"},
        "lineItems": [{"name": "Tea <250 g>", "quantity": 2, "amount": 1200.5}, {"name": "Wrapping", "quantity": 1},
            {"name": "Card", "amount": 0}]});
    let payment: Value =
        live.request(Method::POST, "/payments").json(&body).send().await.unwrap().json().await.unwrap();
    let id = payment["id"].as_str().unwrap();
    let path = format!("/checkout/{id}");
    let has_order = |page: &str| {
        for part in [
            "Order A-17 &#60;b&#62;</p>",
            "<details open>",
            "Your order (3)",
            "<li><span>2 × Tea &#60;250 g&#62;</span> <span class=\"price\">৳1,200.50</span></li>",
            "<li><span>1 × Wrapping</span></li>",
            "<li><span>Card</span> <span class=\"price\">৳0.00</span></li>",
            &format!("<span class=\"id\">{id}</span>"),
        ] {
            assert!(page.contains(part), "{part} is not in {page}");
        }
        assert!(!page.contains("margin"), "{page}");
    };
    let page = get(&live.server, &path).await;
    has_order(&page);
    assert!(!page.contains("Receipt"), "{page}");
    let session = get(&live.server, &format!("/api/v1{path}")).await;
    assert!(!session.contains("margin"), "{session}");
    assert_eq!(serde_json::from_str::<Value>(&session).unwrap()["lineItems"], body["lineItems"]);

    let target = forwarded_to(&live.server, post(&live.server, &path, "action=pay").await).await;
    let attempt = target.rsplit('/').next().unwrap();
    live.come_back(&live.bkash.program().approve(attempt, bkash::WALLET).unwrap()).await;
    let page = get(&live.server, &path).await;
    has_order(&page);
    let rows = |page: &str| {
        let (_, list) = page.split_once("<dl>").unwrap_or_else(|| panic!("no receipt in {page}"));
        let list = list.split_once("</dl>").unwrap().0.split("</div>").map(str::to_owned).collect::<Vec<_>>();
        list.into_iter()
            .filter_map(|row| Some(row.split_once("<dt>")?.1.replace("</dt><dd>", ": ")))
            .collect::<Vec<_>>()
    };
    let found = rows(&page);
    assert_eq!(found.len(), 6, "{found:?}");
    for (row, begin) in found.iter().zip([
        "Paid to: Rahim &#38; Sons<",
        "Order: A-17 &#60;b&#62;<",
        "Amount: ৳1,250.00<",
        "Paid on: <time datetime=\"20",
        "Paid with: bKash<",
        "Status: Paid<",
    ]) {
        assert!(row.starts_with(begin), "{row}");
    }

    let refund = |key: &str, body: Value| {
        let request = live.request(Method::POST, &format!("/payments/{id}/refund"));
        request.header("idempotency-key", key.to_owned()).json(&body).send()
    };
    assert_eq!(refund("r-1", json!({"amount": 49.5})).await.unwrap().status(), 200);
    let found = rows(&get(&live.server, &path).await);
    assert!(found[5].starts_with("Status: Paid<") && found[6].starts_with("Refunded: ৳49.50<"), "{found:?}");
    assert_eq!(refund("r-2", json!({})).await.unwrap().status(), 200);
    let found = rows(&get(&live.server, &path).await);
    assert!(found[5].starts_with("Status: Refunded<") && found[6].starts_with("Refunded: ৳1,250.00<"), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_page_shows_the_time_left() {
    let server = Server::start_with(&["--session-ttl", "90"]);
    let (path, payment) = new_payment(&server, &payment_of(&json!(5))).await;
    let expires_at = server.get(&path).await["expiresAt"].clone();
    let page = get(&server, &path).await;
    assert!(page.contains(&format!("Pay by <time datetime={expires_at}>")), "{expires_at} {page}");
    let left: u32 = page.split_once("data-left=\"").unwrap().1.split_once('"').unwrap().0.parse().unwrap();
    assert!((60..=90).contains(&left), "{left}");
    assert!(!page.contains("Order "), "the id is no order number: {page}");
    assert_eq!(
        page.matches(payment["id"].as_str().unwrap()).count(),
        2,
        "in the form's address and once in print: {page}"
    );
    post(&server, &path, "action=fail").await;
    let page = get(&server, &path).await;
    assert!(!page.contains("data-left") && !page.contains("Pay by"), "{page}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_order_is_closed_until_it_is_paid() {
    let server = Server::start();
    let mut body = payment_of(&json!(5));
    body["lineItems"] = (1..=50).map(|nth| json!({"name": format!("Cup {nth}")})).collect();
    let (path, _) = new_payment(&server, &body).await;
    let page = get(&server, &path).await;
    assert!(page.contains("<details>") && page.contains("(50)") && page.contains("Cup 50"), "{page}");
    post(&server, &path, "action=success").await;
    assert!(get(&server, &path).await.contains("<details open>"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_shows_fixable_errors_in_the_customers_language() {
    let live = Live::start("gateway-timeout = 1").await;
    let id = live.create(20.0, "BDT").await;
    let path = format!("/checkout/{id}");
    let answer = post(&live.server, &format!("{path}?lang=bn"), "action=pay&phoneNumber=0171%3Cb%3E").await;
    assert_eq!(answer.status(), StatusCode::BAD_REQUEST);
    let page = answer.text().await.unwrap();
    assert!(page.contains("বাংলাদেশের মোবাইল নম্বর নয়") && page.contains("aria-invalid=\"true\""), "{page}");
    assert!(page.contains("value=\"0171&#60;b&#62;\""), "the page keeps the input: {page}");

    live.bkash.faults().next("create", Fault::ErrorBefore);
    let answer = post(&live.server, &path, "action=pay").await;
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    let page = answer.text().await.unwrap();
    assert!(
        page.contains("is not responding") && page.contains("role=\"alert\"") && page.contains("<button"),
        "{page}"
    );
    assert!(forwarded_to(&live.server, post(&live.server, &path, "action=pay").await).await.contains("/customer/"));

    live.stripe.program().refuse_next_session();
    let refused = live.create(5.0, "USD").await;
    let answer = post(&live.server, &format!("/checkout/{refused}"), "action=pay").await;
    assert_eq!(answer.status(), StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_uses_the_language_of_the_query_the_cookie_or_the_browser() {
    let server = Server::start();
    let (path, _) = new_payment(&server, &payment_of(&json!(5))).await;
    let ask =
        |path: String, name: &'static str, value: &'static str| server.keyless(Method::GET, &path).header(name, value);
    for (request, language) in [
        (server.keyless(Method::GET, &path), "en"),
        (ask(path.clone(), "accept-language", "bn-BD,bn;q=0.9,en;q=0.5"), "bn"),
        (ask(format!("{path}?lang=en"), "accept-language", "bn"), "en"),
        (ask(path.clone(), "cookie", "lang=bn"), "bn"),
    ] {
        let answer = request.send().await.unwrap();
        assert_eq!(answer.headers()["content-language"], language);
        assert_eq!(answer.headers()["vary"], "Accept-Language, Cookie");
        let page = answer.text().await.unwrap();
        assert!(page.contains(&format!("<html lang=\"{language}\">")), "{page}");
        assert_eq!(page.contains("পরীক্ষামূলক"), language == "bn");
    }
    let chosen = server.keyless(Method::GET, &format!("{path}?lang=bn")).send().await.unwrap();
    assert!(chosen.headers()["set-cookie"].to_str().unwrap().starts_with("lang=bn; Path=/checkout"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_escapes_hostile_text() {
    let live = Live::start("gateway-timeout = 1").await;
    let server = &live.server;
    let mut body = payment_of(&json!(1));
    let hostile = "\"><script>alert(1)</script>{{ amount }}\r\nSet-Cookie: a=b\u{202e}";
    body["description"] = json!(hostile);
    body["success_url"] = json!("https://shop.example/?a=%22%3E%3Cscript%3E");
    body["cancel_url"] = json!("https://shop.example/?\"><script>alert(1)</script>");
    body["customer"] = json!({"name": hostile.replace("\r\n", "").replace('\u{202e}', ""), "email": hostile});
    for (key, button) in
        [("sk_test_demo", "action=cancel"), (live.key.as_str(), "action=pay&phoneNumber=%22%3E%3Cscript%3E")]
    {
        let request = server.keyless(Method::POST, "/api/v1/payments").bearer_auth(key).json(&body);
        let payment: Value = request.send().await.unwrap().json().await.unwrap();
        let path = format!("/checkout/{}", payment["id"].as_str().unwrap());
        for answer in [
            server.keyless(Method::GET, &path).send().await.unwrap(),
            post(server, &path, button).await,
            server.keyless(Method::GET, &format!("{path}?go&lang=%22%3E%3Cscript%3E")).send().await.unwrap(),
        ] {
            if answer.status() != StatusCode::SEE_OTHER {
                let policy = answer.headers()["content-security-policy"].to_str().unwrap();
                assert!(policy.starts_with("default-src 'none'; style-src 'self'; script-src 'self';"), "{policy}");
                assert!(policy.contains("form-action 'self';"), "{policy}");
            }
            assert!(answer.headers().get("set-cookie").is_none());
            let page = answer.text().await.unwrap();
            assert!(!page.contains("<script>"), "{page}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_of_the_checkout_page_are_html_pages() {
    let server = Server::start_with(&["--keyless-rate-limit", "2"]);
    let answer = server.keyless(Method::GET, "/checkout/pay_unknown").send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::NOT_FOUND);
    assert!(answer.text().await.unwrap().contains("There is no payment at this address."));
    let answer = server.keyless(Method::DELETE, "/checkout/pay_unknown").send().await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.headers()["allow"].to_str().unwrap()), (405, "GET, HEAD, POST"));
    let answer = server.keyless(Method::GET, "/checkout/pay_unknown?lang=bn").send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(answer.headers().contains_key("retry-after") && answer.headers().contains_key("x-ratelimit-limit"));
    assert!(answer.text().await.unwrap().starts_with("<!doctype html>"));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_with_its_assets_is_smaller_than_15_kilobytes() {
    let live = Live::start("gateway-timeout = 1").await;
    let id = live.create(20.0, "BDT").await;
    let page = get(&live.server, &format!("/checkout/{id}?lang=bn")).await;
    let mut bytes = page.len();
    let addresses: Vec<&str> = page.split('"').filter(|part| part.starts_with("/assets/")).collect();
    assert_eq!(addresses.len(), 2);
    for address in addresses {
        let answer = live.server.keyless(Method::GET, address).send().await.unwrap();
        assert_eq!(answer.headers()["cache-control"], "public, max-age=31536000, immutable");
        bytes += answer.bytes().await.unwrap().len();
    }
    assert!(bytes < 15_000, "{bytes} bytes");
    let others: Vec<&str> = page
        .split('"')
        .filter(|part| part.starts_with("http:") || part.starts_with("https:"))
        .filter(|part| !part.contains("shop.example"))
        .collect();
    assert!(others.is_empty(), "{others:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bangla_page_has_bangla_digits_and_dates_and_dhaka_time_only_for_taka() {
    let server = Server::start();
    let page_of = async |currency: &str, language: &str, status: Option<&str>| {
        let mut body = payment_of(&json!(1250));
        (body["currency"], body["lineItems"]) = (json!(currency), json!([{"name": "Tea", "quantity": 12}]));
        let payment = server.create(&body).await;
        let path = format!("/checkout/{}", payment["id"].as_str().unwrap());
        if let Some(status) = status {
            let simulate =
                server.keyless(Method::POST, &format!("/api/v1{path}/simulate")).json(&json!({"status": status}));
            assert_eq!(simulate.send().await.unwrap().status(), 200);
        }
        server.keyless(Method::GET, &format!("{path}?lang={language}")).send().await.unwrap().text().await.unwrap()
    };
    for status in [None, Some("completed")] {
        let bangla = page_of("BDT", "bn", status).await;
        assert!(bangla.contains("৳১,২৫০.০০") && bangla.contains("১২ × ") && !bangla.contains("1,250"), "{bangla}");
        let shown = bangla.split("<time datetime=").nth(1).unwrap().split(['>', '<']).nth(1).unwrap();
        assert!(shown.ends_with("(ঢাকার সময়)") && !shown.contains(|char: char| char.is_ascii_alphanumeric()), "{shown}");
        let english = page_of("BDT", "en", status).await;
        let shown = english.split("<time datetime=").nth(1).unwrap().split(['>', '<']).nth(1).unwrap();
        assert!(shown.ends_with("(Dhaka time)") && shown.split(' ').count() == 6, "{shown}");
        let dollars = page_of("USD", "en", status).await;
        assert!(dollars.contains("(UTC)<") && !dollars.contains("Dhaka"), "{dollars}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_says_that_the_shop_was_notified_only_if_an_endpoint_was() {
    let server = Server::start();
    let client = server.client();
    let paid_page = async || {
        let payment = server.create(&payment_of(&json!(5))).await;
        let path = format!("/checkout/{}", payment["id"].as_str().unwrap());
        post(&server, &path, "action=success").await;
        server.keyless(Method::GET, &path).send().await.unwrap().text().await.unwrap()
    };
    let page = paid_page().await;
    assert!(page.contains("Thank you.") && !page.contains("notified"), "{page}");
    let receiver = Receiver::ok().await;
    let other = CreateWebhook::new(receiver.url(), Subscription::Only(vec![EventKind::PaymentCreated]));
    client.webhooks().create(other).await.unwrap();
    assert!(!paid_page().await.contains("notified"));
    receiver.subscribe(&client).await;
    assert!(paid_page().await.contains("Thank you. We have notified the shop."));
}
