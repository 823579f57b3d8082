//! Checks that parsing an event never panics.
#![no_main]

use libfuzzer_sys::fuzz_target;
use payments_core::Event;

fuzz_target!(|body: &[u8]| {
    if let Ok(event) = Event::from_unverified_for_tests(body) {
        let _ = event.payment();
    }
});
