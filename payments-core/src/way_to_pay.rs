//! Ways to pay: each gateway has one or more.

use crate::{ErrorCode, PaymentMethod, aliased::aliased_resource, validation::Fields};

/// How many ways to pay a merchant may name for a payment.
const MAX_WAYS: usize = 20;

aliased_resource! {
    /// A way to pay: a gateway, or one of its kinds of payment.
    #[derive(Debug)]
    pub struct WayToPay {
        /// The name, which [`Pay::payment_method`](crate::Pay::payment_method) takes.
        name: String = "name",
        /// The payment method that it is.
        method: PaymentMethod = "method",
        /// The name for people, such as `bKash`.
        title: String = "title",
    }
}

/// Whether a word can name a way to pay: at most 32 small letters, digits and underscores.
pub(crate) fn is_name(word: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    (1..=32).contains(&word.len()) && word.bytes().all(fits)
}

/// Reads `ways`. An empty list counts as missing.
pub(crate) fn read_all(fields: &mut Fields<'_>) -> Option<Vec<String>> {
    let json = fields.raw("ways")?;
    let ways = serde_json::from_str::<Vec<String>>(json).ok();
    let ways = ways.filter(|ways| ways.len() <= MAX_WAYS && ways.iter().all(|way| is_name(way)));
    let Some(ways) = ways else {
        let error = format_args!("must be a list of at most {MAX_WAYS} names of ways to pay, such as [\"mfs\"]");
        return fields.error("ways", ErrorCode::FieldInvalid, error, None);
    };
    (!ways.is_empty()).then_some(ways)
}

#[cfg(test)]
mod tests {
    use crate::{CreatePayment, Environment};

    #[test]
    fn a_payment_may_name_the_ways_by_which_it_can_be_paid() {
        let ways = |json: &str| {
            let body = format!(
                r#"{{"amount":1,"success_url":"https://a.example","cancel_url":"https://a.example","ways":{json}}}"#
            );
            CreatePayment::from_json(body.as_bytes(), Environment::Live).map(|params| params.ways)
        };
        assert_eq!(ways(r#"["mfs","card_2"]"#).unwrap(), Some(vec!["mfs".to_owned(), "card_2".to_owned()]));
        assert_eq!((ways("[]").unwrap(), ways("null").unwrap()), (None, None));
        let many = format!("[{}\"x\"]", "\"x\",".repeat(20));
        for json in ["\"mfs\"", "[1]", r#"["Mfs"]"#, r#"[""]"#, "{}", &many] {
            assert!(ways(json).unwrap_err().to_string().contains("ways must be a list of at most 20 names"), "{json}");
        }
    }
}
