//! Sessions and their transactions.

use serde_json::{Map, Value, json};

use super::{
    hash::signed,
    known::{STORE_ID, STORE_PASSWORD, in_taka, rate, store_amount},
    money::{minor, short, two_decimals},
    time::dhaka,
};
use crate::{Entry, Form, now, token};

/// How a transaction ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Valid,
    Failed,
    Cancelled,
    Unattempted,
    Expired,
}

impl End {
    /// The word in notices.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Valid => "VALID",
            Self::Failed => "FAILED",
            Self::Cancelled => "CANCELLED",
            Self::Unattempted => "UNATTEMPTED",
            Self::Expired => "EXPIRED",
        }
    }
}

/// A session.
#[derive(Debug)]
pub(super) struct Attempt {
    pub(super) key: String,
    pub(super) order: Form,
    /// What the customer pays, in minor units of taka.
    pub(super) taka: u64,
    /// The amount that it reports instead of the ordered one, in minor units of its currency.
    pub(super) falsified: Option<u64>,
    pub(super) is_open: bool,
    /// Whether the customer has opened its page.
    pub(super) is_opened: bool,
    pub(super) is_risky: bool,
    /// Whether a validation answers nothing.
    pub(super) is_validation_silent: bool,
    pub(super) rows: Vec<Row>,
    pub(super) last_notice: Option<Form>,
    created: u64,
}

/// A transaction of a session.
#[derive(Debug)]
pub(super) struct Row {
    pub(super) end: End,
    pub(super) val_id: String,
    pub(super) bank_tran_id: String,
    pub(super) validated_at: Option<u64>,
    /// The refunds, and their money in minor units of taka.
    pub(super) refunds: u32,
    pub(super) refunded: u64,
    at: u64,
}

/// Where decimals are written, which decides how.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Notice,
    Validation,
    Query,
}

impl Attempt {
    /// Creates a session of a checked order.
    pub(super) fn new(order: Form, number: u64) -> Self {
        let taka = in_taka(&order["currency"], minor(&order["total_amount"]).unwrap_or_default());
        Self {
            key: token("", number, "session").to_uppercase(),
            taka: taka.unwrap_or_default(),
            order,
            falsified: None,
            is_open: true,
            is_opened: false,
            is_risky: false,
            is_validation_silent: false,
            rows: Vec::new(),
            last_notice: None,
            created: now(),
        }
    }

    /// A field of the order, or an empty text.
    pub(super) fn field(&self, name: &str) -> &str {
        self.order.get(name).map_or("", String::as_str)
    }

    pub(super) fn is_paid(&self) -> bool {
        self.rows.iter().any(|row| row.end == End::Valid)
    }

    /// Adds a transaction and closes the session.
    pub(super) fn end(&mut self, end: End, number: u64) {
        let digits: String = dhaka(now()).chars().filter(char::is_ascii_digit).skip(2).collect();
        self.is_open = false;
        self.rows.push(Row {
            end,
            val_id: token(&digits, number, "validation"),
            bank_tran_id: token(&digits, number, "bank"),
            validated_at: None,
            refunds: 0,
            refunded: 0,
            at: now(),
        });
    }

    pub(super) fn entry(&self) -> Entry {
        let paid = || self.rows.iter().filter(|row| row.end == End::Valid);
        let taken = u32::try_from(paid().count()).unwrap_or(u32::MAX);
        Entry {
            id: self.key.clone(),
            reference: self.field("tran_id").to_owned(),
            amount_minor: self.taka,
            is_refused: self.rows.iter().any(|row| row.end != End::Valid),
            taken,
            refunded: paid().map(|row| row.refunds).sum(),
            refunded_minor: paid().map(|row| row.refunded).sum(),
            disputed_minor: 0,
            kept_minor: u64::from(taken) * (self.taka - store_amount(self.taka)),
        }
    }

