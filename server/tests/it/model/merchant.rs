//! What a merchant must find.

use std::time::Instant;

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::steps::Who;

/// A payment as it must be.
pub(super) struct Payment {
    pub(super) id: String,
    pub(super) who: Who,
    pub(super) minor: u64,
    pub(super) currency: &'static str,
    pub(super) raw: &'static str,
    pub(super) method: Option<&'static str>,
    /// What the API last told, which must not change unless the payment does.
    pub(super) text: String,
    /// Its session ends between these.
    pub(super) ends: (Instant, Instant),
}

pub(super) struct Endpoint {
    pub(super) id: String,
    pub(super) text: String,
    pub(super) secret: String,
    pub(super) events: &'static [&'static str],
    pub(super) is_dead: bool,
    pub(super) is_removed: bool,
}

/// An event that an endpoint gets.
pub(super) struct Owed {
    pub(super) endpoint: String,
    pub(super) event: &'static str,
    pub(super) data: Value,
}

/// A success under an idempotency key.
pub(super) struct Kept {
    pub(super) path: String,
    pub(super) key: &'static str,
    pub(super) body: String,
    pub(super) status: StatusCode,
    pub(super) text: String,
}

/// What a merchant must find, everything in the order in which it was made.
pub(super) struct Merchant {
    pub(super) key: String,
    pub(super) payments: Vec<Payment>,
    pub(super) endpoints: Vec<Endpoint>,
    pub(super) owed: Vec<Owed>,
    pub(super) kept: Vec<Kept>,
}

pub(super) struct Told {
    pub(super) status: StatusCode,
    pub(super) is_replayed: bool,
    pub(super) text: String,
}

impl Told {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// A refusal, with this in its message.
    pub(super) fn is_refused(&self, status: u16, why: &str) {
        assert_eq!(self.status, status, "{}", self.text);
        let body = self.json();
        assert_eq!(body["statusCode"], status);
        assert!(body["message"].to_string().contains(why), "{why:?} is not in {}", self.text);
    }
}

/// So many minor units as the API writes them.
pub(super) fn money(minor: u64) -> Value {
    let text = format!("{}.{:02}", minor / 100, minor % 100);
    serde_json::from_str(text.trim_end_matches('0').trim_end_matches('.')).unwrap()
}

/// The minor units of a plain decimal.
pub(super) fn minor_units(amount: &str) -> u64 {
    let (whole, fraction) = amount.split_once('.').unwrap_or((amount, ""));
    format!("{whole}{fraction:0<2}").parse().unwrap()
}

/// 5 percent, half a minor unit rounded up.
pub(super) fn fee(minor: u64) -> u64 {
    (minor + 10) / 20
}

pub(super) fn public(raw: &'static str) -> &'static str {
    match raw {
        "created" => "pending",
        "paid" => "completed",
        raw => raw,
    }
}

/// The place that a step tells of, if there is any.
pub(super) fn place_in<T>(all: &[T], place: usize) -> Option<usize> {
    place.checked_rem(all.len())
}

pub(super) fn page_of<'a, T>(all: impl DoubleEndedIterator<Item = &'a T>, page: usize, limit: usize) -> Vec<&'a T> {
    all.rev().skip((page - 1) * limit).take(limit).collect()
}

impl Payment {
    pub(super) fn net(&self) -> u64 {
        self.minor - fee(self.minor)
    }

    pub(super) fn is_open(&self) -> bool {
        self.raw == "created"
    }

    /// Whether it is shown as it must be.
    pub(super) fn agrees_with(&self, text: &str) {
        let told: Value = serde_json::from_str(text).unwrap();
        let environment = if self.who == Who::Live { "live" } else { "test" };
        let expected = json!({
            "id": self.id, "amount": money(self.minor), "currency": self.currency,
            "status": public(self.raw), "rawStatus": self.raw,
            "environment": environment, "isSimulated": self.who == Who::Test, "paymentMethod": self.method,
            "platformFeeAmount": money(fee(self.minor)), "platform_fee": money(fee(self.minor)), "feePercentage": 5,
            "netAmount": money(self.net()), "net_amount": money(self.net()),
        });
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(&told[name], value, "{name} in {text}");
        }
        assert_eq!(told["paid_at"].is_string(), matches!(self.raw, "paid" | "refunded"), "paid_at in {text}");
        assert_eq!(told["refund"].is_object(), self.raw == "refunded", "refund in {text}");
        if self.raw == "refunded" {
            assert_eq!(told["refund"]["amount"], money(self.minor));
            assert_eq!(told["refund"]["requiresManualSettlement"], self.currency == "BDT");
        }
    }
}
