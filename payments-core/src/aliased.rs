//! Resources whose fields have several names on the wire.
//!
//! The API returns old field names along with the current ones: `checkoutUrl` and `checkout_url`, `responseStatus` and
//! `statusCode` (API specification, sections "Resources" and "Versioning"). A resource declares the names of each
//! field, the current one first:
//!
//! ```text
//! aliased_resource! {
//!     /// A payment.
//!     pub struct Payment {
//!         /// The URL of the checkout page.
//!         checkout_url: String = "checkoutUrl" | "checkout_url",
//!         /// The refund, if any.
//!         refund: Option<Refund> = "refund" (omitted if None),
//!         /// The customer.
//!         customer: Customer = "customer" (mirrored: name as "customerName", email as "customerEmail"),
//!     }
//! }
//! ```
//!
//! The macro generates a struct that
//!
//! - **serializes** every field under each of its names, in the declared order;
//! - **deserializes** it from any of them. Several may be present, which serde's `alias` rejects as a duplicate; the
//!   current name wins. The same name twice is an error, as in serde;
//! - **keeps** unknown fields in `unknown` and serializes them after its own, so that programs pass on fields of later
//!   API versions;
//! - treats a missing `Option` as `None`, and names any other missing field in the error.
//!
//! `mirrored` also serializes fields of a nested resource under flat names, and reads the flat names where the nested fields
//! are missing. `summed` also serializes the results of a field's methods, each under its own name. If the field is missing,
//! it is read from the first of these names.

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{self, MapAccess},
    ser::SerializeMap,
};

pub use crate::unknown_fields::UnknownFields;

/// Serializes a resource with each field once, under its current name. Deserialize the result as usual.
///
/// Use it to store resources: a payment is a fifth shorter.
///
/// ```
/// use payments_core::{Payment, aliased::Brief};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Stored {
///     #[serde(serialize_with = "Brief::serialize_brief")]
///     payment: Payment,
/// }
/// ```
pub trait Brief {
    /// Serializes each field once.
    ///
    /// # Errors
    /// Those of [`Serialize::serialize`].
    fn serialize_brief<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error>;
}

/// A field during deserialization: its value so far and the rank of its name (0 is the current name).
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

    /// The value. If it is missing, an `Option` is `None`; any other type is an error that names the field.
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

/// The deserializer of a missing field: an `Option` becomes `None`, any other type an error.
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

/// A value that may be omitted.
#[doc(hidden)]
pub trait Omitted {
    fn is_omitted(&self) -> bool;
}

impl<T> Omitted for Option<T> {
    fn is_omitted(&self) -> bool {
        self.is_none()
    }
}

#[doc(hidden)]
pub fn write_entry<M: SerializeMap>(map: &mut M, name: &'static str, value: &impl Serialize) -> Result<(), M::Error> {
    map.serialize_entry(name, value)
}

/// Declares a resource whose fields have several names on the wire. See [the module](self).
macro_rules! aliased_resource {
    (
        $(#[$meta:meta])*
        pub struct $resource:ident $( < $param:ident > )? {
            $(
                $(#[$field_meta:meta])*
                $field:ident : $type:ty = $current:literal $( | $alias:literal )*
                    $( (omitted if $omit:ident) )?
                    $( (mirrored: $( $entry:ident as $mirror:literal ),+ ) )?
                    $( (summed: $first:ident as $first_name:literal $(, $sum:ident as $sum_name:literal )* ) )?
                ,
            )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, PartialEq, Eq)]
        pub struct $resource $( < $param > )? {
            $( $(#[$field_meta])* pub $field: $type, )+
            /// Unknown fields as received. They are serialized again.
            pub unknown: $crate::aliased::UnknownFields,
        }

        impl $( < $param: serde::Serialize > )? serde::Serialize for $resource $( < $param > )? {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                use serde::ser::SerializeMap;
                let mut map = serializer.serialize_map(None)?;
                $(
                    $( $( $crate::aliased::write_entry(&mut map, $mirror, &self.$field.$entry)?; )+ )?
                    if !$crate::aliased::aliased_resource!(@omit self.$field $(, $omit)?) {
                        $crate::aliased::write_entry(&mut map, $current, &self.$field)?;
                        $( $crate::aliased::write_entry(&mut map, $alias, &self.$field)?; )*
                        $(
                            $crate::aliased::write_entry(&mut map, $first_name, &self.$field.$first())?;
                            $( $crate::aliased::write_entry(&mut map, $sum_name, &self.$field.$sum())?; )*
                        )?
                    }
                )+
                self.unknown.write(&mut map)?;
                map.end()
            }
        }

        impl $( < $param: serde::Serialize > )? $crate::aliased::Brief for $resource $( < $param > )? {
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

        impl<'de $(, $param: serde::Deserialize<'de>)?> serde::Deserialize<'de> for $resource $( < $param > )? {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                struct Visitor $( < $param > )? (std::marker::PhantomData<fn() -> ( $( $param, )? )>);

                impl<'de $(, $param: serde::Deserialize<'de>)?> serde::de::Visitor<'de> for Visitor $( < $param > )? {
                    type Value = $resource $( < $param > )?;

                    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                        f.write_str(concat!("a ", stringify!($resource), " object"))
                    }

                    fn visit_map<M: serde::de::MapAccess<'de>>(self, mut map: M) -> Result<Self::Value, M::Error> {
                        $( let mut $field = $crate::aliased::Slot::<$type>::default(); )+
                        $( $( $( let mut $entry = $crate::aliased::Slot::<Option<String>>::default(); )+ )? )+
                        let mut unknown = $crate::aliased::UnknownFields::default();
                        while let Some($crate::field_name::FieldName(name)) = map.next_key()? {
                            $(
                                if let Some(rank) = $crate::aliased::rank(&name, &[$current $(, $alias)* $(, $first_name)?]) {
                                    $field.read(&name, rank, &mut map)?;
                                    continue;
                                }
                                $( $(
                                    if name == $sum_name {
                                        map.next_value::<serde::de::IgnoredAny>()?;
                                        continue;
                                    }
                                )* )?
                                $( $(
                                    if name == $mirror {
                                        $entry.read(&name, 0, &mut map)?;
                                        continue;
                                    }
                                )+ )?
                            )+
                            unknown.read(&name, &mut map)?;
                        }
                        #[allow(unused_mut)]
                        let mut resource = $resource {
                            $( $field: $field.finish($current)?, )+
                            unknown,
                        };
                        $( $( $(
                            if resource.$field.$entry.is_none() {
                                resource.$field.$entry = $entry.into_value().flatten();
                            }
                        )+ )? )+
                        Ok(resource)
                    }
                }

                deserializer.deserialize_map(Visitor(std::marker::PhantomData))
            }
        }
    };
    (@omit $value:expr) => { false };
    (@omit $value:expr, $none:ident) => { $crate::aliased::Omitted::is_omitted(&$value) };
}

