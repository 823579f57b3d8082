//! The parameters of a new payment.

use std::borrow::Cow;

use serde::Serialize;

use crate::{
    Amount, AmountError, Currency, Customer, Environment, ErrorCode, LineItem, Metadata, MetadataError, Money,
    WithoutSuccessUrl,
    validation::{Fields, Invalid},
    way_to_pay,
    web_url::{is_localhost, web_url, web_url_error},
};

const MAX_DESCRIPTION_BYTES: usize = 2000;
const MAX_REFERENCE_BYTES: usize = 255;
const MAX_URL_BYTES: usize = 2048;
/// The currency of a request that names none.
const DEFAULT_CURRENCY: Currency = Currency::Bdt;

/// The parameters of a new payment (API specification, "Create-payment parameters").
///
/// Give the money and both URLs first, and chain the rest:
///
/// ```
/// use payments_core::{CreatePayment, Customer, Money};
///
/// let params = CreatePayment::of(Money::taka(1250))
///     .success_url("https://shop.example/paid")
///     .cancel_url("https://shop.example/cart")
///     .customer(Customer { name: Some("Asha".into()), ..Customer::default() });
/// ```
///
/// A payment without one of its URLs does not compile:
///
/// ```compile_fail
/// # use payments_core::{CreatePayment, Money};
/// let params: CreatePayment = CreatePayment::of(Money::taka(1250)).success_url("https://shop.example/paid");
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct CreatePayment {
    /// The amount to pay; greater than zero.
    pub amount: Amount,
    /// Where to send the customer after a successful payment: an absolute URL, in live mode with `https` except for
    /// localhost.
    pub success_url: String,
    /// Where to send the customer otherwise; same rules.
    pub cancel_url: String,
    /// The currency.
    pub currency: Currency,
    /// The description on the checkout page; at most 2000 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The merchant's metadata.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metadata: Option<Metadata>,
    /// The customer; each field at most 320 bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub customer: Option<Customer>,
    /// The merchant's reference; at most 255 bytes. Default: the payment's id.
    #[serde(rename = "merchantTransactionId", skip_serializing_if = "Option::is_none")]
    pub merchant_transaction_id: Option<String>,
    /// Whether to refuse the payment if another payment of this developer and environment has its reference. Needs a
    /// reference.
    #[serde(rename = "merchantTransactionIdMustBeUnique", skip_serializing_if = "std::ops::Not::not")]
    pub merchant_transaction_id_must_be_unique: bool,
    /// The order's lines, which the checkout page and the receipt show; at most 50. They need not add up to the amount.
    #[serde(rename = "lineItems", skip_serializing_if = "Option::is_none")]
    pub line_items: Option<Vec<LineItem>>,
    /// The ways by which it can be paid, by their names or as `mfs` and `card`; at most 20. Default: all that its currency has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ways: Option<Vec<String>>,
}

impl CreatePayment {
    /// Begins parameters with the money to pay. Then set the success URL and the cancel URL.
    pub const fn of(money: Money) -> WithoutSuccessUrl {
        WithoutSuccessUrl { money }
    }

    pub(crate) fn with_urls(money: Money, success_url: String, cancel_url: String) -> Self {
        Self {
            amount: money.amount,
            success_url,
            cancel_url,
            currency: money.currency,
            description: None,
            metadata: None,
            customer: None,
            merchant_transaction_id: None,
            merchant_transaction_id_must_be_unique: false,
            line_items: None,
            ways: None,
        }
    }

    /// Sets the description on the checkout page.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }

    /// Sets the merchant's metadata.
    #[must_use]
    pub fn metadata(mut self, metadata: Metadata) -> Self {
        self.metadata = Some(metadata);
        self
    }

    /// Sets the customer.
    #[must_use]
    pub fn customer(mut self, customer: Customer) -> Self {
        self.customer = Some(customer);
        self
    }

    /// Sets the merchant's reference.
    #[must_use]
    pub fn merchant_transaction_id(mut self, reference: impl Into<String>) -> Self {
        self.merchant_transaction_id = Some(reference.into());
        self
    }

    /// Sets the merchant's reference, such as an order number. Refuses the payment with status 409 if another payment of this
    /// developer and environment has that reference. So an order is never paid twice, however old the first payment is.
    #[must_use]
    pub fn unique_merchant_transaction_id(self, reference: impl Into<String>) -> Self {
        Self { merchant_transaction_id_must_be_unique: true, ..self.merchant_transaction_id(reference) }
    }

    /// Sets the order's lines. The checkout page and the receipt show them to everybody who has the payment's address.
    #[must_use]
    pub fn line_items(mut self, lines: impl IntoIterator<Item = LineItem>) -> Self {
        self.line_items = Some(lines.into_iter().collect());
        self
    }

