//! The system's clock.

/// Returns the seconds since 1970 by the system's clock; a clock set before 1970 counts as 1970, where no fresh signature is valid.
pub(crate) fn unix_seconds() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
