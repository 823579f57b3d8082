//! The one place that knows a field of the API may have several names.
//!
//! The API still returns the names it used to have beside those it has now: `checkoutUrl` and `checkout_url`,
//! `responseStatus` and `statusCode` (API specification, sections "Resources" and "Versioning"). A resource declares
//! its names once, next to the field, the current one first:
//!
//! ```text
//! aliased_resource! {
//!     /// A payment.
//!     pub struct Payment {
//!         /// Address to send the customer to.
//!         checkout_url: String = "checkoutUrl" | "checkout_url",
//!         /// Refund, once there is one.
//!         refund: Option<Refund> = "refund" (omitted if None),
//!         /// Who pays.
//!         customer: Customer = "customer" (mirrored: name as "customerName", email as "customerEmail"),
//!     }
//! }
//! ```
//!
//! and gets a struct that
//!
//! - **writes** every field under each of its names, in the order in which they stand;
//! - **reads** it under any of them. All may be there at once (serde's own `alias` refuses that as a duplicate): where
//!   they disagree the current name wins. The same name twice is refused, as serde does;
//! - **keeps** what it does not know in `unknown` and writes it back after its own fields, so that a program built
//!   today passes on what a server of tomorrow sends;
//! - treats a missing `Option` as `None`, and names any other field that is missing.
//!
//! `mirrored` writes entries of a nested resource beside it under names of their own, and reads them from there where
//! the nested resource does not have them.

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, MapAccess},
    ser::SerializeMap,
};

use crate::RawJson;

/// Fields that this version does not know, in the order in which they came.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnknownFields(Vec<(Box<str>, RawJson)>);

impl UnknownFields {
    /// The value of a field by its name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&RawJson> {
        self.0.iter().find(|(known, _)| **known == *name).map(|(_, value)| value)
    }

    /// Adds a field, or replaces one.
    pub fn insert(&mut self, name: &str, value: RawJson) {
        match self.0.iter_mut().find(|(known, _)| **known == *name) {
            Some((_, kept)) => *kept = value,
            None => self.0.push((name.into(), value)),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    #[doc(hidden)]
    pub fn read<'de, M: MapAccess<'de>>(&mut self, name: &str, map: &mut M) -> Result<(), M::Error> {
        let value = map.next_value()?;
        self.insert(name, value);
        Ok(())
    }

    #[doc(hidden)]
    pub fn write<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        self.0.iter().try_for_each(|(name, value)| map.serialize_entry(name, value))
    }
}

/// A resource that can be written with each field once, under its current name. It is read like any other.
///
/// For whoever keeps resources rather than answers with them: a payment is shorter by a fifth.
///
/// ```
/// use payments_core::{Payment, aliased::Brief};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Kept {
///     #[serde(serialize_with = "Brief::serialize_brief")]
///     payment: Payment,
/// }
/// ```
pub trait Brief {
    /// Writes each field once.
    ///
    /// # Errors
    /// As [`Serialize::serialize`].
    fn serialize_brief<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error>;
}

/// A field while a resource is being read: its value so far, and the rank of the name it came under (0 is the current
/// name).
#[doc(hidden)]
pub struct Slot<T> {
    value: Option<T>,
    names_seen: u8,
    rank: u8,
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Self { value: None, names_seen: 0, rank: u8::MAX }
    }
}

impl<'de, T: Deserialize<'de>> Slot<T> {
    pub fn read<M: MapAccess<'de>>(&mut self, name: &str, rank: u8, map: &mut M) -> Result<(), M::Error> {
        if self.names_seen & (1 << rank) != 0 {
            return Err(de::Error::custom(format_args!("duplicate field `{name}`")));
        }
        self.names_seen |= 1 << rank;
        let value = map.next_value()?;
        if rank < self.rank {
            self.value = Some(value);
            self.rank = rank;
        }
        Ok(())
    }

    /// The value, or what stands for a missing one: `None` for an `Option`, an error that names the field otherwise.
    pub fn finish<E: de::Error>(self, name: &'static str) -> Result<T, E> {
        match self.value {
            Some(value) => Ok(value),
            None => T::deserialize(Missing { name, error: std::marker::PhantomData }),
        }
    }

    pub fn into_value(self) -> Option<T> {
        self.value
    }
}

