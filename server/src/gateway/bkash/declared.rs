//! What bKash declares of itself.

use payments_core::{Amount, Currency, PaymentMethod};

use super::{
    dialect::{Dialect, V1, V2},
    errors::ERRORS,
    notice::MAX_BYTES,
};
use crate::{
    domain::{GatewayName, RowKind},
    gateway::{
        declaration::{AmountLimits, Ask, CustomerField, Declaration, RefundWay, Way},
        reference::ReferenceForm,
        returns::{Hint, Returns},
        settings::{Setting, SettingError, SettingKind, Settings},
        statement_columns::StatementColumns,
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
    // A `paymentID` lives so long; nothing asks for less.
    session_seconds: [24 * 60 * 60; 2],
    refunds: RefundWay::Manual,
    most_refunds: Some(10),
    needs_token: true,
    lists: &[],
    statement: Some(&STATEMENT),
    errors: ERRORS,
    returns: Returns {
        outcome: "status",
        words: &[("success", Hint::Approved), ("failure", Hint::CouldNotPay), ("cancel", Hint::Cancelled)],
        attempt: "paymentID",
    },
    notice_bytes: Some(MAX_BYTES),
    notice_answer: ("", ""),
    settings: &[
        Setting { key: "version", kind: SettingKind::Word(&[V1.version, V2.version]) },
        Setting { key: "base_url", kind: SettingKind::Url { live } },
        Setting { key: "refunds", kind: SettingKind::Word(&["by_hand", "by_api"]) },
        Setting { key: "notice_topic", kind: SettingKind::Optional },
        Setting { key: "app_key", kind: SettingKind::Credential },
        Setting { key: "app_secret", kind: SettingKind::Credential },
        Setting { key: "username", kind: SettingKind::Credential },
        Setting { key: "password", kind: SettingKind::Credential },
    ],
    setup: "set all of them, or none",
    check,
    mode: |_| "live",
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

/// By the names of bKash's API, and those of its portal.
static STATEMENT: StatementColumns = StatementColumns {
    name: "bkash",
    id: &["trxID", "Transaction ID"],
    kind: &["transactionType", "Type"],
    kinds: &[
        ("payment", RowKind::Payment),
        ("bkash tokenized checkout via api", RowKind::Payment),
        ("refund", RowKind::Refund),
        ("reversal", RowKind::Refund),
        ("chargeback", RowKind::Dispute),
        ("charge", RowKind::Fee),
        ("fee", RowKind::Fee),
    ],
    other_kind: Some(RowKind::Other),
    references: &[
        &["merchantInvoiceNumber", "Merchant Invoice", "Reference"],
        &["originalTrxID", "Original Transaction ID"],
        &["trxID", "Transaction ID"],
    ],
    gross: &["amount", "Transaction Amount"],
    fee: Some(&["serviceFee", "Charge", "Fee"]),
    net: Some(&["creditedAmount", "Net Amount"]),
    currency: Some(&["currency"]),
    date: &["completedTime", "Transaction Date", "Date"],
    takes_without_sign: true,
};
