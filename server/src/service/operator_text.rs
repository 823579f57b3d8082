//! Texts that an operator gives, and why they are refused.

use payments_core::{ErrorCode, Invalid, text::is_one_line};

use super::{Result, ServiceError};

/// Maximum length of a name.
pub(super) const MAX_NAME_BYTES: usize = 200;

/// Refuses an operator's request. The command line shows only the sentence.
pub(super) fn invalid(sentence: impl Into<String>) -> ServiceError {
    Invalid::new(ErrorCode::ValidationFailed, sentence).into()
}

/// Trims a text and checks its length.
pub(super) fn checked<'t>(what: &str, text: &'t str, max_bytes: usize) -> Result<&'t str> {
    let text = text.trim();
    if text.is_empty() || text.len() > max_bytes {
        return Err(invalid(format!("the {what} must be 1 to {max_bytes} bytes long")));
    }
    Ok(text)
}

/// Does the same as [`checked`] for a name, which must be one line.
pub(super) fn named<'t>(what: &str, text: &'t str) -> Result<&'t str> {
    let name = checked(what, text, MAX_NAME_BYTES)?;
    match is_one_line(name) {
        true => Ok(name),
        false => Err(invalid(format!("the {what} must be one line, without control characters"))),
    }
}

/// An amount in a message whose kind is one of its fields: serde reads no exact number there.
pub(super) mod amount_as_text {
    use payments_core::Amount;
    use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};

    pub(in crate::service) fn serialize<S: Serializer>(amount: &Amount, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(amount)
    }

    pub(in crate::service) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Amount, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}
