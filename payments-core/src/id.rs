//! Identifiers: a prefix that names the kind, and a UUIDv7 (RFC 9562, section 5.7) in hex.
//!
//! The first 48 bits of the number are the time in milliseconds, so ids made later sort later; 74 bits are random, so
//! an id cannot be guessed from another. That matters: whoever knows a payment's id may open its checkout page.

use std::{fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::Timestamp;

/// How many random bytes a new id takes. Of these 80 bits 74 end up in the id; UUIDv7 fixes the others.
pub const RANDOM_BYTES: usize = 10;

/// The longest identifier that is read.
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
            /// What ids of this kind begin with.
            pub const PREFIX: &'static str = $prefix;

            /// A new id out of the present time and fresh random bytes.
            #[must_use]
            pub fn new(now: Timestamp, random: [u8; RANDOM_BYTES]) -> Self {
                Self(format!("{}{}", Self::PREFIX, unique(now, random)).into())
            }

            /// The time that the id was made with; `None` for a text that [`new`](Self::new) does not make.
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

            /// Takes any text that could be an id: 1 to 128 ASCII letters, digits, `_` and `-`. The prefix is not
            /// asked for, since what is stored decides whether an id exists.
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
    /// An event: `evt_…`. The same event may arrive twice; this id tells.
    EventId = "evt_"
);
id!(
    /// A developer app: `app_…`.
    AppId = "app_"
);
id!(
    /// The developer a record belongs to: `dev_…`.
    DeveloperId = "dev_"
);
id!(
    /// A workspace: `ws_…`.
    WorkspaceId = "ws_"
);
id!(
    /// The record of an API key, not the key: `key_…`.
    KeyId = "key_"
);

fn check(text: &str) -> Result<(), IdError> {
    let fits = (1..=MAX_BYTES).contains(&text.len());
    let plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    if fits && plain { Ok(()) } else { Err(IdError) }
}

/// A text that cannot be an identifier.
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
    fn ids_made_later_sort_later() {
        let earlier = EventId::new(at(1_700_000_000_000), [0xff; RANDOM_BYTES]);
        let later = EventId::new(at(1_700_000_000_001), [0; RANDOM_BYTES]);
        assert!(earlier < later);
    }

    #[test]
    fn an_id_tells_when_it_was_made() {
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
    fn what_could_leave_a_path_or_a_header_is_no_id() {
        for text in ["", ".", "..", "a/b", "a b", "a\r\nb", "ß", "%2e", &"x".repeat(129)] {
            assert_eq!(text.parse::<PaymentId>(), Err(IdError), "{text:?}");
        }
    }
}
