//! Parts of the list of payments.

use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::SerializeMap};

use crate::{
    Currency, ErrorCode, PageRequest, PaymentId, Status, Timestamp, UnknownCurrency,
    aliased::{UnknownFields, aliased_resource},
    query::Query,
    text::phone_number,
    validation::Invalid,
};

/// A part of the list of payments, newest first: a numbered page, or a part selected by filters or a cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct PaymentPage<P> {
    /// The payments. With filters, a part may be empty although the list goes on.
    pub items: Vec<P>,
    /// The number of payments in the whole list. `None` with a cursor or with any filter but the status: those are not
    /// counted.
    pub total: Option<u64>,
    /// The number of this page, from 1. With a cursor or one of those filters it is 1.
    pub page: u32,
    /// The maximum number of items.
    pub limit: u32,
    /// Whether the list goes on. The server says so if there is no `total`, or if a page ends early because of its length;
    /// see [`goes_on`](Self::goes_on).
    pub has_more: Option<bool>,
    /// Where the next part begins: pass it as `after`. With filters it may be a payment that they exclude.
    pub next: Option<PaymentId>,
    /// Unknown fields as received. They are serialized again.
    pub unknown: UnknownFields,
}

impl<P> PaymentPage<P> {
    /// A numbered page.
    #[must_use]
    pub const fn numbered(items: Vec<P>, total: u64, page: u32, limit: u32) -> Self {
        Self { items, total: Some(total), page, limit, has_more: None, next: None, unknown: UnknownFields::new() }
    }

    /// A part selected by filters or a cursor.
    #[must_use]
    pub const fn part(items: Vec<P>, limit: u32, has_more: bool, next: Option<PaymentId>) -> Self {
        Self { items, total: None, page: 1, limit, has_more: Some(has_more), next, unknown: UnknownFields::new() }
    }

    /// Whether the list goes on after this part.
    #[must_use]
    pub fn goes_on(&self) -> bool {
        let shown = u64::from(self.page) * u64::from(self.limit);
        self.has_more.unwrap_or_else(|| self.total.is_some_and(|total| total > shown))
    }
}

/// Serializes the part as the API does: with a total, or with the beginning of the next part.
impl<P: Serialize> Serialize for PaymentPage<P> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut page = serializer.serialize_map(None)?;
        page.serialize_entry("items", &self.items)?;
        page.serialize_entry("total", &self.total)?;
        page.serialize_entry("page", &self.page)?;
        page.serialize_entry("limit", &self.limit)?;
        if self.total.is_none() || self.has_more.is_some() {
            page.serialize_entry("hasMore", &self.has_more.unwrap_or_default())?;
            page.serialize_entry("next", &self.next)?;
        }
        self.unknown.write(&mut page)?;
        page.end()
    }
}

aliased_resource! {
    /// The wire format of both kinds of parts.
    #[allow(unreachable_pub)]
    pub struct Received<P> {
        items: Vec<P> = "items",
        total: Option<u64> = "total",
        page: u32 = "page",
        limit: u32 = "limit",
        has_more: Option<bool> = "hasMore",
        next: Option<PaymentId> = "next",
    }
}

impl<'de, P: Deserialize<'de>> Deserialize<'de> for PaymentPage<P> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Received { items, total, page, limit, has_more, next, unknown } = Received::deserialize(deserializer)?;
        Ok(Self { items, total, page, limit, has_more, next, unknown })
    }
}

/// The part of the list of payments that a request asks for.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PaymentQuery {
    /// The page. It counts only without a cursor and without any filter but the status.
    pub page: PageRequest,
    /// Only payments after this one in the list, which are older than it.
    pub after: Option<PaymentId>,
    /// Only payments of this public status.
    pub status: Option<Status>,
    /// Only payments in this currency.
    pub currency: Option<Currency>,
    /// Only payments that were created at this time or later.
    pub created_after: Option<Timestamp>,
    /// Only payments that were created before this time.
    pub created_before: Option<Timestamp>,
    /// Only payments with this reference of the merchant.
    pub merchant_transaction_id: Option<String>,
    /// Only payments whose customer has this e-mail address, in any case.
    pub customer_email: Option<String>,
    /// Only payments whose customer has this phone number, in any of its forms.
    pub customer_phone: Option<String>,
    /// Only payments with this id, gateway's transaction id, reference, e-mail address or phone number: those of the first of
    /// these that any payment has.
    pub search: Option<String>,
}

