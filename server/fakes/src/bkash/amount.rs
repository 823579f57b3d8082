//! Amounts, as decimals.

/// Reads a decimal above zero, with at most two decimals, as minor units.
pub(super) fn minor(text: &str) -> Option<u64> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || decimals.len() > 2 || !digits(whole) || !digits(decimals) {
        return None;
    }
    let minor = format!("{whole}{decimals:0<2}").parse().ok()?;
    (minor > 0).then_some(minor)
}

/// Minor units as a decimal with two digits after its point.
pub(super) fn decimal(minor: u64) -> String {
    format!("{}.{:02}", minor / 100, minor % 100)
}

/// Whether a decimal has two digits after its point.
pub(super) fn has_two_decimals(text: &str) -> bool {
    text.split_once('.').is_some_and(|(_, decimals)| decimals.len() == 2)
}
