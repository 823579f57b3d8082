//! What SSLCommerz declares of itself.

use payments_core::{Amount, Currency, PaymentMethod};

use super::errors::ERRORS;
use crate::{
    domain::{GatewayName, RowKind},
    gateway::{
        declaration::{AmountLimits, Ask, CustomerField, Declaration, RefundWay, Way},
        reference::ReferenceForm,
        returns::{Hint, Returns},
        settings::{Setting, SettingKind},
        statement_columns::StatementColumns,
    },
};

const LIVE: &str = "https://securepay.sslcommerz.com";

/// SSLCommerz also takes other currencies, but converts them at rates of its own. Its limits, its refunds and what it keeps are
/// then in taka, so this server offers it for taka only.
const LIMITS: AmountLimits = AmountLimits { least: Amount::from_major(10), most: Amount::from_major(500_000) };

pub(in crate::gateway) static DECLARED: Declaration = Declaration {
    name: GatewayName::of("sslcommerz"),
    title: "SSLCommerz",
    ways: &[Way {
        name: "sslcommerz",
        method: PaymentMethod::Card,
        title: ["Card, bank or wallet", "কার্ড, ব্যাংক বা ওয়ালেট"],
        hint: ["Choose how to pay on SSLCommerz's page.", "SSLCommerz-এর নিজস্ব পাতায় পরিশোধের মাধ্যম বেছে নেবেন।"],
        limits: &[(Currency::Bdt, LIMITS)],
        asks: &[
            Ask {
                field: CustomerField::Name, is_required: true, label: ["Your name", "আপনার নাম"], hint: ["", ""]
            },
            Ask {
                field: CustomerField::Email,
                is_required: true,
                label: ["Your e-mail address", "আপনার ই-মেইল ঠিকানা"],
                hint: ["At most 50 characters.", "সর্বোচ্চ ৫০ অক্ষর।"],
            },
            Ask {
                field: CustomerField::Phone,
                is_required: true,
                label: ["Your mobile number", "আপনার মোবাইল নম্বর"],
                hint: ["11 digits, such as 01712345678.", "১১ সংখ্যা, যেমন 01712345678।"],
            },
        ],
    }],
    // As long as `tran_id` and `refund_trans_id` may be.
    reference: ReferenceForm::Of {
        alphabet: b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789",
        chars: 30,
    },
    // Nobody documents how long a page can be paid; the server asks for a day after it gave a session up.
    session_seconds: [0, u32::MAX],
    refunds: RefundWay::Gateway,
    most_refunds: None,
    needs_token: false,
    lists: &[],
    statement: Some(&STATEMENT),
    errors: ERRORS,
    returns: Returns {
        outcome: "status",
        words: &[("VALID", Hint::Approved), ("FAILED", Hint::CouldNotPay), ("CANCELLED", Hint::Cancelled)],
        attempt: "tran_id",
    },
    notice_bytes: Some(64 * 1024),
    notice_answer: ("text/plain", "OK"),
    settings: &[
        Setting { key: "base_url", kind: SettingKind::Url { live: |_| LIVE } },
        Setting { key: "store_id", kind: SettingKind::Credential },
        Setting { key: "store_password", kind: SettingKind::Credential },
        Setting { key: "hash", kind: SettingKind::Word(&["sha256", "md5"]) },
    ],
    setup: "set store_id and store_password, which SSLCommerz sends by e-mail. The latter is not the panel's password",
    check: |_| Ok(()),
    mode: |_| "live",
};

/// By the names of SSLCommerz's API.
static STATEMENT: StatementColumns = StatementColumns {
    name: "sslcommerz",
    id: &["val_id", "settlement_id"],
    kind: &["type", "transaction type"],
    kinds: &[
        ("sale", RowKind::Payment),
        ("payment", RowKind::Payment),
        ("refund", RowKind::Refund),
        ("chargeback", RowKind::Dispute),
        ("charge", RowKind::Fee),
        ("fee", RowKind::Fee),
    ],
    other_kind: Some(RowKind::Other),
    references: &[&["tran_id"], &["bank_tran_id"]],
    gross: &["amount"],
    fee: None,
    net: Some(&["store_amount"]),
    currency: Some(&["currency"]),
    date: &["tran_date", "settlement_date", "date"],
    takes_without_sign: true,
};