    /// Sets the ways by which it can be paid, by their names or as `mfs` and `card`.
    #[must_use]
    pub fn ways<S: Into<String>>(mut self, ways: impl IntoIterator<Item = S>) -> Self {
        self.ways = Some(ways.into_iter().map(Into::into).collect());
        self
    }

    /// Parses and validates a request body. Ignores unknown fields, except misspelt names of known fields.
    ///
    /// # Errors
    /// One sentence per invalid field.
    pub fn from_json(body: &[u8], environment: Environment) -> Result<Self, Invalid> {
        let mut fields = Fields::of_body(body)?.refusing_near_misses();
        let params = Self {
            amount: amount(&mut fields),
            success_url: redirect_url(&mut fields, "success_url", environment),
            cancel_url: redirect_url(&mut fields, "cancel_url", environment),
            currency: currency(&mut fields),
            description: fields.text("description", MAX_DESCRIPTION_BYTES),
            metadata: metadata(&mut fields),
            customer: Customer::read(&mut fields),
            merchant_transaction_id: fields
                .text("merchantTransactionId", MAX_REFERENCE_BYTES)
                .filter(|reference| !reference.is_empty()),
            merchant_transaction_id_must_be_unique: must_be_unique(&mut fields),
            line_items: LineItem::read_all(&mut fields),
            ways: way_to_pay::read_all(&mut fields),
        };
        // Databases do not index this character.
        let has_reference = params.merchant_transaction_id.as_ref().is_some_and(|reference| !reference.contains('\0'));
        if params.merchant_transaction_id_must_be_unique && !has_reference {
            let error = "must be given, without NUL, if it must be unique";
            fields.error("merchantTransactionId", ErrorCode::FieldMissing, error, ());
        }
        fields.finish(params)
    }
}

pub(crate) fn amount(fields: &mut Fields<'_>) -> Amount {
    amount_in(fields, "amount")
}

pub(crate) fn amount_in(fields: &mut Fields<'_>, name: &'static str) -> Amount {
    let Some(json) = fields.raw(name) else {
        return fields.error(name, ErrorCode::FieldMissing, AmountError::NotANumber, Amount::ZERO);
    };
    json.parse()
        .and_then(|amount| if amount == Amount::ZERO { Err(AmountError::NotANumber) } else { Ok(amount) })
        .unwrap_or_else(|error| fields.value_error(name, ErrorCode::AmountInvalid, error, Amount::ZERO))
}

pub(crate) fn currency(fields: &mut Fields<'_>) -> Currency {
    let Some(json) = fields.raw("currency") else { return DEFAULT_CURRENCY };
    let code = serde_json::from_str::<Cow<'_, str>>(json).ok();
    code.and_then(|code| code.parse().ok()).unwrap_or_else(|| {
        fields.error("currency", ErrorCode::CurrencyInvalid, crate::UnknownCurrency, DEFAULT_CURRENCY)
    })
}

fn must_be_unique(fields: &mut Fields<'_>) -> bool {
    let name = "merchantTransactionIdMustBeUnique";
    let Some(json) = fields.raw(name) else { return false };
    let error = "must be true or false";
    serde_json::from_str(json).unwrap_or_else(|_| fields.value_error(name, ErrorCode::FieldInvalid, error, false))
}

fn metadata(fields: &mut Fields<'_>) -> Option<Metadata> {
    let json = fields.raw("metadata")?;
    Metadata::new(json).map(Some).unwrap_or_else(|error| {
        let code = match error {
            MetadataError::NotAnObject | MetadataError::NotSerializable | MetadataError::HalfCharacter => {
                ErrorCode::FieldInvalid
            }
            MetadataError::TooLong | MetadataError::TooDeep => ErrorCode::MetadataTooLarge,
        };
        fields.error("metadata", code, error, None)
    })
}

