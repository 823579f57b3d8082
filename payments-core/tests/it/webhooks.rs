//! Webhook endpoints: parameters, subscriptions and secrets.

use payments_core::{
    CreateWebhook, EventKind, Retries, RotateSecret, SigningSecret, Subscription, TestWebhook, UpdateWebhook,
};

#[test]
fn an_update_sends_each_field_that_was_set_and_no_other() {
    let all = UpdateWebhook::default()
        .is_active(true)
        .url("https://a.example/hook")
        .events(Subscription::Only(vec![EventKind::PaymentCreated]))
        .description("till 2")
        .retries(Retries::Standard);
    let sent = serde_json::to_string(&all).unwrap();
    assert_eq!(
        sent,
        r#"{"url":"https://a.example/hook","events":["payment.created"],"isActive":true,"description":"till 2","retries":"standard"}"#
    );
    assert_eq!(UpdateWebhook::from_json(sent.as_bytes()).unwrap(), all);
    let update = UpdateWebhook::default;
    for (one, json) in [
        (update().url("https://a.example/"), r#"{"url":"https://a.example/"}"#),
        (update().events(Subscription::All), r#"{"events":["*"]}"#),
        (update().is_active(false), r#"{"isActive":false}"#),
        (update().description(""), r#"{"description":""}"#),
        (update().retries(Retries::None), r#"{"retries":"none"}"#),
    ] {
        assert_eq!(serde_json::to_string(&one).unwrap(), json);
        assert_eq!(UpdateWebhook::from_json(json.as_bytes()).unwrap(), one, "{json}");
    }
}

#[test]
fn a_rotation_overlaps_for_a_day_or_as_long_as_it_says() {
    assert_eq!(RotateSecret::default().overlap_seconds, 86_400);
    let none = serde_json::to_string(&RotateSecret::default().overlap_seconds(0)).unwrap();
    assert_eq!(none, r#"{"overlapSeconds":0}"#);
}

#[test]
fn an_unknown_kind_of_event_is_refused_with_the_known_ones() {
    let known = "payment.created, payment.completed, payment.partially_refunded, payment.refunded, \
                 payment.refund_failed, payment.disputed, payment.dispute_closed, payout.created, \
                 payout.approved, payout.paid, payout.failed, payout.cancelled, payout.returned, test.ping";
    let test = TestWebhook::from_json(br#"{"event":"payment.lost"}"#).unwrap_err();
    assert_eq!(test.to_string(), format!("event must be one of {known}"));
    let create = br#"{"url":"https://a.example/","events":["payment.lost"]}"#;
    let create = CreateWebhook::from_json(create).unwrap_err();
    assert_eq!(create.to_string(), format!("events must be \"*\" or names among {known}"));
}

#[test]
fn an_endpoint_wants_the_events_it_names_or_all() {
    let later = EventKind::from("payment.disputed");
    let refunds = Subscription::Only(vec![EventKind::PaymentRefunded]);
    for (kind, wanted) in [(&EventKind::PaymentRefunded, true), (&EventKind::PaymentCreated, false), (&later, false)] {
        assert_eq!(refunds.wants(kind), wanted, "{kind}");
        assert!(Subscription::All.wants(kind), "{kind}");
    }
}

#[test]
fn an_invalid_url_is_refused_for_its_form_or_its_scheme() {
    for (url, fault) in [
        ("ftp://a.example/", "url must begin with http:// or https://"),
        ("/hook", "url must be an absolute URL"),
        ("https://", "url must be an absolute URL"),
        ("https://a.example/a b", "url must not contain white space; write a space as %20"),
        ("https://a.example/\\u0007", "url must be an absolute URL"),
        ("https://a.example/\\u2003", "url must not begin or end with white space"),
    ] {
        let body = format!(r#"{{"url":"{url}","events":"*"}}"#);
        assert_eq!(CreateWebhook::from_json(body.as_bytes()).unwrap_err().to_string(), fault, "{url}");
    }
}

#[test]
fn a_log_does_not_show_a_signing_secret() {
    let secret = SigningSecret::new([0xab; SigningSecret::RANDOM_BYTES]);
    assert_eq!(secret.reveal(), format!("whsec_{}", "ab".repeat(32)));
    assert_eq!(format!("{secret:?}"), "SigningSecret(..)");
}