    /// The fields of a transaction that notices and answers have in common. Without a transaction, those of an open session.
    fn fields(&self, row: Option<&Row>, place: Place) -> Vec<(&'static str, String)> {
        let currency = self.field("currency");
        let amount = self.falsified.unwrap_or_else(|| minor(self.field("total_amount")).unwrap_or_default());
        let taka = in_taka(currency, amount).unwrap_or_default();
        let paid = row.filter(|row| row.end == End::Valid);
        // A customer who did not choose a way to pay has no card.
        let is_carded = row.is_some_and(|row| matches!(row.end, End::Valid | End::Failed));
        let card = |text: &str| if is_carded { text.to_owned() } else { String::new() };
        let rate = rate(currency).unwrap_or_default();
        let (own, bdt) = match place {
            Place::Notice => (two_decimals(amount), two_decimals(taka)),
            Place::Validation => (short(amount), two_decimals(taka)),
            Place::Query => (two_decimals(amount), short(taka)),
        };
        let mut fields = vec![
            ("tran_date", dhaka(row.map_or(self.created, |row| row.at))),
            ("tran_id", self.field("tran_id").to_owned()),
            ("val_id", paid.map(|row| row.val_id.clone()).unwrap_or_default()),
            ("amount", bdt),
            ("store_amount", paid.map(|_| short(store_amount(taka))).unwrap_or_default()),
            ("currency", "BDT".into()),
            ("bank_tran_id", row.filter(|_| is_carded).map(|row| row.bank_tran_id.clone()).unwrap_or_default()),
            ("card_type", card("VISA-Dutch Bangla")),
            ("card_no", card("411111XXXXXX1111")),
            ("card_issuer", card("TRUST BANK, LTD.")),
            ("card_brand", card("VISA")),
            ("card_sub_brand", card("Classic")),
            ("card_issuer_country", card("Bangladesh")),
            ("card_issuer_country_code", card("BD")),
            ("currency_type", currency.to_owned()),
            ("currency_amount", own),
            ("currency_rate", format!("{}.{:04}", rate / 10_000, rate % 10_000)),
            // Public samples have it so, also those with another currency.
            ("base_fair", "0.00".into()),
            ("risk_level", if self.is_risky { "1" } else { "0" }.into()),
            ("risk_title", if self.is_risky { "Not Safe" } else { "Safe" }.into()),
            ("error", if is_carded && paid.is_none() { "Declined by the bank" } else { "" }.into()),
        ];
        let values = ["value_a", "value_b", "value_c", "value_d"];
        fields.extend(values.map(|name| (name, self.field(name).to_owned())));
        fields
    }

    /// The form of a notice, and of the browser's way back.
    pub(super) fn notice(&self, row: &Row) -> Form {
        let fields = self.fields(Some(row), Place::Notice).into_iter();
        let own = [("status", row.end.word().to_owned()), ("store_id", STORE_ID.to_owned())];
        // Notices of failures lack these; those of other ends have them empty.
        let is_absent = |name: &str| row.end == End::Failed && ["val_id", "store_amount"].contains(&name);
        let fields = fields.chain(own).filter(|(name, _)| !is_absent(name));
        signed(fields.map(|(name, value)| (name.to_owned(), value)).collect(), STORE_PASSWORD)
    }

    /// A transaction with this status, as validations and queries show it.
    pub(super) fn shown(&self, row: Option<&Row>, status: &str, place: Place) -> Value {
        let fields = self.fields(row, place).into_iter();
        let mut shown: Map<String, Value> = fields.map(|(name, value)| (name.into(), value.into())).collect();
        let validated = row.and_then(|row| row.validated_at).map(dhaka).unwrap_or_default();
        // It occurs as a text and as a number.
        let discount = if place == Place::Validation { json!(0) } else { json!("0.00") };
        for (name, value) in [
            ("status", json!(status)),
            ("emi_instalment", json!("0")),
            ("emi_amount", json!("0.00")),
            ("emi_description", json!("")),
            ("emi_issuer", json!("")),
            ("discount_amount", discount.clone()),
            ("discount_percentage", discount),
            ("discount_remarks", json!("")),
            ("validated_on", json!(validated)),
            ("gw_version", json!("")),
        ] {
            shown.insert(name.into(), value);
        }
        Value::Object(shown)
    }
}

impl Row {
    /// The status in validations and queries.
    pub(super) fn word(&self) -> &'static str {
        match (self.end, self.validated_at) {
            (End::Valid, None) => "VALID",
            (End::Valid, Some(_)) => "VALIDATED",
            _ => "FAILED",
        }
    }
}
