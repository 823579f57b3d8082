//! Lookup values, by which payments are found. Each has one normal form.

use std::fmt;

use payments_core::{Customer, MobileNumber, Payment, PaymentId};

/// A value by which payments of a scope are found. A payment has at most one of each kind. They never change, but an erasure of
/// the customer's data removes the e-mail address and the phone number.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lookup {
    pub kind: LookupKind,
    /// In its normal form, without NUL.
    pub value: String,
}

/// The kind of a value by which payments are found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LookupKind {
    Reference,
    Email,
    Phone,
}

impl LookupKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reference => "reference",
            Self::Email => "email",
            Self::Phone => "phone",
        }
    }
}

impl Lookup {
    /// The merchant's reference, as it was written.
    pub fn reference(text: &str) -> Option<Self> {
        Self::of(LookupKind::Reference, text.to_owned())
    }

    /// An e-mail address without spaces around it, in lower case. Only ASCII characters change, so the result is the same
    /// everywhere.
    pub fn email(text: &str) -> Option<Self> {
        Self::of(LookupKind::Email, text.trim_ascii().to_ascii_lowercase())
    }

    /// A phone number without spaces and separators, in Latin digits; a Bangladeshi mobile number has eleven.
    pub fn phone(text: &str) -> Option<Self> {
        let plain = text.chars().filter_map(|char| match char {
            ' ' | '\t' | '\n' | '\r' | '\x0c' | '\u{a0}' | '-' | '.' | '(' | ')' => None,
            '০'..='৯' => char::from_digit(u32::from(char) - u32::from('০'), 10),
            other => Some(other),
        });
        let plain: String = plain.collect();
        let is_number = plain.bytes().all(|byte| byte == b'+' || byte.is_ascii_digit());
        let national = plain.parse::<MobileNumber>().ok().filter(|_| is_number);
        Self::of(LookupKind::Phone, national.map_or(plain, |number| number.as_str().to_owned()))
    }

    fn of(kind: LookupKind, value: String) -> Option<Self> {
        (!value.is_empty() && !value.contains('\0')).then_some(Self { kind, value })
    }
}

/// The lookup values of a payment. A reference that equals the payment's id is left out.
pub fn lookups(payment: &Payment) -> Vec<Lookup> {
    let Payment { id, merchant_transaction_id, customer, .. } = payment;
    lookups_of(id, merchant_transaction_id, customer).collect()
}

/// As [`lookups`], from the parts of a payment.
pub fn lookups_of(id: &PaymentId, reference: &str, customer: &Customer) -> impl Iterator<Item = Lookup> {
    let reference = (reference != id.as_str()).then(|| Lookup::reference(reference)).flatten();
    let email = customer.email.as_deref().and_then(Lookup::email);
    let phone = customer.phone.as_deref().and_then(Lookup::phone);
    reference.into_iter().chain(email).chain(phone)
}

/// Omits the value, which may be customer data.
impl fmt::Debug for Lookup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lookup({:?})", self.kind)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(lookup: Option<Lookup>) -> Option<String> {
        lookup.map(|lookup| lookup.value)
    }

    #[test]
    fn all_forms_of_a_phone_number_have_one_normal_form() {
        for text in [
            "01712345678",
            "+8801712345678",
            "8801712345678",
            " 8801712345678",
            "008801712345678",
            "+880 1712-345678",
            "(01712) 345.678",
            "(+880) 1712 345678",
            "০১৭১২৩৪৫৬৭৮",
        ] {
            assert_eq!(value(Lookup::phone(text)).as_deref(), Some("01712345678"), "{text}");
        }
        for (text, expected) in
            [("+1 (212) 555-0100", Some("+12125550100")), ("017123456789", Some("017123456789")), (" - ", None)]
        {
            assert_eq!(value(Lookup::phone(text)).as_deref(), expected, "{text}");
        }
        assert_eq!(value(Lookup::phone("\u{2003}01712345678")).as_deref(), Some("\u{2003}01712345678"));
    }

    #[test]
    fn capital_letters_do_not_change_an_address_but_change_a_reference() {
        assert_eq!(Lookup::email(" Asha@Shop.example\n"), Lookup::email("asha@shop.example"));
        assert_ne!(Lookup::reference("a-17"), Lookup::reference("A-17"));
        for none in [Lookup::email(" "), Lookup::reference(""), Lookup::reference("a\0")] {
            assert_eq!(none, None);
        }
    }

    #[test]
    fn debug_output_omits_the_lookup_value() {
        let shown = format!("{:?}", Lookup::email("asha@shop.example").unwrap());
        assert_eq!(shown, "Lookup(Email)");
    }

    #[test]
    fn a_payment_is_found_by_its_customer_and_by_a_reference_that_is_not_its_id() {
        let mut payment = crate::domain::new_session().payment;
        assert_eq!(lookups(&payment), []);
        payment.customer.email = Some("Rina@Example.org".into());
        payment.customer.phone = Some("+880 1712-345678".into());
        let by =
            |payment: &Payment| lookups(payment).into_iter().map(|it| (it.kind.as_str(), it.value)).collect::<Vec<_>>();
        let customer = [("email", "rina@example.org".to_owned()), ("phone", "01712345678".to_owned())];
        assert_eq!(by(&payment), customer);
        payment.merchant_transaction_id = "order-1017".into();
        assert_eq!(by(&payment)[0], ("reference", "order-1017".to_owned()));
        assert_eq!(by(&payment)[1..], customer);
    }
}
