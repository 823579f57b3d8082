//! The parameters of payouts, and of where they go.

use std::fmt;

use serde::Serialize;

use crate::{
    Amount, Currency, DestinationKind, ErrorCode, MobileNumber, PayoutDestination, Timestamp, create_payment,
    text::is_one_line,
    unknown_fields::UnknownFields,
    validation::{Fields, Invalid},
};

/// The parameters of a payout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CreatePayout {
    /// The amount. Default: all that is available.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amount: Option<Amount>,
    /// The currency.
    pub currency: Currency,
}

impl CreatePayout {
    /// Pays out all that is available in a currency.
    #[must_use]
    pub const fn all(currency: Currency) -> Self {
        Self { amount: None, currency }
    }

    /// Pays out an amount.
    #[must_use]
    pub const fn of(amount: Amount, currency: Currency) -> Self {
        Self { amount: Some(amount), currency }
    }

    /// Parses a request body with `currency` and the optional `amount`. Refuses any other field, and an `amount` that is `null`:
    /// such a request must not pay out everything.
    ///
    /// # Errors
    /// One sentence per invalid field.
    pub fn from_json(body: &[u8]) -> Result<Self, Invalid> {
        let mut fields = Fields::of_body(body)?.refusing_unknown();
        let amount = fields.has("amount").then(|| create_payment::amount(&mut fields));
        let currency = currency(&mut fields);
        fields.finish(Self { amount, currency })
    }
}

/// Where payouts in a currency go, with the whole number. `Debug` omits the number.
#[derive(Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SetDestination {
    /// The currency of the payouts.
    pub currency: Currency,
    /// A bank account.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bank_account: Option<BankAccount>,
    /// A mobile wallet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wallet: Option<Wallet>,
}

/// A bank account.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct BankAccount {
    /// Who holds it; at most 100 characters.
    pub holder: String,
    /// For BDT the bank branch's routing number of nine digits, for USD the bank's SWIFT code.
    pub bank: String,
    /// The number: for BDT 5 to 20 digits, for USD up to 34 letters and digits.
    pub number: String,
}

/// A mobile wallet, for BDT.
#[derive(Clone, PartialEq, Eq, Serialize)]
pub struct Wallet {
    /// Who holds it; at most 100 characters.
    pub holder: String,
    /// The provider: `bkash`, `nagad`, `rocket` or `upay`.
    pub provider: String,
    /// The Bangladeshi mobile number.
    pub number: String,
}

/// The providers of wallets, each with its name in English and in Bangla.
const PROVIDERS: [(&str, [&str; 2]); 4] = [
    ("bkash", ["bKash", "বিকাশ"]),
    ("nagad", ["Nagad", "নগদ"]),
    ("rocket", ["Rocket", "রকেট"]),
    ("upay", ["Upay", "উপায়"]),
];

/// The name of a wallet's provider in English and in Bangla.
#[must_use]
pub fn provider_title(provider: &str) -> Option<[&'static str; 2]> {
    PROVIDERS.iter().find(|(name, _)| *name == provider).map(|(_, title)| *title)
}

const MAX_HOLDER_CHARS: usize = 100;

impl fmt::Debug for SetDestination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SetDestination").field("currency", &self.currency).finish_non_exhaustive()
    }
}

impl SetDestination {
    /// Payouts in a currency go to a bank account.
    #[must_use]
    pub const fn bank_account(currency: Currency, account: BankAccount) -> Self {
        Self { currency, bank_account: Some(account), wallet: None }
    }

    /// Payouts in taka go to a mobile wallet.
    #[must_use]
    pub const fn wallet(wallet: Wallet) -> Self {
        Self { currency: Currency::Bdt, bank_account: None, wallet: Some(wallet) }
    }

