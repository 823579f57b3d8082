//! How old a signature may be.

use core::num::NonZeroU64;

/// How far a signature's time may lie from now, in either direction.
///
/// The default is 300 seconds (API specification, section "Signature"). Both directions count: a signature from the
/// future is as suspect as one from the past.
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
    /// No age check: a signature of any time is taken, so a captured request can be replayed for ever. For reading
    /// stored requests again, not for an endpoint.
    pub const OFF: Self = Self(None);

    /// This many seconds both ways; 0 means [`Tolerance::OFF`], as the API specification has it.
    #[must_use]
    pub const fn seconds(seconds: u64) -> Self {
        Self(NonZeroU64::new(seconds))
    }

    /// The number of seconds, or `None` where the age is not checked.
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