/// A field that was not there: an `Option` reads `None` from it, everything else an error.
struct Missing<E> {
    name: &'static str,
    error: std::marker::PhantomData<E>,
}

impl<'de, E: de::Error> Deserializer<'de> for Missing<E> {
    type Error = E;

    fn deserialize_any<V: de::Visitor<'de>>(self, _: V) -> Result<V::Value, E> {
        Err(E::missing_field(self.name))
    }

    fn deserialize_option<V: de::Visitor<'de>>(self, visitor: V) -> Result<V::Value, E> {
        visitor.visit_none()
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

/// Whether a value may be left out of what is written.
#[doc(hidden)]
pub fn is_none<T>(value: &Option<T>) -> bool {
    value.is_none()
}

#[doc(hidden)]
pub fn write_entry<M: SerializeMap>(map: &mut M, name: &'static str, value: &impl Serialize) -> Result<(), M::Error> {
    map.serialize_entry(name, value)
}

/// Declares a resource whose fields may have several names on the wire. See [the module](self).
macro_rules! aliased_resource {
    (
        $(#[$meta:meta])*
        pub struct $resource:ident {
            $(
                $(#[$field_meta:meta])*
                $field:ident : $type:ty = $current:literal $( | $alias:literal )*
                    $( (omitted if $omit:ident) )?
                    $( (mirrored: $( $entry:ident as $mirror:literal ),+ ) )?
                ,
            )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct $resource {
            $( $(#[$field_meta])* pub $field: $type, )+
            /// Fields that this version does not know, as they were sent. They are written back.
            pub unknown: $crate::aliased::UnknownFields,
        }

        impl serde::Serialize for $resource {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap;
                let mut map = serializer.serialize_map(None)?;
                $(
                    $( $( $crate::aliased::write_entry(&mut map, $mirror, &self.$field.$entry)?; )+ )?
                    if !$crate::aliased::aliased_resource!(@omit self.$field $(, $omit)?) {
                        $crate::aliased::write_entry(&mut map, $current, &self.$field)?;
                        $( $crate::aliased::write_entry(&mut map, $alias, &self.$field)?; )*
                    }
                )+
                self.unknown.write(&mut map)?;
                map.end()
            }
        }

        impl $crate::aliased::Brief for $resource {
            fn serialize_brief<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap;
                let mut map = serializer.serialize_map(None)?;
                $(
                    if !$crate::aliased::aliased_resource!(@omit self.$field $(, $omit)?) {
                        $crate::aliased::write_entry(&mut map, $current, &self.$field)?;
                    }
                )+
                self.unknown.write(&mut map)?;
                map.end()
            }
        }

        impl<'de> serde::Deserialize<'de> for $resource {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor;

                impl<'de> serde::de::Visitor<'de> for Visitor {
                    type Value = $resource;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str(concat!("a ", stringify!($resource), " object"))
                    }

                    fn visit_map<M: serde::de::MapAccess<'de>>(self, mut map: M) -> Result<$resource, M::Error> {
                        /// The fields while they are being read, and beside them their mirrors.
                        #[derive(Default)]
                        struct Slots {
                            $( $field: $crate::aliased::Slot<$type>, )+
                            $( $( $( $entry: $crate::aliased::Slot<Option<String>>, )+ )? )+
                        }
                        let mut slots = Slots::default();
                        let mut unknown = $crate::aliased::UnknownFields::default();
                        while let Some(name) = map.next_key::<std::borrow::Cow<'de, str>>()? {
                            $(
                                if let Some(rank) = $crate::aliased::rank(&name, &[$current $(, $alias)*]) {
                                    slots.$field.read(&name, rank, &mut map)?;
                                    continue;
                                }
                                $( $(
                                    if name == $mirror {
                                        slots.$entry.read(&name, 0, &mut map)?;
                                        continue;
                                    }
                                )+ )?
                            )+
                            unknown.read(&name, &mut map)?;
                        }
                        #[allow(unused_mut)]
                        let mut resource = $resource {
                            $( $field: slots.$field.finish($current)?, )+
                            unknown,
                        };
                        $( $( $(
                            if resource.$field.$entry.is_none() {
                                resource.$field.$entry = slots.$entry.into_value().flatten();
                            }
                        )+ )? )+
                        Ok(resource)
                    }
                }

                deserializer.deserialize_map(Visitor)
            }
        }
    };
    (@omit $value:expr) => { false };
    (@omit $value:expr, $none:ident) => { $crate::aliased::is_none(&$value) };
}

