//! The customer of a payment.

use std::fmt;

use crate::{
    ErrorCode,
    aliased::{UnknownFields, aliased_resource},
    text::phone_number,
    validation::Fields,
};

pub(crate) const MAX_CUSTOMER_BYTES: usize = 320;

aliased_resource! {
    /// The customer of a payment, as the merchant described them. Missing fields are `null` on the wire.
    #[derive(Default)]
    pub struct Customer {
        /// The customer's name, in one line.
        name: Option<String> = "name",
        /// The customer's e-mail address.
        email: Option<String> = "email",
        /// The customer's phone number. The server stores and returns it as digits, `+`, `-`, `(`, `)` and single spaces.
        phone: Option<String> = "phone",
    }
}

impl Customer {
    /// Reads `customer` and its flat aliases, such as `customerName`.
    pub(crate) fn read(fields: &mut Fields<'_>) -> Option<Self> {
        let mut customer = fields.nested("customer", |customer| Self {
            name: customer.line("name", MAX_CUSTOMER_BYTES),
            email: customer.text("email", MAX_CUSTOMER_BYTES),
            phone: phone(customer, "phone"),
            unknown: UnknownFields::new(),
        });
        let flat = (
            fields.line("customerName", MAX_CUSTOMER_BYTES),
            fields.text("customerEmail", MAX_CUSTOMER_BYTES),
            phone(fields, "customerPhone"),
        );
        for (flat, nested, given, entry) in [
            ("customerName", "customer.name", flat.0, &mut customer.name),
            ("customerEmail", "customer.email", flat.1, &mut customer.email),
            ("customerPhone", "customer.phone", flat.2, &mut customer.phone),
        ] {
            match entry {
                Some(known) if given.as_ref().is_some_and(|given| given != known) => {
                    fields.error(
                        flat,
                        ErrorCode::FieldsDisagree,
                        format_args!("and {nested} disagree; give one of them, or the same in both"),
                        (),
                    );
                }
                Some(_) => {}
                None => *entry = given,
            }
        }
        (fields.raw("customer").is_some() || customer != Self::default()).then_some(customer)
    }
}

/// Reads a phone number in its stored form.
fn phone(fields: &mut Fields<'_>, name: &'static str) -> Option<String> {
    let text = fields.text(name, MAX_CUSTOMER_BYTES)?;
    let error = "must have only digits, spaces and + - ( ), such as +880 1712-345678";
    phone_number(&text).or_else(|| fields.error(name, ErrorCode::FieldInvalid, error, None))
}

/// Stands for a customer's data in a `Debug` print: it says whether there is some.
pub(crate) fn given(entry: &Option<String>) -> Option<&'static str> {
    entry.as_ref().map(|_| "given")
}

/// Shows which fields are set, not their values, to keep customer data out of logs.
impl fmt::Debug for Customer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Customer")
            .field("name", &given(&self.name))
            .field("email", &given(&self.email))
            .field("phone", &given(&self.phone))
            .field("unknown", &self.unknown)
            .finish()
    }
}
