//! Decimals.

/// Reads a decimal(10,2) as minor units.
pub(super) fn minor(text: &str) -> Option<u64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || whole.len() > 8 || decimals.len() > 2 || !digits(whole) || !digits(decimals) {
        return None;
    }
    format!("{whole}{decimals:0<2}").parse().ok()
}

/// With two decimals: `10.00`.
pub(super) fn two_decimals(minor: u64) -> String {
    format!("{}.{:02}", minor / 100, minor % 100)
}

/// Without zeros at the end: `150`, `145.5`.
pub(super) fn short(minor: u64) -> String {
    two_decimals(minor).trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_read_and_written_with_up_to_two_places() {
        for (text, read) in
            [("150", 15_000), ("145.5", 14_550), ("10.00", 1_000), ("0.07", 7), ("99999999.99", 9_999_999_999)]
        {
            assert_eq!(minor(text), Some(read), "{text}");
        }
        for text in ["", ".5", "1.005", "-1", "+1", "1e3", "100000000", "1,000"] {
            assert_eq!(minor(text), None, "{text}");
        }
        assert_eq!([15_000, 14_550, 1_007, 100_000].map(short), ["150", "145.5", "10.07", "1000"]);
        assert_eq!(two_decimals(1_000), "10.00");
    }
}
