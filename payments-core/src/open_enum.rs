//! Enums to which a later API version may add values.

/// Defines an enum of strings. Unknown strings become `Other` and serialize unchanged, so that clients accept values of
/// later API versions.
macro_rules! open_enum {
    (
        $(#[$meta:meta])*
        pub enum $name:ident {
            $( $(#[$variant_meta:meta])* $variant:ident = $word:literal, )+
        }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name {
            $( $(#[$variant_meta])* $variant, )+
            /// A value that this version does not know.
            Other(Box<str>),
        }

        impl $name {
            /// All values that this version knows.
            pub const KNOWN: &'static [Self] = &[$( Self::$variant ),+];

            /// The value on the wire.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self {
                    $( Self::$variant => $word, )+
                    Self::Other(word) => word,
                }
            }

            /// The variant for a value, or `None` if this version does not know it.
            #[must_use]
            pub fn known(word: &str) -> Option<Self> {
                match word {
                    $( $word => Some(Self::$variant), )+
                    _ => None,
                }
            }
        }

        impl From<&str> for $name {
            fn from(word: &str) -> Self {
                Self::known(word).unwrap_or_else(|| Self::Other(word.into()))
            }
        }

        /// Never fails: an unknown value becomes `Other`.
        impl std::str::FromStr for $name {
            type Err = std::convert::Infallible;

            fn from_str(word: &str) -> Result<Self, Self::Err> {
                Ok(Self::from(word))
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }

        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                Ok(Self::from(word.as_ref()))
            }
        }
    };
}

pub(crate) use open_enum;
