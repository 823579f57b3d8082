//! Days of the calendar, in UTC.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::Timestamp;

/// A day in UTC. On the wire: an ISO 8601 date. Days are ordered by time, and so are their texts from year 0 on.
///
/// ```
/// use payments_core::{Day, Timestamp};
///
/// let timestamp: Timestamp = "2026-03-01T03:30:00+06:00".parse()?;
/// assert_eq!(Day::of(timestamp).to_string(), "2026-02-28");
/// # Ok::<(), payments_core::TimestampError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Day(jiff::civil::Date);

impl Day {
    /// The day of a moment.
    #[must_use]
    pub fn of(timestamp: Timestamp) -> Self {
        Self(timestamp.date())
    }

    /// The day of a moment in Dhaka, whose clocks are six hours ahead of UTC all year.
    #[must_use]
    pub fn in_dhaka(timestamp: Timestamp) -> Self {
        const AHEAD_SECONDS: u32 = 6 * 60 * 60;
        Self::of(timestamp.plus_seconds(AHEAD_SECONDS))
    }

    /// The day this many days earlier, but not before the first day of the calendar.
    #[must_use]
    pub fn minus(self, days: u16) -> Self {
        Self(self.0.saturating_sub(jiff::Span::new().days(days)))
    }

    /// The next day; `None` after the last day of the calendar.
    #[must_use]
    pub fn next(self) -> Option<Self> {
        self.0.tomorrow().ok().map(Self)
    }

    /// Whether it is a Sunday.
    #[must_use]
    pub fn is_sunday(self) -> bool {
        self.0.weekday() == jiff::civil::Weekday::Sunday
    }

    /// The day of the month, from 1.
    #[must_use]
    pub fn of_month(self) -> i8 {
        self.0.day()
    }

    /// The month, from 1.
    #[must_use]
    pub fn month(self) -> i8 {
        self.0.month()
    }
}

impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Debug for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Day {
    type Err = DayError;

    fn from_str(text: &str) -> Result<Self, DayError> {
        let day = text.parse().map(Self).map_err(|_| DayError)?;
        // Other forms of a date would not sort in the order of days.
        if day.to_string() == text { Ok(day) } else { Err(DayError) }
    }
}

impl Serialize for Day {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Day {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

/// The value is not a valid day.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an ISO 8601 date, such as 2026-03-01")]
pub struct DayError;

#[cfg(test)]
mod tests {
    use super::*;

    fn day(text: &str) -> Day {
        text.parse().unwrap()
    }

    #[test]
    fn a_day_begins_at_midnight_in_utc() {
        for (time, expected) in [
            ("2024-02-29T00:00:00Z", "2024-02-29"),
            ("2024-02-29T23:59:59.999Z", "2024-02-29"),
            ("2024-03-01T05:59:59+06:00", "2024-02-29"),
            ("1969-12-31T23:59:59.999Z", "1969-12-31"),
        ] {
            assert_eq!(Day::of(time.parse().unwrap()), day(expected), "{time}");
        }
    }

    #[test]
    fn days_are_counted_over_months_and_years() {
        assert_eq!(day("2024-03-01").minus(1), day("2024-02-29"));
        assert_eq!(day("2026-01-01").minus(366), day("2024-12-31"));
        assert_eq!(day("2024-12-31").next(), Some(day("2025-01-01")));
        assert_eq!(day("9999-12-31").next(), None);
        assert_eq!((day("2026-11-24").month(), day("2026-11-24").of_month()), (11, 24));
    }

    #[test]
    fn a_day_has_only_one_valid_form() {
        for text in ["20260301", "2026-3-1", "2026-02-30", "2026-03-01T00:00:00", "today", ""] {
            assert_eq!(text.parse::<Day>(), Err(DayError), "{text}");
        }
        assert_eq!(serde_json::from_str::<Day>(r#""2026-03-01""#).unwrap(), day("2026-03-01"));
        assert_eq!(serde_json::to_string(&day("2026-03-01")).unwrap(), r#""2026-03-01""#);
    }
}
