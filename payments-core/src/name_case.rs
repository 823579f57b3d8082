//! The two ways to write a field's name: camelCase and snake_case.

/// Whether a given name is that of a field or a query parameter, in camelCase or in snake_case.
///
/// ```
/// use payments_core::is_same_field;
///
/// assert!(is_same_field("customer_email", "customerEmail"));
/// assert!(!is_same_field("CustomerEmail", "customerEmail"));
/// ```
#[must_use]
pub fn is_same_field(given: &str, name: &str) -> bool {
    given == name || (given.bytes().next() == name.bytes().next() && snake(given).eq(snake(name)))
}

fn snake(name: &str) -> impl Iterator<Item = char> {
    name.chars().flat_map(|letter| {
        let underscore = letter.is_ascii_uppercase().then_some('_');
        underscore.into_iter().chain([letter.to_ascii_lowercase()])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_the_same_in_camel_case_and_in_snake_case_only() {
        for (given, name, is_same) in [
            ("amount", "amount", true),
            ("payment_method", "paymentMethod", true),
            ("successUrl", "success_url", true),
            ("merchant_transaction_id_must_be_unique", "merchantTransactionIdMustBeUnique", true),
            ("Amount", "amount", false),
            ("PaymentMethod", "paymentMethod", false),
            ("paymentmethod", "paymentMethod", false),
            ("payment_Method", "paymentMethod", false),
            ("payment-method", "paymentMethod", false),
            ("redirectURL", "redirectUrl", false),
            ("", "amount", false),
        ] {
            assert_eq!(is_same_field(given, name), is_same, "{given} {name}");
            assert_eq!(is_same_field(name, given), is_same, "{name} {given}");
        }
    }
}
