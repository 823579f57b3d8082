//! The expected state of a merchant.

use std::time::Instant;

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::steps::Who;

/// An expected payment.
pub(super) struct Payment {
    pub(super) id: String,
    pub(super) who: Who,
    pub(super) minor: u64,
    pub(super) currency: &'static str,
    pub(super) raw: &'static str,
    pub(super) method: Option<&'static str>,
    /// The refunds in minor units, oldest first.
    pub(super) refunds: Vec<u64>,
    /// How often the customer went to the gateway.
    pub(super) attempts: u32,
    /// The API's last answer. It changes only when the payment changes.
    pub(super) text: String,
    /// The session expires between these two moments.
    pub(super) expires_between: (Instant, Instant),
}

pub(super) struct Endpoint {
    pub(super) id: String,
    pub(super) text: String,
    /// The secrets that sign deliveries, the present one first.
    pub(super) secrets: Vec<String>,
    pub(super) events: &'static [&'static str],
    pub(super) is_active: bool,
    pub(super) is_down: bool,
    pub(super) is_removed: bool,
}

/// A delivery that an endpoint must get.
pub(super) struct Delivery {
    pub(super) endpoint: String,
    pub(super) event: &'static str,
    pub(super) data: Value,
    /// The secrets that sign it.
    pub(super) secrets: Vec<String>,
    /// Whether nothing listens at its destination.
    pub(super) is_missed: bool,
    pub(super) is_resent: bool,
}

impl Endpoint {
    /// A delivery to the endpoint as it is now.
    pub(super) fn delivery(&self, event: &'static str, data: Value) -> Delivery {
        let (endpoint, secrets) = (self.id.clone(), self.secrets.clone());
        Delivery { endpoint, event, data, secrets, is_missed: self.is_down, is_resent: false }
    }
}

/// The response stored for an idempotency key.
pub(super) struct Stored {
    pub(super) path: String,
    pub(super) key: &'static str,
    pub(super) body: String,
    pub(super) status: StatusCode,
    pub(super) text: String,
}

/// The expected state of a merchant, oldest first.
pub(super) struct Merchant {
    pub(super) key: String,
    pub(super) payments: Vec<Payment>,
    pub(super) endpoints: Vec<Endpoint>,
    pub(super) deliveries: Vec<Delivery>,
    pub(super) stored: Vec<Stored>,
}

pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) is_replayed: bool,
    pub(super) text: String,
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    /// Asserts a refusal whose message contains `why`.
    pub(super) fn assert_refused(&self, status: u16, why: &str) {
        assert_eq!(self.status, status, "{}", self.text);
        let body = self.json();
        assert_eq!(body["statusCode"], status);
        assert!(body["message"].to_string().contains(why), "{why:?} is not in {}", self.text);
    }
}

/// Minor units as the API writes them.
pub(super) fn money(minor: u64) -> Value {
    let text = format!("{}.{:02}", minor / 100, minor % 100);
    serde_json::from_str(text.trim_end_matches('0').trim_end_matches('.')).unwrap()
}

/// Parses a plain decimal into minor units.
pub(super) fn minor_units(amount: &str) -> u64 {
    let (whole, fraction) = amount.split_once('.').unwrap_or((amount, ""));
    format!("{whole}{fraction:0<2}").parse().unwrap()
}

/// 5 percent, rounded half up.
pub(super) fn fee(minor: u64) -> u64 {
    (minor + 10) / 20
}

pub(super) fn public(raw: &'static str) -> &'static str {
    match raw {
        "created" | "pending" => "pending",
        "paid" => "completed",
        raw => raw,
    }
}

/// Maps a step's index into the list, or `None` if the list is empty.
pub(super) fn index_in<T>(all: &[T], index: usize) -> Option<usize> {
    index.checked_rem(all.len())
}

pub(super) fn page_of<'a, T>(all: impl DoubleEndedIterator<Item = &'a T>, page: usize, limit: usize) -> Vec<&'a T> {
    all.rev().skip((page - 1) * limit).take(limit).collect()
}

impl Payment {
    pub(super) fn net(&self) -> u64 {
        self.minor - fee(self.minor)
    }

    /// The sum of the refunds.
    pub(super) fn refunded(&self) -> u64 {
        self.refunds.iter().sum()
    }

    pub(super) fn left(&self) -> u64 {
        self.minor - self.refunded()
    }

    /// What the platform owes the merchant for a paid payment. The fee is returned in proportion, rounded half up.
    pub(super) fn owed(&self) -> u64 {
        let (minor, refunded, fee) = (u128::from(self.minor), u128::from(self.refunded()), u128::from(fee(self.minor)));
        let fee_back = (2 * fee * refunded + minor) / (2 * minor);
        self.net() - (self.refunded() - u64::try_from(fee_back).unwrap())
    }

    pub(super) fn is_open(&self) -> bool {
        ["created", "pending"].contains(&self.raw)
    }

    /// Asserts that the API shows this payment.
    pub(super) fn assert_shown_as(&self, text: &str) {
        let answer: Value = serde_json::from_str(text).unwrap();
        let environment = if self.who == Who::Live { "live" } else { "test" };
        let expected = json!({
            "id": self.id, "amount": money(self.minor), "currency": self.currency,
            "status": public(self.raw), "rawStatus": self.raw,
            "environment": environment, "isSimulated": self.who == Who::Test, "paymentMethod": self.method,
            "platformFeeAmount": money(fee(self.minor)), "platform_fee": money(fee(self.minor)), "feePercentage": 5,
            "netAmount": money(self.net()), "net_amount": money(self.net()),
        });
        for (name, value) in expected.as_object().unwrap() {
            assert_eq!(&answer[name], value, "{name} in {text}");
        }
        assert_eq!(answer["paid_at"].is_string(), matches!(self.raw, "paid" | "refunded"), "paid_at in {text}");
        let Some(last) = self.refunds.last() else {
            for name in ["refund", "refunds", "amountRefunded"] {
                assert!(answer.get(name).is_none(), "{name} in {text}");
            }
            return;
        };
        let amounts: Vec<_> = answer["refunds"].as_array().unwrap().iter().map(|one| one["amount"].clone()).collect();
        assert_eq!(amounts, self.refunds.iter().map(|minor| money(*minor)).collect::<Vec<_>>(), "refunds in {text}");
        assert_eq!((&answer["refund"]["amount"], &answer["amountRefunded"]), (&money(*last), &money(self.refunded())));
        assert_eq!(answer["refund"]["requiresManualSettlement"], self.currency == "BDT");
        assert_eq!(self.left() == 0, self.raw == "refunded", "{text}");
    }
}
