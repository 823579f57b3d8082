//! What bKash declares of itself.

use payments_core::{Amount, Currency, PaymentMethod};

use super::{
    Bkash,
    dialect::{Dialect, V1, V2},
};
use crate::{
    domain::GatewayName,
    gateway::{
        contract::RefundWay,
        declaration::{AmountLimits, Ask, CustomerField, Declaration, Way},
        reference::ReferenceForm,
        returns::{Hint, Returns},
        settings::{Setting, SettingError, SettingKind, Settings},
    },
};

/// bKash's limits are not known for certain, so its own answer decides. One of its documents requires at least one taka. The
/// maximum of a wallet depends on its owner and on the merchant's contract.
const LIMITS: AmountLimits = AmountLimits { least: Amount::from_minor(1), most: Amount::MAX };

pub(in crate::gateway) static DECLARED: Declaration = Declaration {
    name: GatewayName::of("bkash"),
    title: "bKash",
    ways: &[Way {
        name: "bkash",
        method: PaymentMethod::Mfs,
        title: ["bKash", "বিকাশ"],
        hint: ["Confirm with your PIN on bKash's page.", "বিকাশের নিজস্ব পাতায় পিন দিয়ে নিশ্চিত করবেন।"],
        limits: &[(Currency::Bdt, LIMITS)],
        asks: &[Ask {
            field: CustomerField::Phone,
            is_required: false,
            label: ["Your bKash number", "আপনার বিকাশ নম্বর"],
            hint: [
                "11 digits, such as 01712345678. Optional: you can also enter it on bKash's page.",
                "১১ সংখ্যা, যেমন 01712345678। খালি রেখে বিকাশের পাতায়ও দিতে পারেন।",
            ],
        }],
    }],
    reference: ReferenceForm::WithPayment,
    refunds: RefundWay::Manual,
    needs_token: true,
    lists: &[],
    returns: Returns {
        outcome: "status",
        words: &[("success", Hint::Approved), ("failure", Hint::CouldNotPay), ("cancel", Hint::Cancelled)],
        attempt: "paymentID",
    },
    notice_bytes: None,
    notice_answer: ("", ""),
    settings: &[
        Setting { key: "version", kind: SettingKind::Word(&[V1.version, V2.version]) },
        Setting { key: "base_url", kind: SettingKind::Url { live } },
        Setting { key: "refunds", kind: SettingKind::Word(&["by_hand", "by_api"]) },
        Setting { key: "app_key", kind: SettingKind::Credential },
        Setting { key: "app_secret", kind: SettingKind::Credential },
        Setting { key: "username", kind: SettingKind::Credential },
        Setting { key: "password", kind: SettingKind::Credential },
    ],
    setup: "set all of them, or none",
    check,
    mode,
    make: |parts| Ok(Box::new(Bkash::new(parts))),
};

fn live(settings: &Settings) -> &'static str {
    Dialect::of(settings).live
}

/// Refuses the base URL of the other version.
fn check(settings: &Settings) -> Result<(), SettingError> {
    let ends = |dialect: &Dialect| settings.text("base_url").ends_with(&format!("/{}", dialect.version));
    let what = "must end with /v1.2.0-beta, the version; set PAYMENTS_BKASH_VERSION to v2 for /v2";
    let what = match Dialect::of(settings).version == V2.version {
        true if ends(&V1) => "must end with /v2, the version",
        false if ends(&V2) => what,
        _ => return Ok(()),
    };
    Err(SettingError { key: "base_url", what })
}

fn mode(settings: &Settings) -> String {
    match settings.text("base_url") {
        url if url == live(settings) => "live".to_owned(),
        url if url.contains("sandbox") => format!("bKash's sandbox at {url}"),
        url => format!("at {url}"),
    }
}
