//! The log of a scope's requests: a ring of parts, so that it never grows beyond its bound and nothing has to be deleted.

use payments_core::LoggedRequest;
use serde::{Deserialize, Serialize};

use super::{Scope, is_first};

pub const PART: usize = 32;
/// The maximum number of full parts. Each further part replaces the oldest.
pub const PARTS: u64 = 1000;

/// A part of a scope's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogPart {
    #[serde(default, skip_serializing_if = "is_first")]
    pub version: u64,
    pub scope: Scope,
    pub place: Place,
    /// How many parts came before it.
    pub number: u64,
    /// Oldest first.
    pub requests: Vec<LoggedRequest>,
}

/// Where a part is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Place {
    /// The newest part, which is not full.
    Open,
    Ring(u64),
}

impl Place {
    pub fn of(number: u64) -> Self {
        Self::Ring(number % PARTS)
    }

    pub fn key_in(self, scope: &Scope) -> String {
        let Scope { developer_id, environment } = scope;
        match self {
            Self::Open => format!("{developer_id}/{environment}/open"),
            Self::Ring(place) => format!("{developer_id}/{environment}/{place:03}"),
        }
    }
}

impl LogPart {
    /// The first part of a scope's log, without requests.
    pub fn first(scope: Scope) -> Self {
        Self { version: 0, scope, place: Place::Open, number: 0, requests: Vec::new() }
    }

    /// The position in the log of a request of this part.
    pub fn position(&self, nth: usize) -> u64 {
        self.number * PART as u64 + nth as u64
    }

    /// Adds requests to an open part. Returns the parts that became full, and the new open part.
    pub fn with(mut self, requests: Vec<LoggedRequest>) -> (Vec<Self>, Self) {
        let mut full = Vec::new();
        for request in requests {
            self.requests.push(request);
            if self.requests.len() == PART {
                let requests = std::mem::take(&mut self.requests);
                let place = Place::of(self.number);
                full.push(Self { version: 0, scope: self.scope.clone(), place, number: self.number, requests });
                self.number += 1;
            }
        }
        (full, self)
    }
}

#[cfg(test)]
mod tests {
    use payments_core::{Environment, Timestamp, UnknownFields};

    use super::*;

    #[test]
    fn a_full_part_goes_to_the_ring_and_the_next_part_begins() {
        let request = |nth: usize| LoggedRequest {
            id: nth.to_string(),
            method: "GET".into(),
            path: "/".into(),
            status: 200,
            error: None,
            key_last4: "cafe".into(),
            duration_ms: 1,
            created_at: Timestamp::from_millis(0).unwrap(),
            count: None,
            unknown: UnknownFields::new(),
        };
        let scope = Scope { developer_id: "dev_1".parse().unwrap(), environment: Environment::Test };
        let (full, open) = LogPart::first(scope).with((0..70).map(request).collect());
        assert_eq!(full.iter().map(|part| part.requests.len()).collect::<Vec<_>>(), [PART, PART]);
        assert_eq!((full[1].number, full[1].place), (1, Place::Ring(1)));
        assert_eq!((open.number, open.place, open.requests.len()), (2, Place::Open, 6));
        assert_eq!(open.position(5), 69);
        assert_eq!(open.requests[5].id, "69");
        assert_eq!(Place::of(PARTS + 3), Place::Ring(3));
        assert_eq!(
            (full[1].place.key_in(&full[1].scope), open.place.key_in(&open.scope)),
            ("dev_1/test/001".to_owned(), "dev_1/test/open".to_owned())
        );
    }

    #[test]
    fn the_json_of_a_changed_part_has_its_version() {
        let scope = Scope { developer_id: "dev_1".parse().unwrap(), environment: Environment::Test };
        let first = LogPart::first(scope);
        assert_eq!(serde_json::to_value(&first).unwrap().get("version"), None);
        let changed = LogPart { version: 1, ..first };
        assert_eq!(serde_json::to_value(&changed).unwrap()["version"], 1);
    }
}
