//! Ids: a prefix for the kind, a UUIDv7 (RFC 9562, section 5.7) in hex, and a slot in three more hex digits.
//!
//! The first 48 bits of the UUID are the time in milliseconds, so later ids sort later. 74 bits are random, so ids cannot be
//! guessed: anyone who knows a payment's id can open its checkout page. The slot tells a store where the record is, without a
//! lookup in a table.

use std::{fmt, str::FromStr, sync::Arc};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::{Environment, Timestamp};

/// The number of random bytes of a new id. The id keeps 74 of these 80 bits; UUIDv7 fixes the others.
pub const RANDOM_BYTES: usize = 10;

/// The maximum length of an id.
const MAX_BYTES: usize = 128;

/// The hex digits of a UUID.
const UUID_DIGITS: usize = 32;
/// The hex digits of a slot.
const SLOT_DIGITS: usize = 3;

/// One of the 1,024 parts into which a store's records can be divided. All records of a developer are in one slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Slot(u16);

impl Slot {
    /// How many slots there are.
    pub const COUNT: u16 = 1024;
    /// The first slot.
    pub const FIRST: Self = Self(0);

    /// The slot of a new developer, from random bytes. All slots are equally likely.
    #[must_use]
    pub fn of_random(random: [u8; 2]) -> Self {
        Self(u16::from_be_bytes(random) % Self::COUNT)
    }

    /// All slots, in the order of their numbers.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT).map(Self)
    }

    /// The slot's number, below [`COUNT`](Self::COUNT).
    #[must_use]
    pub fn number(self) -> u16 {
        self.0
    }

    /// The slot in an API key: the three digits after the environment's prefix. A key without them, such as one that a person
    /// chose, has the first slot.
    #[must_use]
    pub fn of_key(key: &str) -> Self {
        let rest = Environment::of_key(key).and_then(|environment| key.strip_prefix(environment.key_prefix()));
        rest.and_then(|rest| Self::of_digits(rest.get(..SLOT_DIGITS)?)).unwrap_or(Self::FIRST)
    }

    /// Reads the hex digits that [`Display`](fmt::Display) writes. `None` if no slot has this number.
    #[must_use]
    pub fn of_digits(digits: &str) -> Option<Self> {
        let number = u16::from_str_radix(digits, 16).ok()?;
        (number < Self::COUNT).then_some(Self(number))
    }
}

/// The digits of a slot in an id.
impl fmt::Display for Slot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:03x}", self.0)
    }
}

fn unique(slot: Slot, now: Timestamp, random: [u8; RANDOM_BYTES]) -> String {
    let millis = u64::try_from(now.as_millis()).unwrap_or(0);
    format!("{}{slot}", uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid().simple())
}

/// The digits of the UUID and the slot in an id. More digits may follow.
fn digits(id: &str) -> Option<(&str, &str)> {
    let (uuid, rest) = id.rsplit('_').next()?.split_at_checked(UUID_DIGITS)?;
    Some((uuid, rest.get(..SLOT_DIGITS)?))
}

fn created_at(id: &str) -> Option<Timestamp> {
    let number = uuid::Uuid::try_parse(digits(id)?.0).ok()?;
    let (seconds, nanos) = number.get_timestamp()?.to_unix();
    Timestamp::from_millis(i64::try_from(seconds).ok()? * 1000 + i64::from(nanos / 1_000_000)).ok()
}