impl PaymentQuery {
    /// Parses the query parameters `page`, `limit`, `after`, `status`, `currency`, `createdAfter`, `createdBefore`,
    /// `merchantTransactionId`, `customerEmail`, `customerPhone` and `search`. `parameter` returns a parameter's value.
    ///
    /// # Errors
    /// One sentence per invalid parameter.
    pub fn from_query(parameter: impl Fn(&str) -> Option<String>) -> Result<Self, Invalid> {
        let mut query = Query::of(parameter);
        let page = PageRequest::from_query(query.text("page").as_deref(), query.text("limit").as_deref());
        let page = page.unwrap_or_else(|errors| {
            query.invalid.append(errors);
            PageRequest::default()
        });
        let status = query.text("status").and_then(|word| match Status::known(&word) {
            Some(status) => Some(status),
            None => {
                let words = Status::KNOWN.iter().map(Status::as_str).collect::<Vec<_>>().join(", ");
                query.invalid.add("status", ErrorCode::FieldInvalid, format_args!("must be one of {words}"), None)
            }
        });
        let after = query.parsed("after", ErrorCode::FieldInvalid, "must be the id of a payment");
        let currency = query.parsed("currency", ErrorCode::CurrencyInvalid, UnknownCurrency);
        let (created_after, created_before) = (query.time("createdAfter"), query.time("createdBefore"));
        let mut text = |name: &str| match query.text(name)? {
            text if text.trim().is_empty() => {
                query.invalid.add(name, ErrorCode::FieldInvalid, "must not be empty; leave it out to find all", None)
            }
            text => Some(text),
        };
        let (merchant_transaction_id, customer_email, customer_phone, search) =
            (text("merchantTransactionId"), text("customerEmail"), text("customerPhone"), text("search"));
        let customer_email = customer_email.map(plus_in_address);
        let customer_phone = customer_phone.map(phone_of);
        let asked = Self {
            page,
            after,
            status,
            currency,
            created_after,
            created_before,
            merchant_transaction_id,
            customer_email,
            customer_phone,
            search,
        };
        if page.page() > 1 && !asked.is_page() {
            let error = "cannot be combined with after or with filters other than status; go on with after";
            query.invalid.add("page", ErrorCode::FieldInvalid, error, ());
        }
        query.invalid.or(asked)
    }

    /// The same query with `+` for each space in the merchant's reference; `None` if it has no space. A program that does not
    /// encode `+` sends what the server reads as a space, and a reference may contain both.
    #[must_use]
    pub fn with_plus_in_reference(&self) -> Option<Self> {
        let reference = self.merchant_transaction_id.as_ref().filter(|reference| reference.contains(' '))?;
        Some(Self { merchant_transaction_id: Some(reference.replace(' ', "+")), ..self.clone() })
    }

    /// The queries that a search stands for, each with a filter in its place: by reference, then by e-mail address or phone
    /// number. Without a search there is none.
    #[must_use]
    pub fn searches(&self) -> Vec<Self> {
        let Some(search) = &self.search else { return Vec::new() };
        let (base, text) = (Self { search: None, ..self.clone() }, search.trim());
        let by_reference = |text: &str| Self { merchant_transaction_id: Some(text.to_owned()), ..base.clone() };
        let mut found = vec![by_reference(text)];
        found.extend(found[0].with_plus_in_reference());
        found.push(match text.contains('@') {
            true => Self { customer_email: Some(plus_in_address(text.to_owned())), ..base },
            false => Self { customer_phone: Some(phone_of(search.clone())), ..base },
        });
        found
    }

    /// Whether the query asks for a numbered page: of all payments, or of those with one status.
    #[must_use]
    pub const fn is_page(&self) -> bool {
        self.after.is_none()
            && self.currency.is_none()
            && self.created_after.is_none()
            && self.created_before.is_none()
            && self.merchant_transaction_id.is_none()
            && self.customer_email.is_none()
            && self.customer_phone.is_none()
            && self.search.is_none()
    }
}

/// A phone number in the form that new payments store. Older ones may have any text.
fn phone_of(text: String) -> String {
    let text = plus_before_country(text);
    phone_number(&text).unwrap_or(text)
}

/// Turns spaces in an e-mail address back into `+`. An address has no spaces: they were `+` before the query was decoded.
fn plus_in_address(text: String) -> String {
    let address = text.trim();
    if address.contains('@') { address.replace(' ', "+") } else { text }
}

