//! Timestamps with millisecond precision.

use std::{fmt, str::FromStr};

use jiff::{fmt::temporal::Pieces, tz::Offset};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A UTC timestamp with millisecond precision. On the wire: ISO 8601 with milliseconds and `Z`.
///
/// ```
/// use payments_core::Timestamp;
///
/// let timestamp: Timestamp = "2026-03-01T09:30:00+06:00".parse()?;
/// assert_eq!(timestamp.to_string(), "2026-03-01T03:30:00.000Z");
/// assert_eq!(timestamp.as_millis(), 1_772_335_800_000);
/// # Ok::<(), payments_core::TimestampError>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(jiff::Timestamp);

impl Timestamp {
    /// The beginning of 1970.
    pub const UNIX_EPOCH: Self = Self(jiff::Timestamp::UNIX_EPOCH);

    /// Creates a timestamp from Unix milliseconds.
    ///
    /// # Errors
    /// If the year is outside -9999 to 9999.
    pub fn from_millis(unix_millis: i64) -> Result<Self, TimestampError> {
        jiff::Timestamp::from_millisecond(unix_millis).map(Self).map_err(|_| TimestampError)
    }

    /// Parses a time from a person or a program: RFC 3339 with any offset, or a date, which means its first moment in UTC.
    /// The `+` before the offset may be a space, which it becomes in a query that does not encode it. A time after the last
    /// timestamp, such as the end of 9999, becomes the last timestamp.
    ///
    /// ```
    /// use payments_core::Timestamp;
    ///
    /// assert_eq!(Timestamp::from_input("2026-03-01")?, "2026-03-01T00:00:00Z".parse()?);
    /// assert_eq!(Timestamp::from_input("2026-03-01T09:30:00 06:00")?, "2026-03-01T03:30:00Z".parse()?);
    /// # Ok::<(), payments_core::TimestampError>(())
    /// ```
    ///
    /// # Errors
    /// If the text is neither a date nor a time with an offset.
    pub fn from_input(text: &str) -> Result<Self, TimestampError> {
        let text = text.trim();
        let with_plus = || {
            let (time, offset) = text.rsplit_once(' ')?;
            date_or_time(&format!("{time}+{offset}"))
        };
        date_or_time(text).or_else(with_plus).ok_or(TimestampError)
    }

    /// The Unix time in milliseconds.
    #[must_use]
    pub fn as_millis(self) -> i64 {
        self.0.as_millisecond()
    }

    /// The Unix time in whole seconds, or 0 before 1970.
    #[must_use]
    pub fn as_unix_seconds(self) -> u64 {
        u64::try_from(self.0.as_second()).unwrap_or(0)
    }

    /// The date in UTC.
    pub(crate) fn date(self) -> jiff::civil::Date {
        jiff::tz::Offset::UTC.to_datetime(self.0).date()
    }

    /// Adds milliseconds, up to the maximum timestamp.
    #[must_use]
    pub fn plus_millis(self, millis: u32) -> Self {
        self.0.checked_add(jiff::SignedDuration::from_millis(millis.into())).map_or(Self(jiff::Timestamp::MAX), Self)
    }

    /// Adds seconds, up to the maximum timestamp.
    #[must_use]
    pub fn plus_seconds(self, seconds: u32) -> Self {
        self.0.checked_add(jiff::SignedDuration::from_secs(seconds.into())).map_or(Self(jiff::Timestamp::MAX), Self)
    }
}