pub(crate) use aliased_resource;

/// The place of a name among the names of a field: 0 is the current one.
#[doc(hidden)]
#[must_use]
pub fn rank(name: &str, names: &[&str]) -> Option<u8> {
    names.iter().position(|known| *known == name).and_then(|index| u8::try_from(index).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Clone, PartialEq, Eq, Default, serde::Serialize, Deserialize)]
    struct Who {
        name: Option<String>,
    }

    aliased_resource! {
        /// One field of each kind.
        #[allow(unreachable_pub, private_interfaces)]
        pub struct Sample {
            /// Three names.
            rate: u32 = "rate" | "fee" | "fee_rate",
            /// Left out while there is none.
            note: Option<String> = "note" (omitted if None),
            /// Its name stands beside it too.
            who: Who = "who" (mirrored: name as "whoName"),
        }
    }

    fn read(json: &str) -> Result<Sample, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn a_field_is_written_under_each_of_its_names_in_order() {
        let sample = read(r#"{"rate":5,"who":{"name":"Asha"}}"#).unwrap();
        let json = r#"{"rate":5,"fee":5,"fee_rate":5,"whoName":"Asha","who":{"name":"Asha"}}"#;
        assert_eq!(serde_json::to_string(&sample).unwrap(), json);
    }

    #[test]
    fn what_was_written_briefly_is_read_as_the_same() {
        let sample = read(r#"{"rate":5,"note":"n","who":{"name":"Asha"},"new":1}"#).unwrap();
        let mut json = Vec::new();
        sample.serialize_brief(&mut serde_json::Serializer::new(&mut json)).unwrap();
        let json = String::from_utf8(json).unwrap();
        assert_eq!(json, r#"{"rate":5,"note":"n","who":{"name":"Asha"},"new":1}"#);
        assert_eq!(read(&json).unwrap(), sample);
    }

    #[test]
    fn a_field_is_read_under_any_of_its_names() {
        for name in ["rate", "fee", "fee_rate"] {
            assert_eq!(read(&format!(r#"{{"{name}":7,"who":{{}}}}"#)).unwrap().rate, 7);
        }
    }

    #[test]
    fn where_names_disagree_the_current_one_wins_wherever_it_stands() {
        for json in [
            r#"{"rate":1,"fee":2,"fee_rate":3,"who":{}}"#,
            r#"{"fee_rate":3,"fee":2,"rate":1,"who":{}}"#,
            r#"{"fee":2,"rate":1,"fee_rate":3,"who":{}}"#,
        ] {
            assert_eq!(read(json).unwrap().rate, 1, "{json}");
        }
    }

    #[test]
    fn a_mirror_fills_what_the_nested_resource_lacks_and_never_overrides_it() {
        assert_eq!(read(r#"{"rate":1,"who":{},"whoName":"flat"}"#).unwrap().who.name.as_deref(), Some("flat"));
        let both = r#"{"rate":1,"whoName":"flat","who":{"name":"nested"}}"#;
        assert_eq!(read(both).unwrap().who.name.as_deref(), Some("nested"));
    }

    #[test]
    fn the_same_name_twice_and_a_missing_field_are_named() {
        assert!(read(r#"{"rate":1,"rate":1,"who":{}}"#).unwrap_err().contains("duplicate field `rate`"));
        assert!(read(r#"{"fee":1,"fee":1,"who":{}}"#).unwrap_err().contains("duplicate field `fee`"));
        assert!(read(r#"{"who":{}}"#).unwrap_err().contains("missing field `rate`"));
    }

    #[test]
    fn what_is_not_known_is_kept_and_written_back_byte_for_byte() {
        let sample = read(r#"{"new":{"b":1.10,"a":18446744073709551617},"rate":1,"who":{}}"#).unwrap();
        let json = serde_json::to_string(&sample).unwrap();
        assert!(json.ends_with(r#""new":{"b":1.10,"a":18446744073709551617}}"#), "{json}");
        assert_eq!(sample.unknown.get("new").unwrap().as_str(), r#"{"b":1.10,"a":18446744073709551617}"#);
    }
}
