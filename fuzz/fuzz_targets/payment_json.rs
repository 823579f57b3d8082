//! Checks that each resource in a response fails to parse or round-trips.
#![no_main]

use libfuzzer_sys::fuzz_target;
use payments_core::{CheckoutSession, Delivery, Payment, WebhookEndpoint};
use serde::{Serialize, de::DeserializeOwned};

fn round_trips<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(body: &[u8]) {
    if let Ok(resource) = serde_json::from_slice::<T>(body) {
        let json = serde_json::to_string(&resource).unwrap();
        assert_eq!(serde_json::from_str::<T>(&json).unwrap(), resource);
    }
}

fuzz_target!(|body: &[u8]| {
    round_trips::<Payment>(body);
    round_trips::<WebhookEndpoint>(body);
    round_trips::<Delivery>(body);
    round_trips::<CheckoutSession>(body);
});
