//! How far a signature's timestamp may be from now.

use core::num::NonZeroU64;

/// How far a signature's timestamp may be from now, in the past or the future.
///
/// The default is 300 seconds (API specification, section "Signature").
///
/// ```
/// use webhook_verify::Tolerance;
///
/// assert_eq!(Tolerance::default(), Tolerance::seconds(300));
/// assert_eq!(Tolerance::seconds(0), Tolerance::OFF);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tolerance(Option<NonZeroU64>);

impl Tolerance {
    /// Turns the timestamp check off. Use it to re-verify stored requests, never for an endpoint: without the check,
    /// an attacker can replay a captured request forever.
    pub const OFF: Self = Self(None);

    /// Allows this many seconds in either direction; 0 is [`Tolerance::OFF`], as in the API specification.
    #[must_use]
    pub const fn seconds(seconds: u64) -> Self {
        Self(NonZeroU64::new(seconds))
    }

    /// The number of seconds, or `None` if the check is off.
    #[must_use]
    pub const fn as_seconds(self) -> Option<u64> {
        match self.0 {
            Some(seconds) => Some(seconds.get()),
            None => None,
        }
    }
}

impl Default for Tolerance {
    fn default() -> Self {
        Self::seconds(300)
    }
}