/// Parses a date, or a time with an offset. A time after the last timestamp becomes the last one.
fn date_or_time(text: &str) -> Option<Timestamp> {
    let pieces = Pieces::parse(text).ok()?;
    let offset = match (pieces.time(), pieces.to_numeric_offset()) {
        (None, None) => Offset::UTC,
        (Some(_), Some(offset)) => offset,
        _ => return None,
    };
    let time = pieces.date().to_datetime(pieces.time().unwrap_or_default());
    match offset.to_timestamp(time) {
        Ok(timestamp) => Timestamp::from_millis(timestamp.as_millisecond()).ok(),
        Err(_) => (time.year() > 0).then_some(Timestamp(jiff::Timestamp::MAX)),
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.3}", self.0)
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Timestamp {
    type Err = TimestampError;

    fn from_str(text: &str) -> Result<Self, TimestampError> {
        let timestamp: jiff::Timestamp = text.parse().map_err(|_| TimestampError)?;
        Self::from_millis(timestamp.as_millisecond())
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

/// The value is not a valid timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an ISO 8601 date and time with an offset, such as 2026-03-01T03:30:00.000Z")]
pub struct TimestampError;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_timestamp_has_milliseconds_and_z() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (1_700_000_000_007, "2023-11-14T22:13:20.007Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
        ] {
            let timestamp = Timestamp::from_millis(millis).unwrap();
            assert_eq!((timestamp.to_string(), format!("{timestamp:?}")), (text.to_owned(), text.to_owned()));
            assert_eq!(text.parse::<Timestamp>().unwrap(), timestamp);
        }
    }

    #[test]
    fn parsing_truncates_to_milliseconds() {
        let timestamp: Timestamp = "2026-03-01T03:30:00.1239Z".parse().unwrap();
        assert_eq!(timestamp.to_string(), "2026-03-01T03:30:00.123Z");
    }

    #[test]
    fn an_input_is_a_time_with_an_offset_or_a_date_in_utc() {
        for (text, parsed) in [
            ("2026-03-01", Some("2026-03-01T00:00:00.000Z")),
            ("2026-03-01T09:30:00+06:00", Some("2026-03-01T03:30:00.000Z")),
            ("2026-03-01T09:30:00 06:00", Some("2026-03-01T03:30:00.000Z")),
            ("2026-03-01 09:30 0600", Some("2026-03-01T03:30:00.000Z")),
            ("2026-03-01T09:30:00-06:00", Some("2026-03-01T15:30:00.000Z")),
            ("2026-03-01T00:00:00.5Z", Some("2026-03-01T00:00:00.500Z")),
            (" 2026-03-01\n", Some("2026-03-01T00:00:00.000Z")),
            ("9999-12-31", Some("9999-12-30T22:00:00.999Z")),
            ("9999-12-31T23:59:59.999+06:00", Some("9999-12-30T22:00:00.999Z")),
            ("9999-12-31T23:59:59 06:00", Some("9999-12-30T22:00:00.999Z")),
            ("0001-01-01T00:00:00Z", Some("0001-01-01T00:00:00.000Z")),
            ("-009999-01-01", None),
            ("2026-03-01T09:30:00", None),
            ("2026-03-01 09:30", None),
            ("2026-03-01 06:00", None),
            ("2026-02-29", None),
            ("10000-01-01", None),
            ("01.03.2026", None),
            ("1764150000", None),
            ("today", None),
            ("", None),
        ] {
            let found = Timestamp::from_input(text).ok().map(|timestamp| timestamp.to_string());
            assert_eq!(found.as_deref(), parsed, "{text}");
        }
    }

    #[test]
    fn seconds_are_whole_and_count_from_1970() {
        for (millis, seconds) in [(-1, 0), (0, 0), (999, 0), (1000, 1), (1_700_000_000_999, 1_700_000_000)] {
            assert_eq!(Timestamp::from_millis(millis).unwrap().as_unix_seconds(), seconds, "{millis}");
        }
    }

    #[test]
    fn adding_stops_at_the_last_moment_of_the_calendar() {
        let start = Timestamp::from_millis(1_700_000_000_007).unwrap();
        assert_eq!(start.plus_millis(5).as_millis(), 1_700_000_000_012);
        assert_eq!(start.plus_seconds(5).as_millis(), 1_700_000_005_007);
        let last: Timestamp = "9999-12-30T22:00:00Z".parse().unwrap();
        assert_eq!(last.plus_seconds(u32::MAX), last.plus_seconds(u32::MAX).plus_millis(u32::MAX));
    }
}
