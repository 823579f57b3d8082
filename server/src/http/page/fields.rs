//! The fields of the customer that the ways to pay ask for, each once.

use super::words;
use crate::{
    gateway::{CustomerField, Way},
    http::language::Text,
};

/// What the customer typed, and which field is wrong.
#[derive(Default)]
pub(super) struct Typed {
    pub(super) way: Option<String>,
    pub(super) values: Vec<(CustomerField, String)>,
    pub(super) fault: Option<(CustomerField, Text)>,
}

/// A field of the form.
pub(super) struct Field {
    pub(super) field: CustomerField,
    pub(super) label: Text,
    /// Empty, or what the field is for.
    pub(super) hint: Text,
    pub(super) value: String,
    pub(super) fault: Option<Text>,
    /// The names of the ways that ask for it, with spaces between.
    pub(super) ways: String,
}

impl Field {
    pub(super) fn id(&self) -> &'static str {
        match self.field {
            CustomerField::Name => "name",
            CustomerField::Email => "email",
            CustomerField::Phone => "phone",
        }
    }

    pub(super) fn kind(&self) -> &'static str {
        match self.field {
            CustomerField::Name => "text",
            CustomerField::Email => "email",
            CustomerField::Phone => "tel",
        }
    }

    /// How browsers fill it in.
    pub(super) fn autocomplete(&self) -> &'static str {
        match self.field {
            CustomerField::Phone => "tel",
            _ => self.id(),
        }
    }

    pub(super) fn max_length(&self) -> u16 {
        match self.field {
            CustomerField::Phone => 24,
            _ => 320,
        }
    }
}

/// The fields to show. `known` gives what the payment says of the customer; only a phone number is shown nevertheless, because
/// a wallet may have another.
pub(super) fn asked(ways: &[&Way], known: impl Fn(CustomerField) -> Option<String>, typed: &Typed) -> Vec<Field> {
    let show = |field: CustomerField| {
        let known = known(field);
        let asks: Vec<_> = ways
            .iter()
            .flat_map(|way| way.asks.iter().map(move |ask| (way.name, ask)))
            .filter(|(_, ask)| ask.field == field && (known.is_none() || field == CustomerField::Phone))
            .collect();
        let (_, first) = asks.first()?;
        let is_alike = asks.iter().all(|(_, ask)| ask.label == first.label);
        let (label, hint) = match is_alike {
            true => (first.label, first.hint),
            false => (general(field), ["", ""]),
        };
        let value = typed.values.iter().find(|(it, _)| *it == field).map(|(_, value)| value.clone());
        Some(Field {
            field,
            label,
            hint,
            value: value.or(known).unwrap_or_default(),
            fault: typed.fault.filter(|(it, _)| *it == field).map(|(_, fault)| fault),
            ways: asks.iter().map(|(way, _)| *way).collect::<Vec<_>>().join(" "),
        })
    };
    CustomerField::ALL.into_iter().filter_map(show).collect()
}

fn general(field: CustomerField) -> Text {
    match field {
        CustomerField::Name => words::YOUR_NAME,
        CustomerField::Email => words::YOUR_EMAIL,
        CustomerField::Phone => words::YOUR_PHONE,
    }
}
