//! Checks that a body fails with an error, or makes a payment whose amounts add up and that round-trips.
#![no_main]

use libfuzzer_sys::fuzz_target;
use payments_core::{
    Amount, CreatePayment, CreateWebhook, DeveloperId, Environment, FeeRate, NewPayment, Payment, PaymentId, RANDOM_BYTES, Slot,
    Simulate, Timestamp, create,
};

fuzz_target!(|body: &[u8]| {
    let _ = CreateWebhook::from_json(body);
    let _ = Simulate::from_json(body);
    for environment in [Environment::Live, Environment::Test] {
        let params = match CreatePayment::from_json(body, environment) {
            Ok(params) => params,
            Err(invalid) => {
                assert!(!invalid.into_sentences().is_empty());
                continue;
            }
        };
        assert!(params.amount > Amount::ZERO && params.amount <= Amount::MAX);
        let metadata = params.metadata.clone();
        let now = Timestamp::from_millis(1_700_000_000_000).unwrap();
        let new = NewPayment {
            id: PaymentId::new(Slot::FIRST, now, [7; RANDOM_BYTES]),
            developer_id: DeveloperId::new(Slot::FIRST, now, [8; RANDOM_BYTES]),
            app_id: None,
            environment,
            checkout_url: "https://pay.example/checkout/x".into(),
            fee_rate: FeeRate::from_basis_points(275).unwrap(),
            now,
        };
        let payment = create(params, new).payment;
        let sum = payment.platform_fee_amount.as_minor() + payment.net_amount.as_minor();
        assert_eq!(sum, payment.amount.as_minor());
        let json = serde_json::to_string(&payment).unwrap();
        if let Some(metadata) = metadata {
            assert!(json.contains(metadata.as_str()));
        }
        assert_eq!(serde_json::from_str::<Payment>(&json).unwrap(), payment);
    }
});