pub(crate) use aliased_resource;

/// The index of a name among the names of a field: 0 is the current one.
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
        #[derive(Debug)]
        #[allow(unreachable_pub, private_interfaces)]
        pub struct Sample {
            /// Has three names.
            rate: u32 = "rate" | "fee" | "fee_rate",
            /// Omitted if `None`.
            note: Option<String> = "note" (omitted if None),
            /// Has a mirrored field.
            who: Who = "who" (mirrored: name as "whoName"),
        }
    }

    fn read(json: &str) -> Result<Sample, String> {
        serde_json::from_str(json).map_err(|error| error.to_string())
    }

    #[test]
    fn a_field_serializes_under_each_of_its_names_in_order() {
        let sample = read(r#"{"rate":5,"who":{"name":"Asha"}}"#).unwrap();
        let json = r#"{"rate":5,"fee":5,"fee_rate":5,"whoName":"Asha","who":{"name":"Asha"}}"#;
        assert_eq!(serde_json::to_string(&sample).unwrap(), json);
    }

    #[test]
    fn the_brief_form_deserializes_to_the_same_resource() {
        let sample = read(r#"{"rate":5,"note":"n","who":{"name":"Asha"},"new":1}"#).unwrap();
        let mut json = Vec::new();
        sample.serialize_brief(&mut serde_json::Serializer::new(&mut json)).unwrap();
        let json = String::from_utf8(json).unwrap();
        assert_eq!(json, r#"{"rate":5,"note":"n","who":{"name":"Asha"},"new":1}"#);
        assert_eq!(read(&json).unwrap(), sample);
    }

    #[test]
    fn a_field_deserializes_from_any_of_its_names() {
        for name in ["rate", "fee", "fee_rate"] {
            assert_eq!(read(&format!(r#"{{"{name}":7,"who":{{}}}}"#)).unwrap().rate, 7);
        }
    }

    #[test]
    fn the_current_name_wins_in_any_order() {
        for json in [
            r#"{"rate":1,"fee":2,"fee_rate":3,"who":{}}"#,
            r#"{"fee_rate":3,"fee":2,"rate":1,"who":{}}"#,
            r#"{"fee":2,"rate":1,"fee_rate":3,"who":{}}"#,
        ] {
            assert_eq!(read(json).unwrap().rate, 1, "{json}");
        }
    }

    #[test]
    fn a_mirror_fills_a_missing_nested_field_and_never_overrides_it() {
        assert_eq!(read(r#"{"rate":1,"who":{},"whoName":"flat"}"#).unwrap().who.name.as_deref(), Some("flat"));
        let both = r#"{"rate":1,"whoName":"flat","who":{"name":"nested"}}"#;
        assert_eq!(read(both).unwrap().who.name.as_deref(), Some("nested"));
    }

    #[test]
    fn errors_name_a_duplicate_and_a_missing_field() {
        assert!(read(r#"{"rate":1,"rate":1,"who":{}}"#).unwrap_err().contains("duplicate field `rate`"));
        assert!(read(r#"{"fee":1,"fee":1,"who":{}}"#).unwrap_err().contains("duplicate field `fee`"));
        assert!(read(r#"{"who":{}}"#).unwrap_err().contains("missing field `rate`"));
    }

    #[test]
    fn unknown_fields_round_trip_byte_for_byte() {
        let sample = read(r#"{"new":{"b":1.10,"a":18446744073709551617},"rate":1,"who":{}}"#).unwrap();
        let json = serde_json::to_string(&sample).unwrap();
        assert!(json.ends_with(r#""new":{"b":1.10,"a":18446744073709551617}}"#), "{json}");
        assert_eq!(sample.unknown.get("new").unwrap().as_str(), r#"{"b":1.10,"a":18446744073709551617}"#);
    }
}
