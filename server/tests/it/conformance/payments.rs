//! Payments: fields, transitions and checkout.

use gateway_fakes::bkash;
use reqwest::Method;
use serde_json::{Value, json};

use super::{
    report::Report,
    world::{World, has},
};
use crate::server::{SANDBOX_KEY, payment_of};

pub(super) async fn payments(world: &World, report: &mut Report) {
    let section = "Payment";
    let body = json!({"amount": 750, "success_url": "https://shop.example/paid", "cancel_url": "https://shop.example/cart",
        "description": "Tea", "metadata": {"order_reference": "o-1"}, "customer": {"name": "Karim", "email": "k@example.com"}});
    let (status, payment) = world.ask(SANDBOX_KEY, Method::POST, "/payments", Some(&body)).await;
    let id = payment["id"].as_str().unwrap_or_default().to_owned();
    let fields = ["checkoutUrl", "platformFeeAmount", "feePercentage", "netAmount"];
    report.row("Endpoints", "POST /payments", status == 201 && has(&payment, &fields), &payment);
    report.row(section, "id", id.starts_with("pay_"), &payment["id"]);
    report.row(section, "amount", payment["amount"] == 750, &payment["amount"]);
    report.row(section, "currency", payment["currency"] == "BDT", &payment["currency"]);
    let page = payment["checkoutUrl"].as_str().unwrap_or_default();
    let shown = reqwest::Client::builder().no_proxy().build().unwrap().get(page).send().await.unwrap().status();
    report.row(section, "checkoutUrl", shown == 200, &page);
    report.row(section, "merchantTransactionId", payment["merchantTransactionId"].is_string(), &payment);
    report.row(
        section,
        "customer",
        payment["customer"]["name"] == "Karim" && payment["customer"]["phone"].is_null(),
        &payment,
    );
    report.row(section, "metadata", payment["metadata"] == body["metadata"], &payment["metadata"]);
    report.row(section, "netAmount", payment["netAmount"] == 712.5, &payment["netAmount"]);
    report.row(section, "platformFeeAmount", payment["platformFeeAmount"] == 37.5, &payment["platformFeeAmount"]);
    report.row(section, "feePercentage", payment["feePercentage"] == 5, &payment["feePercentage"]);
    report.row(section, "status", payment["status"] == "pending", &payment["status"]);
    report.row(section, "rawStatus", payment["rawStatus"] == "created", &payment["rawStatus"]);
    report.row(section, "isSimulated", payment["isSimulated"] == true, &payment["isSimulated"]);
    report.row(section, "environment", payment["environment"] == "test", &payment["environment"]);
    let same = |new: &str, old: &str| payment[new] == payment[old] && !payment[old].is_null();
    let aliases = same("checkoutUrl", "checkout_url")
        && same("platformFeeAmount", "platform_fee")
        && same("netAmount", "net_amount");
    report.row(section, "checkout_url, platform_fee, net_amount", aliases, &payment);
    report.row("Limits", "aliases are kept", aliases, &payment);
    report.row(
        "Transitions",
        "create payment",
        payment["rawStatus"] == "created" && payment["status"] == "pending",
        &payment,
    );

    let (status, read) = world.ask(SANDBOX_KEY, Method::GET, &format!("/payments/{id}"), None).await;
    report.row("Endpoints", "GET /payments/:id", status == 200 && read == payment, &read);
    let (status, list) = world.ask(SANDBOX_KEY, Method::GET, "/payments?page=1&limit=1&status=pending", None).await;
    report.row("Endpoints", "GET /payments", status == 200 && list["items"][0] == payment, &list);
    let wrapper = has(&list, &["items", "total", "page", "limit"]) && list["limit"] == 1;
    report.row("Paginated list wrapper", "List routes return a paginated wrapper", wrapper, &list);

    let section = "Create-payment parameters";
    let refuses = async |key: &str, field: &str, values: &[Value]| {
        for value in values {
            let mut wrong = body.clone();
            wrong[field] = value.clone();
            let (status, answer) = world.ask(key, Method::POST, "/payments", Some(&wrong)).await;
            let named = answer["message"][0].as_str().is_some_and(|sentence| sentence.starts_with(field));
            if status != 400 || !named {
                return Err((value.clone(), status, answer));
            }
        }
        Ok(())
    };
    for (field, values) in [
        ("amount", vec![json!(0), json!(-1), json!("5"), json!(1.005), Value::Null]),
        ("success_url", vec![Value::Null, json!("/paid"), json!("javascript:alert(1)")]),
        ("cancel_url", vec![Value::Null, json!("shop.example")]),
        ("currency", vec![json!("EUR"), json!(5)]),
        ("description", vec![json!(5)]),
        ("metadata", vec![json!([]), json!("x")]),
        ("customer", vec![json!("Karim"), json!({"name": 5})]),
    ] {
        let outcome = refuses(SANDBOX_KEY, field, &values).await;
        report.row(section, field, outcome.is_ok(), &outcome);
    }
    let insecure = refuses(&world.live.key, "success_url", &[json!("http://shop.example/paid")]).await;
    let mut local = body.clone();
    local["success_url"] = json!("http://localhost:3000/paid");
    let (status, answer) = world.ask(&world.live.key, Method::POST, "/payments", Some(&local)).await;
    report.row(
        section,
        "In live mode, redirect URLs must use HTTPS",
        insecure.is_ok() && status == 201,
        &(insecure, answer),
    );
}

