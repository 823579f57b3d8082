//! Times in the forms that bKash and SNS use.

/// A date and time of day.
struct Civil {
    year: u64,
    month: u64,
    day: u64,
    time: [u64; 3],
}

/// The date and time of day of seconds since 1970, in UTC.
fn civil(seconds: u64) -> Civil {
    // Years start in March here, so that a leap day ends one. An era has 400 years.
    let days = seconds / 86_400 + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_of_year = (5 * of_year + 2) / 153;
    let month = if month_of_year < 10 { month_of_year + 3 } else { month_of_year - 9 };
    Civil {
        year: era * 400 + year_of_era + u64::from(month <= 2),
        month,
        day: of_year - (153 * month_of_year + 2) / 5 + 1,
        time: [seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60],
    }
}

const DHAKA_SECONDS: u64 = 6 * 3_600;

/// A time in a reply, in Bangladesh's time: `2026-01-01T12:00:00:000 GMT+0600`.
pub(super) fn in_reply(seconds: u64) -> String {
    let Civil { year, month, day, time: [hour, minute, second] } = civil(seconds + DHAKA_SECONDS);
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}:000 GMT+0600")
}

/// A time in a notice's message, in Bangladesh's time: `20260101120000`.
pub(super) fn in_message(seconds: u64) -> String {
    let Civil { year, month, day, time: [hour, minute, second] } = civil(seconds + DHAKA_SECONDS);
    format!("{year}{month:02}{day:02}{hour:02}{minute:02}{second:02}")
}

/// A time in a notice of SNS: `2026-01-01T06:00:00.000Z`.
pub(super) fn in_notice(seconds: u64) -> String {
    let Civil { year, month, day, time: [hour, minute, second] } = civil(seconds);
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.000Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_the_gateway_writes_them() {
        assert_eq!(in_reply(1_767_247_200), "2026-01-01T12:00:00:000 GMT+0600");
        assert_eq!(in_message(1_709_229_599), "20240229235959");
        assert_eq!(in_notice(4_107_542_400), "2100-03-01T00:00:00.000Z");
    }
}