    /// Parses a request body with `currency` and one of `bankAccount` (`holder`, `bank`, `number`) and `wallet` (`holder`,
    /// `provider`, `number`). Refuses any other field.
    ///
    /// # Errors
    /// One sentence per invalid field.
    pub fn from_json(body: &[u8]) -> Result<Self, Invalid> {
        let mut fields = Fields::of_body(body)?.refusing_unknown();
        let currency = currency(&mut fields);
        let (has_account, has_wallet) = (fields.has("bankAccount"), fields.has("wallet"));
        if has_account == has_wallet {
            let error = "must be given, or wallet: one of them";
            fields.error("bankAccount", ErrorCode::FieldMissing, error, ());
        }
        if has_wallet && currency == Currency::Usd {
            fields.error("wallet", ErrorCode::FieldInvalid, "takes payouts in BDT only; name a bankAccount", ());
        }
        let bank_account = has_account.then(|| fields.nested("bankAccount", |fields| bank_account(fields, currency)));
        let wallet = has_wallet.then(|| fields.nested("wallet", wallet));
        fields.finish(Self { currency, bank_account, wallet })
    }

    /// The destination without the whole number, and the whole number. `None` if it names neither an account nor a wallet.
    #[must_use]
    pub fn masked(self, created_at: Timestamp) -> Option<(PayoutDestination, String)> {
        let (kind, holder, institution, number) = match (self.bank_account, self.wallet) {
            (Some(it), _) => (DestinationKind::BankAccount, it.holder, it.bank, it.number),
            (None, Some(it)) => (DestinationKind::Wallet, it.holder, it.provider, it.number),
            (None, None) => return None,
        };
        let last4 = number.chars().skip(number.chars().count().saturating_sub(4)).collect();
        let unknown = UnknownFields::default();
        Some((PayoutDestination { kind, holder, institution, last4, created_at, unknown }, number))
    }
}

pub(crate) fn currency(fields: &mut Fields<'_>) -> Currency {
    let text = fields.text("currency", 16);
    match text.map(|text| text.parse()) {
        Some(Ok(currency)) => currency,
        Some(Err(_)) => fields.error("currency", ErrorCode::CurrencyInvalid, "must be one of BDT, USD", Currency::Bdt),
        None => fields.error("currency", ErrorCode::FieldMissing, "must be given: BDT or USD", Currency::Bdt),
    }
}

fn bank_account(fields: &mut Fields<'_>, currency: Currency) -> BankAccount {
    let holder = holder(fields);
    let (bank, number) = match currency {
        Currency::Bdt => (
            checked(fields, "bank", "must be the routing number of nine digits", |it| is_digits(it, 9..=9)),
            checked(fields, "number", "must be 5 to 20 digits", |it| is_digits(it, 5..=20)),
        ),
        Currency::Usd | Currency::Other(_) => (
            checked(fields, "bank", "must be the SWIFT code of 8 or 11 capital letters and digits", |it| {
                matches!(it.len(), 8 | 11) && is_capital(it)
            }),
            checked(fields, "number", "must be up to 34 capital letters and digits", |it| {
                (4..=34).contains(&it.len()) && is_capital(it)
            }),
        ),
    };
    BankAccount { holder, bank, number }
}

fn wallet(fields: &mut Fields<'_>) -> Wallet {
    let holder = holder(fields);
    let error = format!("must be one of {}", PROVIDERS.map(|(name, _)| name).join(", "));
    let provider = checked(fields, "provider", &error, |it| provider_title(it).is_some());
    let number = match fields.text("number", 64).map(|text| text.parse::<MobileNumber>()) {
        Some(Ok(number)) => number.as_str().to_owned(),
        Some(Err(error)) => fields.error("number", ErrorCode::PhoneNumberInvalid, error, String::new()),
        None => fields.error("number", ErrorCode::FieldMissing, "must be given", String::new()),
    };
    Wallet { holder, provider, number }
}

fn holder(fields: &mut Fields<'_>) -> String {
    checked(fields, "holder", "must be one line of 1 to 100 characters", |it| {
        is_one_line(it) && (1..=MAX_HOLDER_CHARS).contains(&it.trim().chars().count())
    })
}

/// A required text without spaces around it.
fn checked(fields: &mut Fields<'_>, name: &'static str, error: &str, is_valid: impl Fn(&str) -> bool) -> String {
    match fields.text(name, 512) {
        Some(text) if is_valid(text.trim()) => text.trim().to_owned(),
        Some(_) => fields.error(name, ErrorCode::FieldInvalid, error, String::new()),
        None => fields.error(name, ErrorCode::FieldMissing, "must be given", String::new()),
    }
}

