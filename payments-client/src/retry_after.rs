//! Parses `Retry-After` (RFC 9110, section 10.2.3): seconds or an HTTP date.

use std::time::Duration;

use jiff::{Timestamp, fmt::rfc2822::DateTimeParser};
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};

/// How long the server asks to wait. A date is relative to the response's `Date`, so that a wrong local clock does not
/// matter, or to `now` without one.
pub(crate) fn retry_after(headers: &HeaderMap, now: Timestamp) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        // A number that overflows is a very long time.
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::MAX)));
    }
    let date = |text: &str| DateTimeParser::new().parse_timestamp(text).ok();
    let sent = headers.get(DATE).and_then(|value| value.to_str().ok()).and_then(date).unwrap_or(now);
    Some(Duration::try_from(date(text)?.duration_since(sent)).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn retry_after_parses_seconds_and_dates() {
        let now: Timestamp = "2026-03-01T00:00:00Z".parse().unwrap();
        for (text, date, seconds) in [
            ("7", None, Some(7)),
            (" 0 ", None, Some(0)),
            ("99999999999999999999999", None, Some(u64::MAX)),
            ("Sun, 01 Mar 2026 00:00:09 GMT", None, Some(9)),
            ("Sun, 01 Mar 2026 01:00:09 GMT", Some("Sun, 01 Mar 2026 01:00:00 GMT"), Some(9)),
            ("Sat, 28 Feb 2026 00:00:00 GMT", None, Some(0)),
            ("-1", None, None),
            ("soon", None, None),
            ("", None, None),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(RETRY_AFTER, text.parse().unwrap());
            if let Some(date) = date {
                headers.insert(DATE, date.parse().unwrap());
            }
            assert_eq!(retry_after(&headers, now), seconds.map(Duration::from_secs), "{text:?}");
        }
        assert_eq!(retry_after(&HeaderMap::new(), now), None);
    }
}
