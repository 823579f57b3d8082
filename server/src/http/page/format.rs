//! How the pages write amounts, times, hosts and phone numbers.

use payments_core::{Amount, Balance, CheckoutSession, Currency, MobileNumber, Timestamp};
use url::Url;

use super::words;
use crate::http::language::Language;

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

/// Formats a time in words, to the minute, with its [`zone`].
pub(in crate::http) fn moment(time: Timestamp, currency: Currency, language: Language) -> String {
    format!("{} ({})", minute(time, currency, language), zone(currency, language))
}

/// The name of a currency's time zone: Dhaka's for taka, which is UTC+6 all year, UTC for dollars.
pub(in crate::http) fn zone(currency: Currency, language: Language) -> &'static str {
    language.say(match currency {
        Currency::Bdt => words::DHAKA,
        Currency::Usd | Currency::Other(_) => words::UTC,
    })
}

/// Formats a time in words, to the minute, in the currency's time zone.
pub(in crate::http) fn minute(time: Timestamp, currency: Currency, language: Language) -> String {
    let hours = match currency {
        Currency::Bdt => 6,
        Currency::Usd | Currency::Other(_) => 0,
    };
    let text = time.plus_seconds(hours * 60 * 60).to_string();
    let number = |part: std::ops::Range<usize>| text.get(part).unwrap_or_default();
    let month = number(5..7).parse::<usize>().ok().and_then(|month| month.checked_sub(1));
    let month = month.and_then(|month| language.say(words::MONTHS).split(' ').nth(month)).unwrap_or_default();
    let (day, year, minute) = (number(8..10).trim_start_matches('0'), number(0..4), number(11..16));
    digits(format!("{day} {month} {year}, {minute}"), language)
}

/// Writes a number, or a text with numbers, in the digits of a language.
pub(in crate::http) fn digits(number: impl ToString, language: Language) -> String {
    let text = number.to_string();
    let in_bangla =
        |char: char| char.to_digit(10).and_then(|digit| char::from_u32(u32::from('০') + digit)).unwrap_or(char);
    match language {
        Language::English => text,
        Language::Bangla => text.chars().map(in_bangla).collect(),
    }
}

/// Formats an amount: ৳1,250.00 or $12.50; in Bangla ৳১২,৩৪,৫৬৭.০০, with a comma after every two digits above the thousands.
pub(in crate::http) fn money(amount: Amount, currency: Currency, language: Language) -> String {
    signed(Balance::from_minor(amount.as_minor().into()), currency, language)
}

/// The same of a balance, with a minus before one that is negative.
pub(in crate::http) fn signed(balance: Balance, currency: Currency, language: Language) -> String {
    let (minus, minor) = (if balance.as_minor() < 0 { "−" } else { "" }, balance.as_minor().unsigned_abs());
    let sign = match currency {
        Currency::Bdt => "৳",
        Currency::Usd => "$",
        Currency::Other(ref code) => code.as_str(),
    };
    let group = match language {
        Language::English => 3,
        Language::Bangla => 2,
    };
    let mut whole = (minor / 100).to_string();
    let last_group = whole.len().saturating_sub(3);
    for comma in (1..=last_group).rev().step_by(group) {
        whole.insert(comma, ',');
    }
    digits(format!("{minus}{sign}{whole}.{:02}", minor % 100), language)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_has_the_currencys_sign_and_grouped_digits() {
        for (text, currency, english, bangla) in [
            ("1250", Currency::Bdt, "৳1,250.00", "৳১,২৫০.০০"),
            ("12.5", Currency::Usd, "$12.50", "$১২.৫০"),
            ("0.01", Currency::Usd, "$0.01", "$০.০১"),
            ("999", Currency::Bdt, "৳999.00", "৳৯৯৯.০০"),
            ("100000", Currency::Bdt, "৳100,000.00", "৳১,০০,০০০.০০"),
            ("999999999999.99", Currency::Bdt, "৳999,999,999,999.99", "৳৯,৯৯,৯৯,৯৯,৯৯,৯৯৯.৯৯"),
        ] {
            assert_eq!(money(text.parse().unwrap(), currency, Language::English), english);
            assert_eq!(money(text.parse().unwrap(), currency, Language::Bangla), bangla);
        }
        assert_eq!(signed(Balance::from_minor(-5), Currency::Bdt, Language::English), "−৳0.05");
    }

    #[test]
    fn a_moment_is_in_words_and_in_dhaka_time_only_for_taka() {
        let time = Timestamp::from_millis(1_700_000_000_000).unwrap();
        assert_eq!(time.to_string(), "2023-11-14T22:13:20.000Z");
        for (currency, language, shown) in [
            (Currency::Bdt, Language::English, "15 November 2023, 04:13 (Dhaka time)"),
            (Currency::Bdt, Language::Bangla, "১৫ নভেম্বর ২০২৩, ০৪:১৩ (ঢাকার সময়)"),
            (Currency::Usd, Language::English, "14 November 2023, 22:13 (UTC)"),
            (Currency::Usd, Language::Bangla, "১৪ নভেম্বর ২০২৩, ২২:১৩ (ইউটিসি)"),
        ] {
            assert_eq!(moment(time, currency, language), shown);
        }
    }
}
