//! Amounts as gateways write them: as decimals, with or without trailing zeros.

use payments_core::Amount;

/// Parses `15`, `15.5` and `15.00`, and also `15.000`.
pub(super) fn decimal(text: &str) -> Option<Amount> {
    let text = match text.split_once('.') {
        Some(_) => text.trim_end_matches('0').trim_end_matches('.'),
        None => text,
    };
    text.parse().ok()
}

/// Writes `15.00`.
pub(super) fn with_two_decimals(amount: Amount) -> String {
    format!("{}.{:02}", amount.as_minor() / 100, amount.as_minor() % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_compare_as_decimals() {
        for (text, minor) in [
            ("15", 1500),
            ("15.0", 1500),
            ("15.00", 1500),
            ("15.50", 1550),
            ("0.01", 1),
            ("0.07", 7),
            ("100", 10_000),
            ("150", 15_000),
            ("145.5", 14_550),
            ("10.00", 1_000),
            ("10.000", 1_000),
        ] {
            assert_eq!(decimal(text), Some(Amount::from_minor(minor)), "{text}");
        }
        for text in ["", "15.001", "1.005", "-15", "-1", "+1", "1,000", "x"] {
            assert_eq!(decimal(text), None, "{text}");
        }
        assert_eq!(with_two_decimals(Amount::from_minor(1500)), "15.00");
        assert_eq!(with_two_decimals(Amount::from_minor(7)), "0.07");
    }
}
