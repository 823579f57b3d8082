//! Ids: a prefix for the kind and a UUIDv7 (RFC 9562, section 5.7) in hex.
//!
//! The first 48 bits of the UUID are the time in milliseconds, so later ids sort later. 74 bits are random, so ids
//! cannot be guessed: anyone who knows a payment's id can open its checkout page.

use std::{fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::Timestamp;

/// The number of random bytes of a new id. The id keeps 74 of these 80 bits; UUIDv7 fixes the others.
pub const RANDOM_BYTES: usize = 10;

/// The maximum length of an id.
const MAX_BYTES: usize = 128;

fn unique(now: Timestamp, random: [u8; RANDOM_BYTES]) -> uuid::fmt::Simple {
    let millis = u64::try_from(now.as_millis()).unwrap_or(0);
    uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid().simple()
}

fn created_at(id: &str) -> Option<Timestamp> {
    let number = uuid::Uuid::try_parse(id.rsplit('_').next()?).ok()?;
    let (seconds, nanos) = number.get_timestamp()?.to_unix();
    Timestamp::from_millis(i64::try_from(seconds).ok()? * 1000 + i64::from(nanos / 1_000_000)).ok()
}

macro_rules! id {
    ($(#[$meta:meta])* $name:ident = $prefix:literal) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The prefix of ids of this kind.
            pub const PREFIX: &'static str = $prefix;

            /// Creates an id from the current time and random bytes.
            #[must_use]
            pub fn new(now: Timestamp, random: [u8; RANDOM_BYTES]) -> Self {
                Self(format!("{}{}", Self::PREFIX, unique(now, random)).into())
            }

            /// The time in the id, or `None` if [`new`](Self::new) did not create it.
            #[must_use]
            pub fn created_at(&self) -> Option<Timestamp> {
                created_at(&self.0)
            }

            /// The id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl FromStr for $name {
            type Err = IdError;

            /// Parses 1 to 128 ASCII letters, digits, `_` and `-`. Does not check the prefix.
            fn from_str(text: &str) -> Result<Self, IdError> {
                check(text).map(|()| Self(text.into()))
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl Serialize for $name {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(&self.0)
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                text.parse().map_err(de::Error::custom)
            }
        }
    };
}

id!(
    /// A payment, and its checkout session: `pay_…` (`test_pay_…` for a demo session).
    PaymentId = "pay_"
);
id!(
    /// A refund: `ref_…`.
    RefundId = "ref_"
);
id!(
    /// A webhook endpoint: `wh_…`.
    WebhookId = "wh_"
);
id!(
    /// One delivery of an event to one endpoint: `del_…`.
    DeliveryId = "del_"
);
id!(
    /// An event: `evt_…`. All deliveries of an event have the same event id.
    EventId = "evt_"
);
id!(
    /// A posting that moved the merchant's balance: `txn_…`.
    TransactionId = "txn_"
);
id!(
    /// A developer app: `app_…`.
    AppId = "app_"
);
id!(
    /// A developer: `dev_…`.
    DeveloperId = "dev_"
);
id!(
    /// A workspace: `ws_…`.
    WorkspaceId = "ws_"
);
id!(
    /// An API key's record, not the key itself: `key_…`.
    KeyId = "key_"
);

fn check(text: &str) -> Result<(), IdError> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    if (1..=MAX_BYTES).contains(&text.len()) && is_plain { Ok(()) } else { Err(IdError) }
}

/// The text is not a valid id.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an identifier: 1 to 128 ASCII letters, digits, _ and -")]
pub struct IdError;

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis).unwrap()
    }

    #[test]
    fn an_id_is_its_prefix_and_32_hex_digits() {
        let id = PaymentId::new(at(1_700_000_000_000), [0xab; RANDOM_BYTES]);
        assert_eq!(id.as_str(), "pay_018bcfe568007bababababababababab");
    }

    #[test]
    fn later_ids_sort_later() {
        let earlier = EventId::new(at(1_700_000_000_000), [0xff; RANDOM_BYTES]);
        let later = EventId::new(at(1_700_000_000_001), [0; RANDOM_BYTES]);
        assert!(earlier < later);
    }

    #[test]
    fn an_id_contains_its_creation_time() {
        let now = at(1_700_000_000_007);
        assert_eq!(DeliveryId::new(now, [0xff; RANDOM_BYTES]).created_at(), Some(now));
        assert_eq!("del_1".parse::<DeliveryId>().unwrap().created_at(), None);
    }

    #[test]
    fn seventy_four_of_the_random_bits_reach_the_id() {
        let base = PaymentId::new(at(0), [0; RANDOM_BYTES]);
        let reached = (0..RANDOM_BYTES * 8)
            .filter(|bit| {
                let mut random = [0; RANDOM_BYTES];
                random[bit / 8] = 1 << (bit % 8);
                PaymentId::new(at(0), random) != base
            })
            .count();
        assert_eq!(reached, 74);
    }

    #[test]
    fn an_id_cannot_break_out_of_a_path_or_a_header() {
        for text in ["", ".", "..", "a/b", "a b", "a\r\nb", "ß", "%2e", &"x".repeat(129)] {
            assert_eq!(text.parse::<PaymentId>(), Err(IdError), "{text:?}");
        }
    }
}
