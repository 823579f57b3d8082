//! Dhaka time, which is UTC+6 all year.

/// `2020-01-05 22:58:21`.
pub(super) fn dhaka(seconds: u64) -> String {
    let local = seconds + 6 * 3600;
    let (hour, minute, second) = (local / 3600 % 24, local / 60 % 60, local % 60);
    // A year that begins on 1 March has its leap day at the end; an era is 400 years.
    let days = local / 86_400 + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = if month < 10 { (year, month + 3) } else { (year + 1, month - 9) };
    format!("{:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}", era * 400 + year)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_of_dhaka() {
        for (seconds, shown) in [
            (0, "1970-01-01 06:00:00"),
            (951_782_399, "2000-02-29 05:59:59"),
            (1_578_243_501, "2020-01-05 22:58:21"),
            (1_735_667_999, "2024-12-31 23:59:59"),
            (1_735_668_000, "2025-01-01 00:00:00"),
        ] {
            assert_eq!(dhaka(seconds), shown);
        }
    }
}
