//! The parameters and the result of advancing a sandbox's time.

use serde::Serialize;

use crate::{
    ErrorCode,
    aliased::{UnknownFields, aliased_resource},
    validation::{Fields, Invalid, whole_number},
};

/// How far one request can advance the time: 31 days.
const MAX_SECONDS: u32 = 31 * 24 * 60 * 60;

/// The parameters of advancing a sandbox's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct AdvanceSandbox {
    /// By how many seconds: 1 to 2,678,400, which is 31 days.
    pub seconds: u32,
}

impl AdvanceSandbox {
    /// Advances the time by this many seconds.
    #[must_use]
    pub const fn by(seconds: u32) -> Self {
        Self { seconds }
    }

    /// Parses and validates a request body.
    ///
    /// # Errors
    /// One sentence per invalid field.
    pub fn from_json(body: &[u8]) -> Result<Self, Invalid> {
        let mut fields = Fields::of_body(body)?.refusing_near_misses();
        let seconds = fields.raw("seconds").and_then(whole_number).and_then(|seconds| u32::try_from(seconds).ok());
        let seconds = match seconds.filter(|seconds| (1..=MAX_SECONDS).contains(seconds)) {
            Some(seconds) => seconds,
            None => {
                let error = format_args!("must be a whole number of seconds, 1 to {MAX_SECONDS}");
                fields.value_error("seconds", ErrorCode::FieldInvalid, error, 0)
            }
        };
        fields.finish(Self { seconds })
    }
}

aliased_resource! {
    /// The result of advancing a sandbox's time.
    #[derive(Debug)]
    #[non_exhaustive]
    pub struct Advanced {
        /// How many open checkout sessions came closer to their expiry.
        sessions: u32 = "sessions",
        /// How many of them expired.
        expired: u32 = "expired",
        /// How many deliveries came closer to their next attempt.
        retries: u32 = "retries",
    }
}

impl Advanced {
    /// A result in which nothing has moved.
    #[must_use]
    pub const fn nothing() -> Self {
        Self { sessions: 0, expired: 0, retries: 0, unknown: UnknownFields::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_advances_by_one_second_to_31_days() {
        let seconds = |json: &str| AdvanceSandbox::from_json(json.as_bytes()).map(|params| params.seconds).ok();
        assert_eq!(seconds(r#"{"seconds": 1}"#), Some(1));
        assert_eq!(seconds(r#"{"seconds": 2678400}"#), Some(MAX_SECONDS));
        for refused in
            ["{}", r#"{"seconds": 0}"#, r#"{"seconds": 2678401}"#, r#"{"seconds": "60"}"#, r#"{"seconds": 1.5}"#]
        {
            assert_eq!(seconds(refused), None, "{refused}");
        }
    }
}