fn is_digits(text: &str, lengths: std::ops::RangeInclusive<usize>) -> bool {
    lengths.contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_capital(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_payout_needs_a_currency_and_takes_an_amount() {
        let parse = |body: &str| CreatePayout::from_json(body.as_bytes());
        assert_eq!(parse(r#"{"currency": "BDT"}"#).unwrap(), CreatePayout::all(Currency::Bdt));
        let some = CreatePayout::of(Amount::from_minor(1_050), Currency::Usd);
        assert_eq!(parse(r#"{"currency": "USD", "amount": 10.5}"#).unwrap(), some);
        for body in [
            "",
            "{}",
            r#"{"currency": "EUR"}"#,
            r#"{"currency": "BDT", "amount": null}"#,
            r#"{"currency": "BDT", "amount": 0}"#,
            r#"{"currency": "BDT", "all": true}"#,
        ] {
            assert!(parse(body).is_err(), "{body}");
        }
    }

    fn parse(currency: &str, name: &str, holder: &str, at: &str, number: &str) -> Result<SetDestination, Invalid> {
        let at_name = if name == "wallet" { "provider" } else { "bank" };
        let body = json!({"currency": currency, name: {"holder": holder, at_name: at, "number": number}});
        SetDestination::from_json(body.to_string().as_bytes())
    }

    #[test]
    fn a_destination_keeps_its_number_apart() {
        for (currency, name, at, number, kept, last4) in [
            ("BDT", "bankAccount", "010271234", "1234567890123", "1234567890123", "0123"),
            ("BDT", "wallet", "bkash", "+880 1770-618575", "01770618575", "8575"),
            ("USD", "bankAccount", "DBBLBDDH", "GB29NWBK60161331926819", "GB29NWBK60161331926819", "6819"),
        ] {
            let destination = parse(currency, name, " Karim Stores ", at, number).unwrap();
            assert!(!format!("{destination:?}").contains(&kept[2..]));
            let (masked, whole) = destination.masked(Timestamp::UNIX_EPOCH).unwrap();
            assert_eq!((masked.holder.as_str(), masked.institution.as_str()), ("Karim Stores", at));
            assert_eq!((masked.last4.as_str(), whole.as_str()), (last4, kept));
            assert!(!serde_json::to_string(&masked).unwrap().contains(&kept[..5]));
        }
    }

    #[test]
    fn what_no_bank_or_wallet_has_is_refused_by_its_field() {
        for (currency, name, holder, at, number, expected) in [
            (
                "BDT",
                "bankAccount",
                "Karim",
                "01027123",
                "12345",
                "bankAccount.bank must be the routing number of nine digits",
            ),
            ("BDT", "bankAccount", "Karim", "010271234", "12a45", "bankAccount.number must be 5 to 20 digits"),
            (
                "BDT",
                "bankAccount",
                "Ka\nrim",
                "010271234",
                "12345",
                "bankAccount.holder must be one line of 1 to 100 characters",
            ),
            (
                "BDT",
                "bankAccount",
                "",
                "010271234",
                "12345",
                "bankAccount.holder must be one line of 1 to 100 characters",
            ),
            (
                "BDT",
                "wallet",
                "Karim",
                "paypal",
                "01770618575",
                "wallet.provider must be one of bkash, nagad, rocket, upay",
            ),
            (
                "BDT",
                "wallet",
                "Karim",
                "nagad",
                "0177",
                "wallet.number must be a Bangladeshi mobile number, such as 01712345678",
            ),
            ("USD", "wallet", "Karim", "nagad", "01770618575", "wallet takes payouts in BDT only; name a bankAccount"),
            (
                "USD",
                "bankAccount",
                "Karim",
                "dbblbddh",
                "12345",
                "bankAccount.bank must be the SWIFT code of 8 or 11 capital letters and digits",
            ),
        ] {
            let error = parse(currency, name, holder, at, number).unwrap_err();
            assert_eq!(error.into_sentences(), [expected], "{currency} {name}");
        }
        for body in [
            r#"{"currency": "BDT"}"#,
            r#"{"currency": "BDT", "bankAccount": {}, "wallet": {}}"#,
            r#"{"currency": "BDT", "bankAccount": 5}"#,
        ] {
            assert!(SetDestination::from_json(body.as_bytes()).is_err(), "{body}");
        }
    }
}
