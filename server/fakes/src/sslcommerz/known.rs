//! The credentials, limits, rates and fees of the fake.

/// The valid store id.
pub const STORE_ID: &str = "testbox";
/// The valid store password.
pub const STORE_PASSWORD: &str = "testbox@ssl";

/// The smallest payment, in minor units of taka.
pub const SMALLEST: u64 = 1_000;
/// The largest payment, in minor units of taka.
pub const LARGEST: u64 = 50_000_000;

/// The currencies, each with the ten-thousandths of a taka for one unit.
const RATES: [(&str, u64); 21] = [
    ("AED", 327_000),
    ("AUD", 790_000),
    ("BDT", 10_000),
    ("CAD", 870_000),
    ("EUR", 1_310_000),
    ("GBP", 1_520_000),
    ("IDR", 75),
    ("INR", 14_200),
    ("JPY", 8_000),
    ("LKR", 4_000),
    ("MVR", 78_000),
    ("MYR", 270_000),
    ("NGN", 790),
    ("NPR", 8_900),
    ("OMR", 3_120_000),
    ("QAR", 330_000),
    ("SAR", 320_000),
    ("SEK", 114_000),
    ("SGD", 900_000),
    ("THB", 34_000),
    ("USD", 1_200_000),
];

/// The ten-thousandths of a taka for one unit of a currency.
pub(super) fn rate(currency: &str) -> Option<u64> {
    RATES.iter().find(|(known, _)| *known == currency).map(|(_, rate)| *rate)
}

/// What a payment is in taka, in minor units, rounded half up. `None` for an unknown currency.
#[must_use]
pub fn in_taka(currency: &str, minor: u64) -> Option<u64> {
    Some((minor.checked_mul(rate(currency)?)? + 5_000) / 10_000)
}

/// What the store gets of a payment: 97.5 %, rounded half up, in minor units of taka.
#[must_use]
pub const fn store_amount(taka_minor: u64) -> u64 {
    (taka_minor * 975 + 500) / 1_000
}