/// Restores the `+` of a phone number, which became a space when the query was decoded. No country code begins with 0.
fn plus_before_country(text: String) -> String {
    match text.strip_prefix(' ').filter(|number| number.starts_with(|digit| matches!(digit, '1'..='9'))) {
        Some(number) => format!("+{number}"),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(pairs: &[(&str, &str)]) -> Result<PaymentQuery, Invalid> {
        PaymentQuery::from_query(|name| {
            pairs.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned())
        })
    }

    #[test]
    fn a_query_without_a_cursor_and_filters_but_the_status_asks_for_a_page() {
        assert!(parsed(&[]).unwrap() == PaymentQuery::default());
        assert!(parsed(&[("page", "3"), ("limit", "5"), ("status", "failed")]).unwrap().is_page());
        for filter in [
            ("after", "pay_1"),
            ("currency", "USD"),
            ("createdAfter", "2026-03-01T00:00:00Z"),
            ("createdBefore", "2026-03-01T00:00:00Z"),
            ("merchantTransactionId", "A-17"),
            ("customerEmail", "a@shop.example"),
            ("customerPhone", "+8801712345678"),
            ("search", "A-17"),
        ] {
            assert!(!parsed(&[filter, ("page", "1")]).unwrap().is_page());
            let errors = parsed(&[filter, ("page", "2")]).err().unwrap().into_sentences();
            assert!(errors.len() == 1 && errors[0].starts_with("page cannot"), "{errors:?}");
        }
    }

    #[test]
    fn a_plus_that_was_decoded_to_a_space_is_restored() {
        for (name, text, meant) in [
            ("customerEmail", "asha shop@example.com", "asha+shop@example.com"),
            ("customerEmail", " asha@example.com ", "asha@example.com"),
            ("customerEmail", "Asha Rahman", "Asha Rahman"),
            ("customerPhone", " 1 212-555-0100", "+1 212-555-0100"),
            ("customerPhone", " 8801712345678", "+8801712345678"),
            ("customerPhone", " 01712345678", "01712345678"),
            ("merchantTransactionId", "A 17", "A 17"),
        ] {
            let query = parsed(&[(name, text)]).unwrap();
            let found = [&query.customer_email, &query.customer_phone, &query.merchant_transaction_id];
            assert_eq!(found.into_iter().flatten().collect::<Vec<_>>(), [meant], "{text}");
        }
        let reference = |text| parsed(&[("merchantTransactionId", text)]).unwrap().with_plus_in_reference();
        assert_eq!(reference("A 1 7").unwrap().merchant_transaction_id.unwrap(), "A+1+7");
        assert!(reference("A+17").is_none() && PaymentQuery::default().with_plus_in_reference().is_none());
    }

    #[test]
    fn a_search_is_one_by_reference_and_one_by_address_or_phone_number() {
        for (text, expected) in [
            ("A-17", ["ref A-17", "phone A-17"].as_slice()),
            (" 8801712345678", &["ref 8801712345678", "phone +8801712345678"]),
            ("01712 345678", &["ref 01712 345678", "ref 01712+345678", "phone 01712 345678"]),
            (
                "asha shop@example.com",
                &["ref asha shop@example.com", "ref asha+shop@example.com", "mail asha+shop@example.com"],
            ),
        ] {
            let query = parsed(&[("search", text), ("currency", "BDT"), ("limit", "7")]).unwrap();
            let words = |it: PaymentQuery| {
                assert_eq!((it.page.limit(), it.currency, it.search), (7, Some(Currency::Bdt), None));
                let found =
                    [("ref", it.merchant_transaction_id), ("mail", it.customer_email), ("phone", it.customer_phone)];
                let found = found.into_iter().filter_map(|(name, text)| Some(format!("{name} {}", text?)));
                found.collect::<Vec<_>>().join(", ")
            };
            assert_eq!(query.searches().into_iter().map(words).collect::<Vec<_>>(), expected, "{text}");
        }
        assert!(PaymentQuery::default().searches().is_empty());
    }

    #[test]
    fn each_invalid_parameter_is_named() {
        let wrong = [
            ("limit", "101"),
            ("status", "lost"),
            ("after", "a b"),
            ("currency", "EUR"),
            ("createdAfter", "yesterday"),
            ("createdBefore", "1"),
            ("merchantTransactionId", ""),
            ("customerEmail", " "),
            ("customerPhone", ""),
            ("search", " "),
        ];
        let fields = parsed(&wrong).err().unwrap().fields();
        let named: Vec<_> = fields.iter().map(|error| error.field.as_str()).collect();
        assert_eq!(named, wrong.map(|(name, _)| name));
    }

    #[test]
    fn a_page_with_a_total_goes_on_while_items_remain() {
        for (total, page, goes_on) in [(0, 1, false), (20, 1, false), (21, 1, true), (40, 2, false)] {
            let text = format!(r#"{{"items":[],"total":{total},"page":{page},"limit":20}}"#);
            let found: PaymentPage<()> = serde_json::from_str(&text).unwrap();
            assert_eq!((found.total, found.goes_on()), (Some(total), goes_on));
        }
        let next = Some("pay_1".parse().unwrap());
        let part: PaymentPage<()> = PaymentPage::part(Vec::new(), 20, true, next);
        let text = r#"{"items":[],"total":null,"page":1,"limit":20,"hasMore":true,"next":"pay_1"}"#;
        assert_eq!(serde_json::to_string(&part).unwrap(), text);
        assert_eq!(serde_json::from_str::<PaymentPage<()>>(text).unwrap(), part);
        let page: PaymentPage<()> = PaymentPage::numbered(Vec::new(), 21, 2, 20);
        assert_eq!(serde_json::to_string(&page).unwrap(), r#"{"items":[],"total":21,"page":2,"limit":20}"#);
        assert!(part.goes_on());
    }
}
