//! SSLCommerz's words for what went wrong, and what they mean.

use crate::gateway::declaration::ErrorWords;

pub(super) const ERRORS: &[ErrorWords] = &[
    ErrorWords {
        codes: &["FAILED"],
        meaning: ["The card, the bank or the wallet did not make the payment.", "কার্ড, ব্যাংক বা ওয়ালেট পেমেন্টটি করেনি।"],
    },
    ErrorWords {
        codes: &["UNATTEMPTED"],
        meaning: ["No way to pay was chosen on SSLCommerz's page.", "SSLCommerz-এর পাতায় পরিশোধের মাধ্যম বাছা হয়নি।"],
    },
    ErrorWords {
        codes: &["EXPIRED"],
        meaning: ["The time to pay at SSLCommerz ran out.", "SSLCommerz-এ পরিশোধের সময় পেরিয়ে গেছে।"],
    },
    ErrorWords {
        codes: &["CANCELLED"],
        meaning: ["The payment was cancelled at SSLCommerz.", "SSLCommerz-এ পেমেন্টটি বাতিল করা হয়েছে।"],
    },
    ErrorWords {
        codes: &["INVALID_TRANSACTION", "INVALID_REQUEST"],
        meaning: ["SSLCommerz does not know this payment.", "SSLCommerz এই পেমেন্টটি চেনে না।"],
    },
    ErrorWords {
        codes: &["INACTIVE"],
        meaning: ["SSLCommerz has switched the store off.", "SSLCommerz স্টোরটি বন্ধ রেখেছে।"],
    },
    ErrorWords {
        codes: &["failed"],
        meaning: ["SSLCommerz does not make this refund.", "SSLCommerz এই টাকা ফেরত দেয় না।"],
    },
    ErrorWords {
        codes: &["cancelled"],
        meaning: [
            "SSLCommerz cancelled this refund: whether its money went back, its panel tells.",
            "SSLCommerz এই ফেরত বাতিল করেছে: টাকা ফেরত গেছে কি না, তার প্যানেলে দেখা যাবে।",
        ],
    },
];
