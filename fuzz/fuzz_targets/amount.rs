//! Compares the parsed amount with the exact value that a slow model computes.
#![no_main]

use libfuzzer_sys::fuzz_target;
use payments_core::{Amount, AmountError};

/// The model shifts the decimal point in a string of digits.
fn model(text: &str) -> Result<u64, AmountError> {
    // serde_json decides whether the text is a number.
    let number: serde_json::Result<Box<serde_json::value::RawValue>> = serde_json::from_str(text);
    let is_number = number.is_ok_and(|raw| raw.get() == text && text.starts_with(|c: char| c == '-' || c.is_ascii_digit()));
    if !is_number {
        return Err(AmountError::NotANumber);
    }
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let negative = mantissa.starts_with('-');
    let mantissa = mantissa.trim_start_matches('-');
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if digits.bytes().all(|digit| digit == b'0') {
        return Ok(0);
    }
    if negative {
        return Err(AmountError::Negative);
    }
    let exponent: i128 = match exponent.parse() {
        Ok(exponent) => exponent,
        Err(_) if exponent.starts_with('-') => -1_000_000_000,
        Err(_) => 1_000_000_000,
    };
    let point = whole.len() as i128 + exponent.clamp(-1_000_000_000, 1_000_000_000) + 2;
    let significant = digits.trim_end_matches('0');
    if (significant.len() as i128) > point {
        return Err(AmountError::TooPrecise);
    }
    let leading = digits.len() - digits.trim_start_matches('0').len();
    if point - leading as i128 > 14 {
        return Err(AmountError::TooLarge);
    }
    let mut hundredths = significant.to_owned();
    while (hundredths.len() as i128) < point {
        hundredths.push('0');
    }
    Ok(hundredths.parse().unwrap())
}

fuzz_target!(|text: &str| {
    let got = text.parse::<Amount>();
    assert_eq!(got.map(Amount::as_minor), model(text), "{text}");
    if let Ok(amount) = got {
        assert_eq!(amount.to_string().parse(), Ok(amount));
        assert!(amount <= Amount::MAX);
    }
});
