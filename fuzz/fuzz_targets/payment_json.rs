//! Whatever a server answers: it is refused, or what is read is written back the same for ever after.
#![no_main]

use libfuzzer_sys::fuzz_target;
use payments_core::{CheckoutSession, Delivery, Payment, WebhookEndpoint};
use serde::{Serialize, de::DeserializeOwned};

fn survives<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(body: &[u8]) {
    if let Ok(read) = serde_json::from_slice::<T>(body) {
        let json = serde_json::to_string(&read).unwrap();
        assert_eq!(serde_json::from_str::<T>(&json).unwrap(), read);
    }
}

fuzz_target!(|body: &[u8]| {
    survives::<Payment>(body);
    survives::<WebhookEndpoint>(body);
    survives::<Delivery>(body);
    survives::<CheckoutSession>(body);
});
