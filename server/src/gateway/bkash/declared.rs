//! What bKash declares of itself.

use payments_core::{Amount, Currency, PaymentMethod};

use super::Bkash;
use crate::gateway::{
    contract::RefundWay,
    declaration::{AmountLimits, Ask, CustomerField, Declaration, Way},
    reference::ReferenceForm,
    returns::{Hint, Returns},
    settings::{Setting, SettingKind, Settings},
};

const LIVE: &str = "https://tokenized.pay.bka.sh/v1.2.0-beta";

/// bKash's limits are not known for certain, so its own answer decides. One of its documents requires at least one taka. The
/// maximum of a wallet depends on its owner and on the merchant's contract.
const LIMITS: AmountLimits = AmountLimits { least: Amount::from_minor(1), most: Amount::MAX };

pub(in crate::gateway) static DECLARED: Declaration = Declaration {
    name: "bkash",
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
    captures: true,
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
        Setting { key: "base_url", kind: SettingKind::Url { live: LIVE } },
        Setting { key: "app_key", kind: SettingKind::Credential },
        Setting { key: "app_secret", kind: SettingKind::Credential },
        Setting { key: "username", kind: SettingKind::Credential },
        Setting { key: "password", kind: SettingKind::Credential },
    ],
    setup: "set all of them, or none",
    check: |_| Ok(()),
    mode,
    make: |parts| Ok(Box::new(Bkash::new(parts))),
};

fn mode(settings: &Settings) -> String {
    match settings.text("base_url") {
        LIVE => "live".to_owned(),
        url if url.contains("sandbox") => format!("bKash's sandbox at {url}"),
        url => format!("at {url}"),
    }
}