pub(super) async fn transitions(world: &World, report: &mut Report) {
    let live = &world.live;
    let bdt = live.paid(100.0, "BDT").await;
    let paid = live.payment(&bdt).await;
    let completed = world.event("payment.completed", &bdt).await;
    let holds = paid["status"] == "completed" && paid["rawStatus"] == "paid" && completed["data"] == paid;
    report.row("Transitions", "confirmed payment approval", holds, &(&paid, &completed));
    let (_, list) = world.ask(&live.key, Method::GET, "/payments?status=completed", None).await;
    report.row("Mapping used by the status filter", "completed", list["items"][0]["id"] == bdt.as_str(), &list);
    let open = live.create(5.0, "BDT").await;
    live.pay(&open).await;
    let (_, list) = world.ask(&live.key, Method::GET, "/payments?status=pending", None).await;
    let raw: Vec<&Value> = list["items"].as_array().unwrap().iter().map(|payment| &payment["rawStatus"]).collect();
    let has_both = raw.contains(&&json!("processing")) && raw.contains(&&json!("created"));
    report.row("Mapping used by the status filter", "pending", has_both, &raw);
    let (status, refused) = world.ask(&live.key, Method::POST, &format!("/payments/{open}/refund"), None).await;
    report.row("Rules", "Only paid can be refunded", status == 409, &refused);

    let refund = json!({"reason": "damaged"});
    let (status, refunded) =
        world.ask(&live.key, Method::POST, &format!("/payments/{bdt}/refund"), Some(&refund)).await;
    report.row("Endpoints", "POST /payments/:id/refund", status == 200 && refunded["refund"].is_object(), &refunded);
    report.row("Payment", "refund", paid.get("refund").is_none() && refunded.get("refund").is_some(), &refunded);
    report.row("Refund", "reason", refunded["refund"]["reason"] == "damaged", &refunded["refund"]);
    let event = world.event("payment.refunded", &bdt).await;
    let holds = refunded["status"] == "refunded" && event["data"]["refund_reason"] == "damaged";
    report.row("Transitions", "refund", holds, &event);
    report.row("Event kinds", "payment.refunded", holds, &event);
    let mut data = event["data"].clone();
    data.as_object_mut().unwrap().remove("refund_reason");
    report.row("Data shapes", "plus refund_reason", data == refunded, &event);
    let usd = live.paid(10.0, "USD").await;
    let (_, card) = world.ask(&live.key, Method::POST, &format!("/payments/{usd}/refund"), None).await;
    let manual = (&refunded["refund"]["requiresManualSettlement"], &card["refund"]["requiresManualSettlement"]);
    report.row("Refund", "requiresManualSettlement", manual == (&json!(true), &json!(false)), &manual);

    let test = world.server().create(&payment_of(&json!(5))).await;
    let path = format!("/checkout/{}/simulate", test["id"].as_str().unwrap());
    let (_, simulated) = world.ask(SANDBOX_KEY, Method::POST, &path, Some(&json!({"status": "completed"}))).await;
    let (forbidden, _) = world.ask(SANDBOX_KEY, Method::POST, &format!("/checkout/{open}/simulate"), None).await;
    let holds = simulated["status"] == "paid" && forbidden == 403;
    report.row("Transitions", "simulate on a test checkout session", holds, &(simulated, forbidden));
    let path = format!("/payments/{}/refund", test["id"].as_str().unwrap());
    let (status, refused) = world.ask(SANDBOX_KEY, Method::POST, &path, None).await;
    report.row("Rules", "Test payments cannot be refunded", status == 409, &refused);
    report.row("Rules", "Reconciled with retrieve", live.payment(&open).await["status"] == "pending", &open);
}

pub(super) async fn checkout(world: &World, report: &mut Report) {
    let live = &world.live;
    let body = json!({"amount": 42, "currency": "USD", "description": "Demo"});
    let (status, demo) = world.ask("", Method::POST, "/checkout/demo-session", Some(&body)).await;
    let id = demo["id"].as_str().unwrap_or_default().to_owned();
    report.row("Endpoints", "POST /checkout/demo-session", status == 201 && demo["amount"] == 42, &demo);
    let event = world.event("payment.created", &id).await;
    let wrapped = event["data"]["event"] == "payment.created" && event["data"]["payment"]["id"] == id.as_str();
    report.row("Data shapes", "wrapped", wrapped && event["data"].as_object().unwrap().len() == 2, &event);
    let (status, session) = world.ask("", Method::GET, &format!("/checkout/{id}"), None).await;
    report.row("Endpoints", "GET /checkout/:id", status == 200 && session["id"] == id.as_str(), &session);
    let (status, result) = world.ask("", Method::POST, &format!("/checkout/{id}/pay"), Some(&json!({}))).await;
    let shape = has(&result, &["status", "redirectUrl", "success"]);
    report.row("Endpoints", "Result of pay: test", status == 200 && shape, &result);
    let mut ended = Vec::new();
    for (action, status) in [("success", "paid"), ("fail", "failed"), ("cancel", "cancelled")] {
        let payment = world.server().create(&payment_of(&json!(5))).await;
        let path = format!("/checkout/{}/simulate", payment["id"].as_str().unwrap());
        let (_, result) = world.ask("", Method::POST, &path, Some(&json!({"action": action}))).await;
        ended.push(result["status"] == status);
    }
    report.row("Endpoints", "POST /checkout/:id/simulate", ended.iter().all(|holds| *holds), &ended);
    let real = live.create(5.0, "BDT").await;
    let pay = json!({"paymentMethod": "mfs", "phoneNumber": bkash::WALLET, "redirectUrl": "https://shop.example"});
    let (status, result) = world.ask("", Method::POST, &format!("/checkout/{real}/pay"), Some(&pay)).await;
    report.row("Endpoints", "POST /checkout/:id/pay", status == 200, &result);
    report.row(
        "Endpoints",
        "Result of pay: live",
        has(&result, &["redirectUrl"]) && result.get("success").is_none(),
        &result,
    );
}
