//! The system clock.

/// Returns the current Unix time in seconds, or 0 if the clock is before 1970.
pub(crate) fn unix_seconds() -> u64 {
    std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
