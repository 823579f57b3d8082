//! What Stripe declares of itself.

use payments_core::{Amount, Currency, PaymentMethod};

use super::errors::ERRORS;
use crate::{
    domain::GatewayName,
    gateway::{
        declaration::{AmountLimits, Declaration, GatewayList, RefundWay, Way},
        reference::ReferenceForm,
        returns::{Hint, Returns},
        settings::{Setting, SettingError, SettingKind, Settings},
    },
};

const LIVE: &str = "https://api.stripe.com";

/// At least 50 cents, and at most eight digits of cents.
const LIMITS: AmountLimits = AmountLimits { least: Amount::from_minor(50), most: Amount::from_minor(99_999_999) };

pub(in crate::gateway) static DECLARED: Declaration = Declaration {
    name: GatewayName::of("stripe"),
    title: "Stripe",
    ways: &[Way {
        name: "stripe",
        method: PaymentMethod::Card,
        title: ["Card", "কার্ড"],
        hint: ["Enter your card on the card processor's page.", "কার্ডের তথ্য কার্ড প্রসেসরের নিজস্ব পাতায় দেবেন।"],
        limits: &[(Currency::Usd, LIMITS)],
        asks: &[],
    }],
    reference: ReferenceForm::WithPayment,
    // Half an hour to a day, with a minute for the way there.
    session_seconds: [31 * 60, 24 * 60 * 60 - 60],
    refunds: RefundWay::Gateway,
    most_refunds: None,
    needs_token: false,
    lists: &[GatewayList::Refunds, GatewayList::Disputes, GatewayList::Costs],
    statement: None,
    errors: ERRORS,
    returns: Returns {
        outcome: "outcome",
        words: &[("success", Hint::Approved), ("cancel", Hint::Cancelled)],
        attempt: "attempt",
    },
    // The longest events have hundreds of lines.
    notice_bytes: Some(1024 * 1024),
    notice_answer: ("application/json", r#"{"received":true}"#),
    settings: &[
        Setting { key: "base_url", kind: SettingKind::Url { live: |_| LIVE } },
        Setting { key: "secret_key", kind: SettingKind::Credential },
        Setting { key: "webhook_secret", kind: SettingKind::Credential },
    ],
    setup: "set secret_key and webhook_secret. Stripe's dashboard shows the latter, whsec_…, for an endpoint at the base URL and \
            /gateways/stripe/webhook",
    check,
    mode: |settings| if settings.text("secret_key").contains("_test_") { "test mode" } else { "live" },
};

const PUBLISHABLE_KEY: &str =
    "is a publishable key, which is for browsers; use the secret key, which begins with sk_ or rk_";
const NOT_A_SECRET_KEY: &str = "must begin with sk_ or rk_, as the secret keys in Stripe's dashboard do";
const NOT_A_WEBHOOK_SECRET: &str =
    "must begin with whsec_, as the signing secret of an endpoint in Stripe's dashboard does";

/// Checks that each secret is of its kind. Otherwise two swapped secrets would fail only at the first payment.
fn check(settings: &Settings) -> Result<(), SettingError> {
    let wrong = |key, what| Err(SettingError { key, what });
    match () {
        () if settings.begins("secret_key", &["pk_"]) => wrong("secret_key", PUBLISHABLE_KEY),
        () if !settings.begins("secret_key", &["sk_", "rk_"]) => wrong("secret_key", NOT_A_SECRET_KEY),
        () if !settings.begins("webhook_secret", &["whsec_"]) => wrong("webhook_secret", NOT_A_WEBHOOK_SECRET),
        () => Ok(()),
    }
}