macro_rules! id {
    ($(#[$meta:meta])* $name:ident = $prefix:literal $(or $other:literal)?) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            /// The prefix of ids of this kind.
            pub const PREFIX: &'static str = $prefix;

            /// Creates an id from its developer's slot, the current time and random bytes.
            #[must_use]
            pub fn new(slot: Slot, now: Timestamp, random: [u8; RANDOM_BYTES]) -> Self {
                Self(format!("{}{}", Self::PREFIX, unique(slot, now, random)).into())
            }

            /// The slot in the id. If [`new`](Self::new) did not create the id, the first slot.
            #[must_use]
            pub fn slot(&self) -> Slot {
                digits(&self.0).and_then(|(_, slot)| Slot::of_digits(slot)).unwrap_or(Slot::FIRST)
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

            /// Parses the prefix, and ASCII letters, digits, `_` and `-` after it, at most 128 together.
            fn from_str(text: &str) -> Result<Self, IdError> {
                check(text, &[Self::PREFIX $(, $other)?]).map(|()| Self(text.into()))
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
    PaymentId = "pay_" or "test_pay_"
);
id!(
    /// A refund: `ref_…`.
    RefundId = "ref_"
);
id!(
    /// A dispute: `dsp_…`.
    DisputeId = "dsp_"
);
id!(
    /// A payout: `po_…`.
    PayoutId = "po_"
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
    /// An entry of the audit log: `aud_…`.
    AuditId = "aud_"
);
id!(
    /// An API key's record, not the key itself: `key_…`.
    KeyId = "key_"
);

fn check(text: &str, prefixes: &[&'static str]) -> Result<(), IdError> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-');
    let has_prefix = prefixes.iter().any(|prefix| text.len() > prefix.len() && text.starts_with(prefix));
    let prefix = prefixes.first().copied().unwrap_or_default();
    if text.len() <= MAX_BYTES && is_plain && has_prefix { Ok(()) } else { Err(IdError { prefix }) }
}

/// The text is not a valid id of this kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an identifier: {prefix} and ASCII letters, digits, _ and -, at most 128 together")]
pub struct IdError {
    prefix: &'static str,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_keys_slot_follows_its_prefix_or_is_the_first_slot() {
        for (key, slot) in
            [("sk_live_3ff1", 0x3ff), ("sk_test_001", 1), ("sk_live_4001", 0), ("sk_test_demo", 0), ("3ff", 0)]
        {
            assert_eq!(Slot::of_key(key).number(), slot, "{key}");
        }
    }

    #[test]
    fn each_slot_is_read_from_its_digits_and_there_are_no_others() {
        assert!(Slot::all().all(|slot| Slot::of_digits(&slot.to_string()) == Some(slot)));
        assert_eq!(["400", "-01", "x"].map(Slot::of_digits), [None; 3]);
    }

    fn at(millis: i64) -> Timestamp {
        Timestamp::from_millis(millis).unwrap()
    }

    #[test]
    fn an_id_has_a_prefix_32_hex_digits_and_three_digits_of_a_slot() {
        let id = PaymentId::new(Slot::of_random([0x7e, 0x0c]), at(1_700_000_000_000), [0xab; RANDOM_BYTES]);
        assert_eq!(id.as_str(), "pay_018bcfe568007bababababababababab20c");
        assert_eq!(id.slot().number(), 0x20c);
    }

    #[test]
    fn an_ids_slot_and_time_are_found_with_any_text_before_and_after() {
        let id = PaymentId::new(Slot::of_random([0x43, 0xff]), at(7), [1; RANDOM_BYTES]);
        for text in [id.to_string(), format!("test_{id}"), format!("{id}00000001")] {
            let id: PaymentId = text.parse().unwrap();
            assert_eq!((id.slot().number(), id.created_at()), (0x3ff, Some(at(7))), "{id}");
        }
        for text in ["pay_1", "pay_018bcfe568007bababababababababab", "pay_018bcfe568007bababababababababab400"] {
            assert_eq!(text.parse::<PaymentId>().unwrap().slot(), Slot::FIRST, "{text}");
        }
        assert!((0..=u16::MAX).all(|number| Slot::of_random(number.to_be_bytes()) < Slot(Slot::COUNT)));
    }

    #[test]
    fn later_ids_sort_later() {
        let earlier = EventId::new(Slot::FIRST, at(1_700_000_000_000), [0xff; RANDOM_BYTES]);
        let later = EventId::new(Slot::FIRST, at(1_700_000_000_001), [0; RANDOM_BYTES]);
        assert!(earlier < later);
    }

    #[test]
    fn an_id_contains_its_creation_time() {
        let now = at(1_700_000_000_007);
        assert_eq!(DeliveryId::new(Slot::FIRST, now, [0xff; RANDOM_BYTES]).created_at(), Some(now));
        assert_eq!("del_1".parse::<DeliveryId>().unwrap().created_at(), None);
    }

    #[test]
    fn seventy_four_of_the_random_bits_reach_the_id() {
        let base = PaymentId::new(Slot::FIRST, at(0), [0; RANDOM_BYTES]);
        let reached = (0..RANDOM_BYTES * 8)
            .filter(|bit| {
                let mut random = [0; RANDOM_BYTES];
                random[bit / 8] = 1 << (bit % 8);
                PaymentId::new(Slot::FIRST, at(0), random) != base
            })
            .count();
        assert_eq!(reached, 74);
    }

    #[test]
    fn an_id_cannot_break_out_of_a_path_or_a_header() {
        for text in ["", ".", "..", "a/b", "a b", "a\r\nb", "ß", "%2e", &"x".repeat(125)] {
            let text = format!("pay_{text}");
            assert_eq!(text.parse::<PaymentId>(), Err(IdError { prefix: "pay_" }), "{text:?}");
        }
    }

    #[test]
    fn an_id_of_another_kind_is_refused() {
        for text in ["ref_1", "pay", "PAY_1", "test_ref_1", "1", "test_test_pay_1"] {
            assert!(text.parse::<PaymentId>().is_err(), "{text}");
        }
        assert!("test_pay_1".parse::<PaymentId>().is_ok() && "test_ref_1".parse::<RefundId>().is_err());
        let error = "pay_1".parse::<RefundId>().unwrap_err().to_string();
        assert!(error.contains("ref_ and ASCII letters"), "{error}");
    }
}
