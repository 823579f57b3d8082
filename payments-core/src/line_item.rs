//! The lines of an order, for the checkout page and the receipt.

use crate::{
    Amount, AmountError, ErrorCode,
    aliased::{UnknownFields, aliased_resource},
    text::is_one_line,
    validation::{Fields, ONE_LINE, whole_number},
};

/// Maximum number of lines.
const MAX_LINES: usize = 50;
const MAX_NAME_BYTES: usize = 200;
const MAX_QUANTITY: u32 = 1_000_000;

aliased_resource! {
    /// A line of an order. The checkout page and the receipt show it; nothing is computed from it.
    ///
    /// ```
    /// use payments_core::{CreatePayment, LineItem, Money};
    ///
    /// let params = CreatePayment::of(Money::taka(1250))
    ///     .success_url("https://shop.example/paid")
    ///     .cancel_url("https://shop.example/cart")
    ///     .line_items([
    ///         LineItem::new("Darjeeling tea, 250 g").quantity(2).amount(Money::taka(1200).amount),
    ///         LineItem::new("Gift wrapping"),
    ///     ]);
    /// ```
    #[derive(Debug)]
    pub struct LineItem {
        /// What the customer buys, in one line of 1 to 200 bytes.
        name: String = "name",
        /// The quantity, 1 to 1,000,000.
        quantity: Option<u32> = "quantity" (omitted if None),
        /// The price of the whole line, in the payment's currency. It may be zero.
        amount: Option<Amount> = "amount" (omitted if None),
    }
}

impl LineItem {
    /// A line that has only a name.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), quantity: None, amount: None, unknown: UnknownFields::new() }
    }

    /// Sets the quantity.
    #[must_use]
    pub fn quantity(mut self, quantity: u32) -> Self {
        self.quantity = Some(quantity);
        self
    }

    /// Sets the price of the whole line.
    #[must_use]
    pub fn amount(mut self, amount: Amount) -> Self {
        self.amount = Some(amount);
        self
    }

    /// Reads `lineItems`. An empty list counts as missing.
    ///
    /// The lines need not add up to the payment's amount: discounts, delivery and taxes often have no line of their own, and
    /// only the payment's amount is charged.
    pub(crate) fn read_all(fields: &mut Fields<'_>) -> Option<Vec<Self>> {
        let lines = fields.objects("lineItems", MAX_LINES, |line| Self {
            name: line.required_text("name", MAX_NAME_BYTES, |name| match name {
                name if name.trim().is_empty() => Err((ErrorCode::FieldInvalid, "must not be blank")),
                name if !is_one_line(name) => Err((ErrorCode::FieldInvalid, ONE_LINE)),
                _ => Ok(()),
            }),
            quantity: quantity(line),
            amount: amount(line),
            unknown: UnknownFields::new(),
        });
        (!lines.is_empty()).then_some(lines)
    }
}

fn quantity(line: &mut Fields<'_>) -> Option<u32> {
    let json = line.raw("quantity")?;
    let number = whole_number(json).and_then(|number| u32::try_from(number).ok());
    number.filter(|number| (1..=MAX_QUANTITY).contains(number)).or_else(|| {
        let error = format_args!("must be a whole number from 1 to {MAX_QUANTITY}");
        line.value_error("quantity", ErrorCode::FieldInvalid, error, None)
    })
}

fn amount(line: &mut Fields<'_>) -> Option<Amount> {
    let json = line.raw("amount")?;
    json.parse().map(Some).unwrap_or_else(|error| {
        let error = match error {
            AmountError::NotANumber | AmountError::Negative => "must be zero or a positive number".to_owned(),
            AmountError::TooPrecise | AmountError::TooLarge => error.to_string(),
        };
        line.value_error("amount", ErrorCode::AmountInvalid, error, None)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CreatePayment, Environment};

    fn read(lines: &str) -> Result<Option<Vec<LineItem>>, Vec<String>> {
        let body = format!(
            r#"{{"amount":1,"success_url":"https://a.example","cancel_url":"https://a.example","lineItems":{lines}}}"#
        );
        let params = CreatePayment::from_json(body.as_bytes(), Environment::Live);
        params.map(|params| params.line_items).map_err(crate::Invalid::into_sentences)
    }

    #[test]
    fn lines_are_read_as_they_are_sent() {
        let lines = vec![
            LineItem::new("চা").quantity(2).amount("1200.5".parse().unwrap()),
            LineItem::new("Gift wrapping").amount(Amount::ZERO),
            LineItem::new("x".repeat(200)).quantity(MAX_QUANTITY),
        ];
        let sent = serde_json::to_string(&lines).unwrap();
        assert!(sent.starts_with(r#"[{"name":"চা","quantity":2,"amount":1200.5},{"name":"Gift wrapping","amount":0},"#));
        assert_eq!(read(&sent), Ok(Some(lines)));
        assert_eq!(
            read(r#"[{"name":"Tea","quantity":2.0,"amount":null,"sku":"T-1"}]"#),
            read(r#"[{"name":"Tea","quantity":2}]"#)
        );
    }

    #[test]
    fn an_empty_list_of_lines_counts_as_missing() {
        assert_eq!((read("[]"), read("null")), (Ok(None), Ok(None)));
    }

    #[test]
    fn errors_name_the_line_and_the_field() {
        let many = |count: usize| format!("[{}]", vec![r#"{"name":"Tea"}"#; count].join(","));
        assert_eq!(read(&many(50)).unwrap().unwrap().len(), 50);
        for (lines, sentence) in [
            (many(51).as_str(), "lineItems must have at most 50 entries"),
            ("{}", "lineItems must be a list of objects"),
            (r#"["Tea"]"#, "lineItems[0] must be an object"),
            (r#"[{"name":"Tea"},{}]"#, "lineItems[1].name must be given"),
            (r#"[{"name":" "}]"#, "lineItems[0].name must not be blank"),
            (&format!(r#"[{{"name":"{}"}}]"#, "x".repeat(201)), "lineItems[0].name must be at most 200 bytes long"),
            (r#"[{"name":"Tea","quantity":0}]"#, "lineItems[0].quantity must be a whole number from 1 to 1000000"),
            (r#"[{"name":"Tea","quantity":1.5}]"#, "lineItems[0].quantity must be a whole number from 1 to 1000000"),
            (
                r#"[{"name":"Tea","quantity":1000001}]"#,
                "lineItems[0].quantity must be a whole number from 1 to 1000000",
            ),
            (r#"[{"name":"Tea","amount":-1}]"#, "lineItems[0].amount must be zero or a positive number"),
            (r#"[{"name":"Tea","amount":0.001}]"#, "lineItems[0].amount must have at most 2 decimals"),
            (r#"[{"name":"Tea","amuont":1}]"#, "lineItems[0].amuont is not a field; did you mean lineItems[0].amount?"),
        ] {
            assert_eq!(read(lines), Err(vec![sentence.to_owned()]), "{lines}");
        }
    }
}
