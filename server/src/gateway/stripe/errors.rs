//! Stripe's codes and its banks' reasons, and what they mean.

use crate::gateway::declaration::ErrorWords;

pub(super) const ERRORS: &[ErrorWords] = &[
    ErrorWords {
        codes: &["card_declined", "generic_decline", "do_not_honor"],
        meaning: ["The bank declined the card without a reason.", "ব্যাংক কারণ না জানিয়ে কার্ডটি গ্রহণ করেনি।"],
    },
    ErrorWords {
        codes: &["insufficient_funds", "balance_insufficient"],
        meaning: ["There was not enough money in the account.", "অ্যাকাউন্টে যথেষ্ট টাকা ছিল না।"],
    },
    ErrorWords {
        codes: &["expired_card", "expired_or_canceled_card"],
        meaning: ["The card has expired or was cancelled.", "কার্ডের মেয়াদ শেষ বা কার্ডটি বাতিল।"],
    },
    ErrorWords {
        codes: &["incorrect_number", "incorrect_cvc", "invalid_cvc", "invalid_expiry_month", "invalid_expiry_year"],
        meaning: ["The card's number, date or security code was wrong.", "কার্ডের নম্বর, তারিখ বা নিরাপত্তা কোড ভুল ছিল।"],
    },
    ErrorWords {
        codes: &["authentication_required", "payment_intent_authentication_failure"],
        meaning: ["The payment was not confirmed with the bank.", "ব্যাংকের কাছে পেমেন্টটি নিশ্চিত করা হয়নি।"],
    },
    ErrorWords {
        codes: &["lost_card", "stolen_card", "lost_or_stolen_card", "pickup_card", "fraudulent"],
        meaning: ["The bank does not trust this use of the card.", "ব্যাংক কার্ডের এই ব্যবহারে সন্দেহ করেছে।"],
    },
    ErrorWords {
        codes: &["processing_error", "bank_cannot_process"],
        meaning: ["The bank had a fault.", "ব্যাংকে ত্রুটি ছিল।"],
    },
    ErrorWords {
        codes: &["charge_already_refunded"],
        meaning: ["The money has already gone back.", "টাকা আগেই ফেরত গেছে।"],
    },
    ErrorWords {
        codes: &["charge_disputed", "refund_disputed_payment"],
        meaning: ["The customer's bank disputes this payment.", "গ্রাহকের ব্যাংক এই পেমেন্টে আপত্তি তুলেছে।"],
    },
    ErrorWords {
        codes: &["charge_not_refundable"],
        meaning: ["Stripe does not refund this payment.", "Stripe এই পেমেন্টের টাকা ফেরত দেয় না।"],
    },
    ErrorWords {
        codes: &["product_not_received", "product_unacceptable", "credit_not_processed", "subscription_canceled"],
        meaning: [
            "The customer says that the goods, or the money for them, did not come as agreed.",
            "গ্রাহক বলেছেন, পণ্য বা তার টাকা কথামতো আসেনি।",
        ],
    },
    ErrorWords {
        codes: &["duplicate", "unrecognized", "debit_not_authorized"],
        meaning: [
            "The customer does not recognize this payment, or paid twice.",
            "গ্রাহক এই পেমেন্ট চিনতে পারছেন না, বা দুবার টাকা দিয়েছেন।",
        ],
    },
];
