//! Payouts.

use super::*;

/// The categories and net amounts of a payout's balance transactions, newest first.
fn rows(merchant: &Merchant, payout: &str) -> Vec<Value> {
    let list = merchant.get(&format!("balance_transactions?payout={payout}&limit=100&expand[]=data.source"));
    let rows = list["data"].as_array().unwrap_or_else(|| panic!("{list}"));
    assert_eq!(rows[0]["source"]["id"], payout);
    rows.iter().map(|row| json!([row["reporting_category"], row["net"]])).collect()
}

#[test]
fn a_payout_takes_all_available_money_that_is_not_paid_out() {
    let merchant = Merchant::new();
    assert_eq!(merchant.stripe.pay_out(), None, "there is no money");
    merchant.paid("pay_1", 1_000);
    merchant.stripe.refund_part_by_hand("pay_1", 100).unwrap();
    assert!(merchant.control("pay_out", &json!({}))["error"].is_string(), "the money is pending");
    merchant.control("make_available", &json!({}));
    merchant.paid("pay_2", 5_000);
    merchant.events();
    let first = merchant.control("pay_out", &json!({}))["id"].as_str().unwrap().to_owned();
    assert!(first.starts_with("po_"));
    assert_eq!(merchant.stripe.pay_out(), None, "the rest is pending");
    assert_eq!(rows(&merchant, &first), [json!(["payout", -841]), json!(["refund", -100]), json!(["charge", 941])]);

    let events = merchant.events();
    let shown: Vec<Value> = events
        .iter()
        .map(|(kind, payout)| json!([kind, payout["status"], payout["reconciliation_status"], payout["amount"]]))
        .collect();
    let expected = [
        json!(["payout.created", "pending", "in_progress", 841]),
        json!(["payout.paid", "paid", "in_progress", 841]),
        json!(["payout.reconciliation_completed", "paid", "completed", 841]),
    ];
    assert_eq!(shown, expected);
    let payout = merchant.get(&format!("payouts/{first}?expand[]=balance_transaction"));
    assert_eq!((&payout["automatic"], &payout["currency"]), (&json!(true), &json!("usd")));
    assert_eq!(payout["balance_transaction"]["net"], -841);

    // Two days later the other charge is available.
    let later = payout["created"].as_u64().unwrap() + 3 * 24 * 3600;
    let second = crate::at(later, || merchant.stripe.pay_out()).unwrap();
    assert_eq!(rows(&merchant, &second), [json!(["payout", -4_825]), json!(["charge", 4_825])]);
    let ids = |query: &str| {
        let list = merchant.get(&format!("payouts?{query}"));
        list["data"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ids(""), [&*second, &first]);
    assert_eq!(ids(&format!("created[gte]={later}")), [&*second]);
    assert_eq!(ids("status=failed"), Vec::<String>::new());
    assert_eq!(error(&merchant.get("balance_transactions?payout=po_x")).0, "resource_missing");
    assert_eq!(error(&merchant.get("refunds?payout=po_x")), ("parameter_unknown", "payout"));
}

#[test]
fn money_that_is_missing_is_taken_from_the_next_payout() {
    let merchant = Merchant::new();
    merchant.paid("pay_1", 1_000);
    merchant.stripe.open_dispute("pay_1", 0, "fraudulent", false).unwrap();
    merchant.stripe.make_available();
    assert_eq!(merchant.stripe.pay_out(), None, "the balance is negative");
    merchant.paid("pay_2", 5_000);
    merchant.stripe.make_available();
    let payout = merchant.stripe.pay_out().unwrap();
    assert_eq!(merchant.get(&format!("payouts/{payout}"))["amount"], 941 - 2_500 + 4_825);
    assert_eq!(rows(&merchant, &payout).len(), 4);
}

#[test]
fn a_payout_has_one_currency() {
    let merchant = Merchant::new();
    merchant.paid("pay_1", 1_000);
    let euro = merchant.post(
        "checkout/sessions",
        "mode=payment&success_url=https://shop.example&line_items[0][quantity]=1&line_items[0][price_data][currency]=eur&\
         line_items[0][price_data][unit_amount]=2000&line_items[0][price_data][product_data][name]=Cup",
    );
    merchant.stripe.pay(euro["id"].as_str().unwrap(), CARD).unwrap();
    merchant.stripe.make_available();
    for (currency, amount) in [("usd", 941), ("eur", 1_912)] {
        let payout = merchant.get(&format!("payouts/{}", merchant.stripe.pay_out().unwrap()));
        assert_eq!((&payout["currency"], &payout["amount"]), (&json!(currency), &json!(amount)));
    }
}
