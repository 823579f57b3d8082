//! What Coinpost declares of itself. It is offered for dollars: a currency of its own would need a row in
//! [`Currency`](payments_core::Currency), which is outside its folder.

use payments_core::{Amount, Currency, PaymentMethod};

use crate::{
    domain::GatewayName,
    gateway::{
        declaration::{AmountLimits, Ask, CustomerField, Declaration, ErrorWords, RefundWay, Way},
        reference::ReferenceForm,
        returns::{Hint, Returns},
        settings::{Setting, SettingError, SettingKind},
    },
};

/// No name ends in `.invalid` (RFC 6761), so nothing is ever sent there.
const LIVE: &str = "https://api.coinpost.invalid";

pub(in crate::gateway) static DECLARED: Declaration = Declaration {
    name: GatewayName::of("coinpost"),
    title: "Coinpost",
    ways: &[Way {
        name: "coin",
        method: PaymentMethod::Card,
        title: ["Coins", "মুদ্রা"],
        hint: ["Put coins into an envelope.", "খামে মুদ্রা ভরুন।"],
        limits: &[(Currency::Usd, AmountLimits { least: Amount::from_major(1), most: Amount::from_major(500) })],
        asks: &[Ask {
            field: CustomerField::Email,
            is_required: true,
            label: ["Your e-mail address", "আপনার ই-মেইল ঠিকানা"],
            hint: ["", ""],
        }],
    }],
    reference: ReferenceForm::Of { alphabet: b"0123456789", chars: 20 },
    session_seconds: [60, 7 * 24 * 60 * 60],
    refunds: RefundWay::Gateway,
    most_refunds: Some(2),
    needs_token: false,
    lists: &[],
    statement: None,
    errors: &[ErrorWords {
        codes: &["empty"], meaning: ["There was nothing in the envelope.", "খামে কিছু ছিল না।"]
    }],
    returns: Returns {
        outcome: "end",
        words: &[("paid", Hint::Approved), ("left", Hint::Cancelled)],
        attempt: "order",
    },
    notice_bytes: Some(4 * 1024),
    notice_answer: ("text/plain", "thanks"),
    settings: &[
        Setting { key: "base_url", kind: SettingKind::Url { live: |_| LIVE } },
        Setting { key: "api_key", kind: SettingKind::Credential },
        Setting { key: "notice_key", kind: SettingKind::Credential },
        Setting { key: "account", kind: SettingKind::Word(&["merchant", "trial"]) },
    ],
    setup: "set api_key and notice_key, which Coinpost sends by post",
    check: |settings| match settings.text("notice_key").len() {
        0..16 => Err(SettingError { key: "notice_key", what: "must have at least 16 characters" }),
        _ => Ok(()),
    },
    mode: |settings| if settings.text("account") == "trial" { "a trial account" } else { "live" },
};
