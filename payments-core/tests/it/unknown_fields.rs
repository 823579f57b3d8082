//! Fields of later versions.

use payments_core::{
    Account, Advanced, ApiKey, Balances, Customer, Event, EventPage, LoggedRequest, Page, PayResult, PaymentPage,
    RawJson, Recovered, Removed, RequestPage, Simulation, Timeline, Transaction, TransactionPage, UnknownFields,
    Verdict,
};
use serde::{Serialize, de::DeserializeOwned};

const LATER: &str = r#""later":{"rate":1.10,"big":123456789012345678901234567890}"#;

/// Parses an object with one more field, and serializes it with that field.
fn parsed<T: DeserializeOwned + Serialize>(json: &str) -> T {
    let more = match json {
        "{}" => format!("{{{LATER}}}"),
        _ => format!("{},{LATER}}}", json.strip_suffix('}').unwrap()),
    };
    let value: T = serde_json::from_str(&more).unwrap_or_else(|error| panic!("{more}: {error}"));
    assert_eq!(serde_json::to_string(&value).unwrap(), more);
    value
}

fn has_it(unknown: &UnknownFields) {
    let (name, value) = unknown.iter().next().unwrap();
    assert_eq!(format!("\"{name}\":{}", value.as_str()), LATER);
}

#[test]
fn each_response_keeps_the_fields_of_later_versions() {
    const TIME: &str = r#""2026-03-01T00:00:00.000Z""#;
    let balances = r#"{"bdt_balance":712.5,"usd_balance":0}"#;
    has_it(&parsed::<Balances>(balances).unknown);
    let workspace =
        format!(r#"{{"id":"ws_1","name":"Rahim","slug":"rahim","website":null,"status":"active",{LATER}}}"#);
    let balance = format!(r#"{{"bdt":1,"usd":0,"bdt_balance":1,"usd_balance":0,{LATER}}}"#);
    let volume = format!(r#"{{"bdt":1,"usd":0,"total_payments":1,{LATER}}}"#);
    let account = parsed::<Account>(&format!(r#"{{"workspace":{workspace},"balance":{balance},"volume":{volume}}}"#));
    for unknown in [&account.unknown, &account.workspace.unknown, &account.balance.unknown, &account.volume.unknown] {
        has_it(unknown);
    }
    let transaction = format!(
        r#"{{"id":"txn_1","createdAt":{TIME},"paymentId":"pay_1","kind":"fee","amount":-37.5,"currency":"BDT","balance":712.5}}"#
    );
    has_it(&parsed::<Transaction>(&transaction).unknown);
    has_it(&parsed::<TransactionPage>(r#"{"items":[],"hasMore":false,"next":null}"#).unknown);
    has_it(&parsed::<EventPage<()>>(r#"{"items":[null],"hasMore":false,"next":"evt_1"}"#).unknown);
    has_it(&parsed::<RequestPage>(r#"{"items":[],"hasMore":false,"next":null}"#).unknown);
    has_it(&parsed::<Page<Balances>>(&format!(r#"{{"items":[{balances}],"total":1,"page":1,"limit":20}}"#)).unknown);
    has_it(&parsed::<PaymentPage<()>>(r#"{"items":[],"total":0,"page":1,"limit":20}"#).unknown);
    let part = r#"{"items":[],"total":null,"page":1,"limit":20,"hasMore":false,"next":null}"#;
    has_it(&parsed::<PaymentPage<()>>(part).unknown);
    has_it(&parsed::<Advanced>(r#"{"sessions":1,"expired":0,"retries":0}"#).unknown);
    has_it(&parsed::<Recovered>(r#"{"resent":1,"hasMore":false,"next":null}"#).unknown);
    has_it(&parsed::<Removed>(r#"{"success":true,"message":"gone"}"#).unknown);
    has_it(&parsed::<Verdict>(r#"{"valid":true,"timestamp":1}"#).unknown);
    has_it(&parsed::<Customer>(r#"{"name":"Asha","email":null,"phone":null}"#).unknown);
    has_it(&parsed::<Simulation>(r#"{"status":"paid","redirectUrl":"https://shop.example/","success":true}"#).unknown);
    let logged = format!(
        r#"{{"id":"req_1","method":"GET","path":"/","status":200,"error":null,"keyLast4":"demo","durationMs":1,"createdAt":{TIME}}}"#
    );
    has_it(&parsed::<LoggedRequest>(&logged).unknown);
    let key = format!(
        r#"{{"id":"key_1","name":null,"last4":"cafe","scopes":["payments:read"],"appId":null,"isCurrent":true,"createdAt":{TIME},"lastUsedAt":null,"expiresAt":null,"revokedAt":null}}"#
    );
    has_it(&parsed::<ApiKey>(&key).unknown);
    let delivery = format!(
        r#"{{"id":"del_1","webhookId":"wh_1","status":"success","attempts":1,"responseStatus":200,"error":null,"createdAt":{TIME},"deliveredAt":{TIME},{LATER}}}"#
    );
    let event = format!(r#"{{"id":"evt_1","event":"payment.created","deliveries":[{delivery}],{LATER}}}"#);
    let entry = format!(
        r#"{{"createdAt":{TIME},"kind":"event","description":"An event","times":1,"lastAt":null,"event":{event},{LATER}}}"#
    );
    let timeline =
        parsed::<Timeline>(&format!(r#"{{"paymentId":"pay_1","items":[{entry}],"hasMoreDeliveries":false}}"#));
    let event = timeline.items[0].event.as_ref().unwrap();
    for unknown in [&timeline.unknown, &timeline.items[0].unknown, &event.unknown, &event.deliveries[0].unknown] {
        has_it(unknown);
    }
}

#[test]
fn an_event_and_the_result_of_pay_keep_the_fields_of_later_versions() {
    let event =
        format!(r#"{{"id":"evt_1","event":"test.ping","created_at":"2026-03-01T00:00:00Z","data":{{}},{LATER}}}"#);
    has_it(Event::from_unverified_for_tests(event.as_bytes()).unwrap().unknown());
    let live = format!(r#"{{"redirectUrl":"https://bank.example/",{LATER}}}"#);
    let PayResult::Redirect(to) = serde_json::from_str(&live).unwrap() else { panic!("{live}") };
    assert_eq!(to.redirect_url, "https://bank.example/");
    has_it(&to.unknown);
    let test = format!(r#"{{"redirectUrl":"https://shop.example/","status":"paid","success":true,{LATER}}}"#);
    let PayResult::Simulated(ended) = serde_json::from_str(&test).unwrap() else { panic!("{test}") };
    has_it(&ended.unknown);
}

#[test]
fn a_field_is_replaced_by_another_of_its_name_only() {
    let value = |text: &str| RawJson::new(text).unwrap();
    let mut fields = UnknownFields::new();
    assert!(fields.is_empty());
    for (name, text) in [("a", "1"), ("b", "2"), ("a", "3")] {
        fields.insert(name, value(text));
    }
    assert!(!fields.is_empty());
    let held: Vec<_> = fields.iter().map(|(name, value)| (name, value.as_str())).collect();
    assert_eq!(held, [("a", "3"), ("b", "2")]);
    assert_eq!((fields.get("b"), fields.get("c")), (Some(&value("2")), None));
}
