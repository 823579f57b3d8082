//! Lists that are read from a JSON list, or from the single object of a server that returns no list.

use std::{fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};

/// Reads a list, one item, or nothing. `expected` names them for an error.
pub(crate) fn read<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
    expected: &'static str,
) -> Result<Vec<T>, D::Error> {
    deserializer.deserialize_option(OneOrMany { expected, item: PhantomData })
}

struct OneOrMany<T> {
    expected: &'static str,
    item: PhantomData<T>,
}

impl<'de, T: Deserialize<'de>> Visitor<'de> for OneOrMany<T> {
    type Value = Vec<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.expected)
    }

    fn visit_none<E>(self) -> Result<Vec<T>, E> {
        Ok(Vec::new())
    }

    fn visit_some<D: Deserializer<'de>>(self, deserializer: D) -> Result<Vec<T>, D::Error> {
        deserializer.deserialize_any(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Vec<T>, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(items)
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Vec<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(|item| vec![item])
    }
}

/// Defines such a list of items that have ids.
macro_rules! one_or_many {
    ($(#[$meta:meta])* pub struct $list:ident of $item:ident by $id:ident, $expected:literal) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Default, PartialEq, Eq, serde::Serialize)]
        pub struct $list(Vec<$item>);

        impl $list {
            pub(crate) fn push(&mut self, item: $item) {
                self.0.push(item);
            }

            pub(crate) fn find_mut(&mut self, id: &$id) -> Option<&mut $item> {
                self.0.iter_mut().find(|item| item.id == *id)
            }
        }

        impl std::ops::Deref for $list {
            type Target = [$item];

            fn deref(&self) -> &[$item] {
                &self.0
            }
        }

        impl $crate::aliased::Omitted for $list {
            fn is_omitted(&self) -> bool {
                self.0.is_empty()
            }
        }

        impl<'de> serde::Deserialize<'de> for $list {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                $crate::one_or_many::read(deserializer, $expected).map(Self)
            }
        }
    };
}
pub(crate) use one_or_many;
