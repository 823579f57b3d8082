//! Fields and values of later API versions round-trip.

use payments_client::{Payment, Status};
use payments_core::aliased::Brief;
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn anything() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<String>().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::btree_map(any::<String>(), inner, 0..4).prop_map(|map| Value::from(Map::from_iter(map))),
        ]
    })
}

/// A payment with every alias.
fn payment() -> Value {
    json!({
        "id": "pay_1", "developerId": "dev_1", "appId": null, "merchantTransactionId": "pay_1", "amount": 750,
        "currency": "BDT", "status": "pending", "rawStatus": "created", "environment": "test", "isSimulated": true,
        "description": null, "checkoutUrl": "http://a.example/c", "checkout_url": "http://a.example/c",
        "platformFeeAmount": 37.5, "platform_fee": 37.5, "feePercentage": 5, "platformFeeRate": 5,
        "platform_fee_rate": 5, "netAmount": 712.5, "net_amount": 712.5, "customerName": null, "customerEmail": null,
        "customerPhone": null, "customer": {"name": null, "email": null, "phone": null}, "paymentMethod": null,
        "metadata": {}, "success_url": "https://a.example", "cancel_url": "https://a.example", "paid_at": null,
        "created_at": "2026-11-20T23:33:00.472Z", "createdAt": "2026-11-20T23:33:00.472Z",
        "updatedAt": "2026-11-20T23:33:00.472Z"
    })
}

proptest! {
    #[test]
    fn unknown_fields_and_values_round_trip(
        fields in prop::collection::btree_map("new_[a-z]{1,8}", anything(), 0..5),
        status in "[a-z]{1,12}",
        method in "[a-z]{1,12}",
    ) {
        let mut sent = payment();
        sent["status"] = status.clone().into();
        sent["paymentMethod"] = method.into();
        for (name, value) in fields {
            sent[name] = value;
        }
        let read: Payment = serde_json::from_str(&sent.to_string()).unwrap();
        prop_assert_eq!(read.status.as_str(), &*status);
        prop_assert_eq!(serde_json::to_value(&read).unwrap(), sent);
        let mut brief = Vec::new();
        read.serialize_brief(&mut serde_json::Serializer::new(&mut brief)).unwrap();
        prop_assert_eq!(serde_json::from_slice::<Payment>(&brief).unwrap(), read);
    }
}

#[test]
fn an_aliased_field_deserializes_from_either_name() {
    for (current, old) in [
        ("checkoutUrl", "checkout_url"),
        ("platformFeeAmount", "platform_fee"),
        ("netAmount", "net_amount"),
        ("created_at", "createdAt"),
    ] {
        for missing in [current, old] {
            let mut sent = payment();
            sent.as_object_mut().unwrap().remove(missing);
            let read: Payment = serde_json::from_str(&sent.to_string()).unwrap();
            assert_eq!(read.status, Status::Pending);
            assert_eq!(serde_json::to_value(&read).unwrap(), payment(), "without {missing}");
        }
    }
}
