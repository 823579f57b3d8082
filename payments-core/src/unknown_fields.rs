//! Fields of a resource that this version does not know.

use serde::{de::MapAccess, ser::SerializeMap};

use crate::RawJson;

/// Fields that this version does not know, in the order received. Each resource stores them in its field `unknown`:
///
/// ```
/// use payments_core::Balances;
///
/// let json = r#"{"bdt_balance":712.5,"usd_balance":0,"eur_balance":3.5}"#;
/// let balances: Balances = serde_json::from_str(json)?;
/// let euros: Option<f64> = balances.unknown.get("eur_balance").and_then(|value| value.parse().ok());
/// assert_eq!(euros, Some(3.5));
/// assert_eq!(serde_json::to_string(&balances)?, json);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UnknownFields(Vec<(Box<str>, RawJson)>);

impl UnknownFields {
    /// No fields.
    #[must_use]
    pub const fn new() -> Self {
        Self(Vec::new())
    }

    /// The value of a field.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&RawJson> {
        self.0.iter().find(|(known, _)| **known == *name).map(|(_, value)| value)
    }

    /// The fields with their values, in the order received.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &RawJson)> {
        self.0.iter().map(|(name, value)| (&**name, value))
    }

    /// Adds a field, or replaces one.
    pub fn insert(&mut self, name: &str, value: RawJson) {
        match self.0.iter_mut().find(|(known, _)| **known == *name) {
            Some((_, kept)) => *kept = value,
            None => self.0.push((name.into(), value)),
        }
    }

    /// Removes a field's value, if there is the field.
    pub(crate) fn erase(&mut self, name: &str) {
        self.0.iter_mut().filter(|(known, _)| **known == *name).for_each(|(_, kept)| *kept = RawJson::null());
    }

    /// Whether there are no unknown fields.
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
