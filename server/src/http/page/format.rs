//! How the checkout page writes amounts, times, hosts and phone numbers.

use payments_core::{Amount, CheckoutSession, Currency, MobileNumber, Timestamp};
use url::Url;

/// Returns the host of a URL, with a port other than the scheme's default. The host is in ASCII, against homographs, and
/// without a user name.
pub(super) fn host_of(address: &str) -> Option<String> {
    let url = Url::parse(address).ok()?;
    let host = url.host_str()?;
    Some(url.port().map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")))
}

/// The shop's phone number for the customer, if it is a valid mobile number.
pub(super) fn known_phone(session: &CheckoutSession) -> String {
    let number = session.customer_phone.as_deref().and_then(|text| text.parse::<MobileNumber>().ok());
    number.map(|number| number.as_str().to_owned()).unwrap_or_default()
}

/// Formats a time in Dhaka's time zone, UTC+6 all year, to the minute.
pub(super) fn in_dhaka(time: Timestamp) -> String {
    let text = time.plus_seconds(6 * 60 * 60).to_string().replace('T', " ");
    text.chars().take("2023-11-15 04:13".len()).collect()
}

/// Formats an amount: ৳1,250.00 or $12.50. Digits are Latin in both languages, as on the gateways' pages, so that
/// customers can compare.
pub(super) fn money(amount: Amount, currency: Currency) -> String {
    let sign = match currency {
        Currency::Bdt => '৳',
        Currency::Usd => '$',
    };
    let mut digits = (amount.as_minor() / 100).to_string();
    for comma in (1..digits.len().saturating_sub(2)).rev().step_by(3) {
        digits.insert(comma, ',');
    }
    format!("{sign}{digits}.{:02}", amount.as_minor() % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_has_the_currencys_sign_and_grouped_digits() {
        for (text, currency, shown) in [
            ("1250", Currency::Bdt, "৳1,250.00"),
            ("12.5", Currency::Usd, "$12.50"),
            ("0.01", Currency::Usd, "$0.01"),
            ("999", Currency::Bdt, "৳999.00"),
            ("999999999999.99", Currency::Bdt, "৳999,999,999,999.99"),
        ] {
            assert_eq!(money(text.parse().unwrap(), currency), shown);
        }
    }

    #[test]
    fn the_receipt_shows_dhaka_time() {
        let time = Timestamp::from_millis(1_700_000_000_000).unwrap();
        assert_eq!(
            (time.to_string().as_str(), in_dhaka(time).as_str()),
            ("2023-11-14T22:13:20.000Z", "2023-11-15 04:13")
        );
    }
}