/// Reads an absolute http(s) URL. Live mode requires https, except for localhost.
fn redirect_url(fields: &mut Fields<'_>, name: &'static str, environment: Environment) -> String {
    fields.required_text(name, MAX_URL_BYTES, |text| match web_url(text) {
        None => Err((ErrorCode::UrlInvalid, web_url_error(text))),
        Some(url) if environment == Environment::Live && url.scheme() != "https" && !is_localhost(&url) => {
            Err((ErrorCode::UrlNotHttps, "must use https in live mode (http is allowed for localhost)"))
        }
        Some(_) => Ok(()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const URLS: &str = r#""success_url":"https://a.example/ok","cancel_url":"https://a.example/no""#;

    fn errors(body: &str, environment: Environment) -> Vec<String> {
        CreatePayment::from_json(body.as_bytes(), environment).err().map(Invalid::into_sentences).unwrap_or_default()
    }

    #[test]
    fn an_amount_and_two_urls_make_a_payment() {
        let params =
            CreatePayment::from_json(format!(r#"{{"amount":750,{URLS}}}"#).as_bytes(), Environment::Live).unwrap();
        let expected =
            CreatePayment::of(Money::taka(750)).success_url("https://a.example/ok").cancel_url("https://a.example/no");
        assert_eq!(params, expected);
    }

    #[test]
    fn errors_name_every_invalid_field() {
        let body = r#"{"amount":"750","currency":"EUR","success_url":"/paid","metadata":[],"customer":{"email":5},
            "description":{},"merchantTransactionId":7}"#;
        assert_eq!(
            errors(body, Environment::Test),
            [
                "amount must be a positive number, without quotes",
                "success_url must be an absolute URL",
                "cancel_url must be given",
                "currency must be one of BDT, USD",
                "description must be a string",
                "metadata must be an object",
                "customer.email must be a string",
                "merchantTransactionId must be a string",
            ]
        );
    }

    #[test]
    fn a_unique_reference_must_be_given() {
        let body = |rest: &str| format!(r#"{{"amount":1,{URLS}{rest}}}"#);
        for (rest, expected) in [
            (r#","merchantTransactionIdMustBeUnique":false"#, None),
            (r#","merchantTransactionIdMustBeUnique":true,"merchantTransactionId":"A-17""#, None),
            (r#","merchantTransactionIdMustBeUnique":true"#, Some("merchantTransactionId must be given")),
            (
                r#","merchantTransactionIdMustBeUnique":true,"merchantTransactionId":"\u0000""#,
                Some("merchantTransactionId must be given"),
            ),
            (
                r#","merchantTransactionIdMustBeUnique":1"#,
                Some("merchantTransactionIdMustBeUnique must be true or false"),
            ),
        ] {
            let found = errors(&body(rest), Environment::Test);
            assert_eq!(found.len(), expected.iter().len(), "{found:?}");
            assert!(found.iter().zip(expected).all(|(found, expected)| found.starts_with(expected)), "{found:?}");
        }
        let params =
            CreatePayment::of(Money::taka(1)).success_url("https://a.example/ok").cancel_url("https://a.example/no");
        let sent = serde_json::to_string(&params.unique_merchant_transaction_id("A-17")).unwrap();
        let read = CreatePayment::from_json(sent.as_bytes(), Environment::Live).unwrap();
        assert!(read.merchant_transaction_id_must_be_unique);
    }

    #[test]
    fn an_amount_must_be_exact_and_positive() {
        for (amount, error) in [
            ("0", "must be a positive number"),
            ("-5", "must be a positive number"),
            ("null", "must be a positive number"),
            ("{}", "must be a positive number"),
            ("0.001", "must have at most 2 decimals"),
            ("1e12", "must be at most 999999999999.99"),
        ] {
            let body = format!(r#"{{"amount":{amount},{URLS}}}"#);
            assert_eq!(errors(&body, Environment::Test), [format!("amount {error}")]);
        }
    }

    #[test]
    fn live_redirects_use_https_except_for_localhost() {
        let body = |url: &str| format!(r#"{{"amount":1,"success_url":"{url}","cancel_url":"https://a.example"}}"#);
        for (url, live, test) in [
            ("https://shop.example/", true, true),
            ("http://shop.example/", false, true),
            ("http://localhost:3000/paid", true, true),
            ("http://127.0.0.1:3000", true, true),
            ("http://[::1]/", true, true),
            ("http://localhost.evil.example/", false, true),
            ("https://shop.example/paid ", false, false),
            ("javascript:alert(1)", false, false),
            ("ftp://shop.example", false, false),
            ("shop.example/paid", false, false),
            ("https://", false, false),
            ("https://shop.example/\\n", true, true),
        ] {
            let url = url.replace("\\n", "%0a");
            assert_eq!(errors(&body(&url), Environment::Live).is_empty(), live, "{url}");
            assert_eq!(errors(&body(&url), Environment::Test).is_empty(), test, "{url}");
        }
    }

    #[test]
    fn metadata_keeps_its_bytes() {
        let metadata = r#"{ "b":1.10, "a" : 123456789012345678901234567890,"é":"\u00e9" }"#;
        let body = format!(r#"{{"amount":1,{URLS},"metadata":{metadata}}}"#);
        let params = CreatePayment::from_json(body.as_bytes(), Environment::Test).unwrap();
        assert_eq!(params.metadata.unwrap().as_str(), metadata);
    }
}
