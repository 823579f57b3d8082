//! The ids of requests.

use fastrand::Rng;
use parking_lot::Mutex;
use warp::http::HeaderValue;

use crate::ambient::Ambient;

/// Makes the ids of requests: `req_` and a random UUID.
///
/// An id must be unique but may be guessed, so it needs no call to the operating system.
pub struct RequestIds(Mutex<Rng>);

impl RequestIds {
    pub fn new(ambient: &dyn Ambient) -> Self {
        Self(Mutex::new(Rng::with_seed(u64::from_ne_bytes(ambient.random()))))
    }

    pub(super) fn next(&self) -> HeaderValue {
        let random = self.0.lock().u128(..);
        let mut id = *b"req_00000000000000000000000000000000";
        uuid::Builder::from_random_bytes(random.to_ne_bytes()).into_uuid().simple().encode_lower(&mut id[4..]);
        HeaderValue::from_bytes(&id).unwrap_or(HeaderValue::from_static("req_"))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::ambient::OperatingSystem;

    #[test]
    fn request_ids_of_two_starts_differ() {
        let starts = [RequestIds::new(&OperatingSystem), RequestIds::new(&OperatingSystem)];
        let ids: HashSet<_> = (0..2_000).map(|nth| starts[nth % 2].next()).collect();
        assert_eq!(ids.len(), 2_000);
    }
}
