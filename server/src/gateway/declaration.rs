//! What a gateway declares of itself. Nothing outside its folder knows its name: what the configuration, `doctor`, the
//! checkout page, the routes and the metrics need of it is data here.

use std::fmt;

use payments_core::{Amount, Currency, Customer, PaymentMethod};

use super::{
    reference::ReferenceForm,
    returns::Returns,
    settings::{Setting, SettingError, SettingKind, Settings},
    statement_columns::StatementColumns,
};
use crate::domain::GatewayName;

/// A text in English and Bangla.
pub type Words = [&'static str; 2];

pub struct Declaration {
    /// In records, URLs, logs and metrics, and as its section of the configuration.
    pub name: GatewayName,
    /// In messages to people.
    pub title: &'static str,
    /// How a customer can pay, the preferred way first.
    pub ways: &'static [Way],
    /// The form of our references there.
    pub reference: ReferenceForm,
    /// How many seconds an attempt can be paid there: the least and the most that we can ask for.
    pub session_seconds: [u32; 2],
    /// Who sends refunds, unless its settings say otherwise.
    pub refunds: RefundWay,
    /// How many refunds of one payment it makes, if it has a limit. A person sends those beyond it.
    pub most_refunds: Option<usize>,
    /// Whether its calls need a token that only servers may request, because it grants few.
    pub needs_token: bool,
    /// The lists that the server reads again and again.
    pub lists: &'static [GatewayList],
    /// The columns of its statements, if a person downloads them.
    pub statement: Option<&'static StatementColumns>,
    /// Its words and codes for what went wrong.
    pub errors: &'static [ErrorWords],
    /// What a customer's return says.
    pub returns: Returns,
    /// The largest notice that it sends; `None` if it sends none.
    pub notice_bytes: Option<usize>,
    /// The answer by which it takes a notice for received: the content type and the body.
    pub notice_answer: (&'static str, &'static str),
    pub settings: &'static [Setting],
    /// What to do if some credentials lack. Ends a sentence.
    pub setup: &'static str,
    /// Checks what a single setting cannot tell.
    pub check: fn(&Settings) -> Result<(), SettingError>,
    /// What its settings do at its live address, such as `live` or `test mode`.
    pub mode: fn(&Settings) -> &'static str,
}

/// Codes of a gateway that mean the same to a customer and a merchant.
#[derive(Debug)]
pub struct ErrorWords {
    pub codes: &'static [&'static str],
    /// A sentence.
    pub meaning: Words,
}

/// A way to pay at a gateway.
#[derive(Debug)]
pub struct Way {
    /// The word for it in `paymentMethod`.
    pub name: &'static str,
    /// The specification's word for this kind of way.
    pub method: PaymentMethod,
    pub title: Words,
    /// What the customer does there.
    pub hint: Words,
    /// The amounts that it takes in each of its currencies.
    pub limits: &'static [(Currency, AmountLimits)],
    /// What it needs of the customer, beside the payment.
    pub asks: &'static [Ask],
}

/// The amounts that a way to pay takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AmountLimits {
    pub least: Amount,
    pub most: Amount,
}

/// Something that a way to pay needs of the customer. The checkout page asks for it if the payment lacks it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    pub field: CustomerField,
    pub is_required: bool,
    pub label: Words,
    /// What the field is for; may be empty.
    pub hint: Words,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CustomerField {
    Name,
    Email,
    Phone,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefundWay {
    /// The gateway sends the money back.
    Gateway,
    /// A person sends the money back and records that: a manual settlement.
    Manual,
}

/// A list of the gateway that the server reads again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GatewayList {
    /// All refunds, whoever made them.
    Refunds,
    Disputes,
    /// All rows of the gateway's books.
    Costs,
}

impl CustomerField {
    /// All, in the order of the checkout page.
    pub const ALL: [Self; 3] = [Self::Name, Self::Email, Self::Phone];

    /// The field's name in a request to pay.
    pub fn name(self) -> &'static str {
        match self {
            Self::Name => "customerName",
            Self::Email => "customerEmail",
            Self::Phone => "phoneNumber",
        }
    }

    pub fn of(self, customer: &Customer) -> Option<&str> {
        match self {
            Self::Name => customer.name.as_deref(),
            Self::Email => customer.email.as_deref(),
            Self::Phone => customer.phone.as_deref(),
        }
    }
}

impl Declaration {
    /// The currencies of its ways, each once.
    pub fn currencies(&self) -> Vec<Currency> {
        each_once(self.ways.iter().flat_map(|way| way.limits.iter().map(|(currency, _)| *currency)))
    }

    /// What a code of its errors means.
    pub fn meaning(&self, code: &str) -> Option<Words> {
        self.errors.iter().find(|it| it.codes.contains(&code)).map(|it| it.meaning)
    }

    /// Whether its settings move real money, such as `live`, `test mode` or `at http://127.0.0.1:9`.
    pub fn mode_of(&self, settings: &Settings) -> String {
        let url = self.settings.iter().find_map(|setting| match setting.kind {
            SettingKind::Url { live } => Some((settings.text(setting.key), live(settings))),
            _ => None,
        });
        match url {
            Some((url, live)) if url != live && url.contains("sandbox") => format!("{}'s sandbox at {url}", self.title),
            Some((url, live)) if url != live => format!("at {url}"),
            _ => (self.mode)(settings).to_owned(),
        }
    }
}

/// Shows the name, which stands for the rest.
impl fmt::Debug for Declaration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.name.fmt(f)
    }
}

/// The items without those that came before.
pub fn each_once<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut once = Vec::new();
    for item in items {
        if !once.contains(&item) {
            once.push(item);
        }
    }
    once
}

impl Way {
    /// Whether a word names it: its own name, or that of its kind.
    pub fn is_named(&self, word: &str) -> bool {
        self.name == word || self.method.as_str() == word
    }

    pub fn limits_in(&self, currency: Currency) -> Option<AmountLimits> {
        self.limits.iter().find(|(it, _)| *it == currency).map(|(_, limits)| *limits)
    }

    pub fn takes(&self, amount: Amount, currency: Currency) -> bool {
        self.limits_in(currency).is_some_and(|AmountLimits { least, most }| (least..=most).contains(&amount))
    }
}
