//! Lists, filters, pages and expanded fields.

use super::*;

fn ids(list: &Value) -> Vec<&str> {
    let data = list["data"].as_array().unwrap_or_else(|| panic!("{list}"));
    data.iter().map(|object| object["id"].as_str().unwrap()).collect()
}

/// Five refunds of one payment, a second apart, oldest first.
fn five_refunds(merchant: &Merchant) -> (Payment, Vec<String>) {
    let payment = merchant.paid("pay_1", 1_000);
    let refund = |time: u64| crate::at(1_000 + time, || merchant.stripe.refund_part_by_hand("pay_1", 10).unwrap());
    (payment, (0..5).map(refund).collect())
}

#[test]
fn a_list_is_newest_first_and_has_pages_in_both_directions() {
    let merchant = Merchant::new();
    let (_, made) = five_refunds(&merchant);
    let [a, b, c, d, e] = [0, 1, 2, 3, 4].map(|index| made[index].as_str());
    let one = merchant.paid("pay_2", 500);
    let other = merchant.stripe.refund_part_by_hand("pay_2", 500).unwrap();
    for (query, expected, has_more) in [
        (String::new(), vec![&*other, e, d, c, b, a], false),
        ("limit=2".into(), vec![&*other, e], true),
        (format!("limit=2&starting_after={e}"), vec![d, c], true),
        (format!("limit=2&starting_after={c}"), vec![b, a], false),
        (format!("starting_after={a}"), vec![], false),
        (format!("limit=2&ending_before={b}"), vec![d, c], true),
        (format!("limit=2&ending_before={e}"), vec![&*other], false),
        ("created[gte]=1003&created[lte]=1004".into(), vec![e, d], false),
        ("created[gt]=1001&created[lt]=1003".into(), vec![c], false),
        (format!("payment_intent={}", one.intent), vec![&*other], false),
        (format!("charge={}", one.charge), vec![&*other], false),
        ("payment_intent=pi_x".into(), vec![], false),
    ] {
        let list = merchant.get(&format!("refunds?{query}"));
        assert_eq!((ids(&list), &list["has_more"]), (expected, &json!(has_more)), "{query}");
        assert_eq!((&list["object"], &list["url"]), (&json!("list"), &json!("/v1/refunds")));
    }
}

#[test]
fn a_list_refuses_wrong_parameters() {
    let merchant = Merchant::new();
    let (_, made) = five_refunds(&merchant);
    for (query, expected) in [
        ("limit=0", ("parameter_invalid_integer", "limit")),
        ("limit=101", ("parameter_invalid_integer", "limit")),
        ("limit=many", ("parameter_invalid_integer", "limit")),
        ("created[gte]=today", ("parameter_invalid_integer", "created[gte]")),
        ("created[since]=1", ("parameter_unknown", "created[since]")),
        ("metadata[a]=1", ("parameter_unknown", "metadata[a]")),
        ("status=failed", ("parameter_unknown", "status")),
        ("starting_after=re_x", ("resource_missing", "")),
        ("ending_before=re_x", ("resource_missing", "")),
        (
            &format!("starting_after={0}&ending_before={0}", made[0]),
            ("You may only specify one of these parameters: starting_after, ending_before.", "ending_before"),
        ),
    ] {
        assert_eq!(error(&merchant.get(&format!("refunds?{query}"))), expected, "{query}");
    }
    for path in ["payment_intents", "charges", "refunds/", "refundsx", "refunds/re_x", "colours"] {
        assert_eq!(error(&merchant.get(path)).0, "resource_missing", "{path}");
    }
}

#[test]
fn the_sessions_of_a_payment_intent_are_listed_unless_they_are_open() {
    let merchant = Merchant::new();
    let payment = merchant.paid("pay_1", 1_000);
    let open = merchant.session("pay_2", 1_000, "");
    assert_eq!(ids(&merchant.get("checkout/sessions")), [open.as_str(), &payment.session]);
    assert_eq!(ids(&merchant.get("checkout/sessions?status=open")), [&open]);
    let of_intent = format!("checkout/sessions?payment_intent={}", payment.intent);
    assert_eq!(ids(&merchant.get(&of_intent)), [&payment.session]);
}

#[test]
fn a_field_is_expanded_if_it_can_be() {
    let merchant = Merchant::new();
    let (payment, made) = five_refunds(&merchant);
    let intent = merchant.get(&format!("payment_intents/{}?expand[]=latest_charge", payment.intent));
    assert_eq!(intent["latest_charge"]["id"], payment.charge.as_str());
    assert!(intent["latest_charge"]["balance_transaction"].is_string());
    let list = merchant.get("refunds?expand[]=data.payment_intent&expand[1]=data.balance_transaction.source&limit=3");
    for refund in list["data"].as_array().unwrap() {
        assert_eq!(refund["payment_intent"]["metadata"]["payment_id"], "pay_1");
        assert_eq!(refund["balance_transaction"]["source"]["id"], refund["id"]);
    }
    let session = &payment.session;
    let deep =
        merchant.get(&format!("checkout/sessions/{session}?expand[]=payment_intent.latest_charge.balance_transaction"));
    assert_eq!(deep["payment_intent"]["latest_charge"]["balance_transaction"]["type"], "charge");
    let open = merchant.session("pay_2", 1_000, "");
    let open = merchant.get(&format!("checkout/sessions/{open}?expand[]=payment_intent.latest_charge"));
    assert_eq!(open["payment_intent"], Value::Null);
    for wrong in [
        format!("refunds/{}?expand[]=amount", made[0]),
        format!("refunds/{}?expand[]=data.charge", made[0]),
        format!("refunds/{}?expand[]=", made[0]),
        "refunds?expand[]=payment_intent".into(),
        "refunds?expand[]=data".into(),
        "refunds?expand[]=data.payment_intent.colour".into(),
        "refunds?expand[]=data.payment_intent.latest_charge.balance_transaction.source".into(),
        format!("charges/{}?expand[]=refunds", payment.charge),
    ] {
        let message = merchant.get(&wrong)["error"]["message"].as_str().unwrap().to_owned();
        assert!(message.contains("expand"), "{wrong}: {message}");
    }
    let refused = merchant.get(&format!("refunds/{}?limit=1", made[0]));
    assert_eq!(error(&refused), ("parameter_unknown", "limit"));
}
