//! The checkout page's texts in English and Bangla. A missing text does not compile.

use payments_core::PaymentMethod;

pub(super) use crate::http::language::OTHER_LANGUAGE;
use crate::http::language::Text;

pub(super) const PAY_TO: Text = ["You pay", "আপনি দিচ্ছেন"];
pub(super) const AMOUNT: Text = ["Amount", "পরিমাণ"];
pub(super) const ORDER: Text = ["Order", "অর্ডার"];
pub(super) const LINES: Text = ["Your order", "আপনার অর্ডার"];
pub(super) const PAY_BY: Text = ["Pay by", "পরিশোধের শেষ সময়"];
pub(super) const TIME_LEFT: Text = ["time left", "বাকি আছে"];
pub(super) const SUPPORT: Text = ["If you need help, name this payment:", "সাহায্য লাগলে এই পেমেন্ট নম্বরটি জানান:"];
pub(super) const TEST_MARK: Text = ["Test payment", "পরীক্ষামূলক পেমেন্ট"];
pub(super) const TEST_NOTE: Text = ["No money moves.", "কোনো টাকা কাটা হবে না।"];
pub(super) const SIMULATOR_QUESTION: Text = ["How should this payment end?", "এই পেমেন্টের ফলাফল কী হবে?"];
pub(super) const SIMULATE_PAY: Text = ["Pay", "পরিশোধ করুন"];
pub(super) const SIMULATE_FAIL: Text = ["Fail", "ব্যর্থ করুন"];
pub(super) const SIMULATE_CANCEL: Text = ["Cancel", "বাতিল করুন"];
pub(super) const HOW_TO_PAY: Text = ["How do you want to pay?", "কীভাবে পরিশোধ করবেন?"];
pub(super) const MOBILE_MONEY: Text = ["bKash", "বিকাশ"];
pub(super) const MOBILE_MONEY_NOTE: Text =
    ["Confirm with your PIN on bKash's page.", "বিকাশের নিজস্ব পাতায় পিন দিয়ে নিশ্চিত করবেন।"];
pub(super) const CARD: Text = ["Card", "কার্ড"];
pub(super) const CARD_NOTE: Text =
    ["Enter your card on the card processor's page.", "কার্ডের তথ্য কার্ড প্রসেসরের নিজস্ব পাতায় দেবেন।"];
pub(super) const PHONE: Text = ["Your bKash number", "আপনার বিকাশ নম্বর"];
pub(super) const PHONE_HINT: Text = [
    "11 digits, such as 01712345678. Optional: you can also enter it on bKash's page.",
    "১১ সংখ্যা, যেমন 01712345678। খালি রেখে বিকাশের পাতায়ও দিতে পারেন।",
];
pub(super) const PHONE_FAULT: Text = [
    "Enter a Bangladeshi mobile number: 11 digits that start with 013 to 019.",
    "এটি বাংলাদেশের মোবাইল নম্বর নয়। নম্বরটি ১১ সংখ্যার এবং 013 থেকে 019 দিয়ে শুরু হয়।",
];
pub(super) const TRY_AGAIN: Text =
    ["The payment did not go through. You can try again.", "পেমেন্টটি সম্পন্ন হয়নি। আবার চেষ্টা করতে পারেন।"];
pub(super) const PAY: Text = ["Pay", "পরিশোধ করুন"];
pub(super) const BACK_TO: Text = ["Back to", "ফিরে যান:"];
pub(super) const LEADS_TO: Text = ["This link goes to", "এই লিংকটি যে সাইটে নিয়ে যাবে:"];
pub(super) const PROGRESS: Text = ["One moment, please. Do not close this page.", "একটু অপেক্ষা করুন। এই পাতা বন্ধ করবেন না।"];
pub(super) const TO_GATEWAY: Text = ["Taking you to the payment page…", "পেমেন্ট পাতায় নিয়ে যাওয়া হচ্ছে…"];
pub(super) const TO_SHOP: Text = ["Taking you back to the shop…", "দোকানে ফিরিয়ে নেওয়া হচ্ছে…"];
pub(super) const GO_ON: Text = ["Continue", "এগিয়ে যান"];
pub(super) const CHECKING: Text = ["We are checking your payment", "আপনার পেমেন্ট যাচাই করা হচ্ছে"];
pub(super) const CHECKING_NOTE: Text = [
    "If you have paid, wait a moment: this page shows the result by itself. Do not pay again.",
    "টাকা দিয়ে থাকলে আর কিছু করতে হবে না: এই পাতাই একটু পরে জানাবে। আবার টাকা দেবেন না।",
];
pub(super) const CONTINUE_PAYING: Text = ["I have not paid yet. Continue", "এখনও টাকা দিইনি: এগিয়ে যান"];
pub(super) const PAID: Text = ["Paid", "পরিশোধ হয়েছে"];
pub(super) const PAID_NOTE: Text = ["Thank you.", "ধন্যবাদ।"];
pub(super) const SHOP_TOLD: Text = ["We have notified the shop.", "দোকানকে জানানো হয়েছে।"];
pub(super) const RECEIPT: Text = ["Receipt", "রসিদ"];
pub(super) const PAID_TO: Text = ["Paid to", "প্রাপক"];
pub(super) const PAID_AT: Text = ["Paid on", "পরিশোধের সময়"];
pub(super) const METHOD: Text = ["Paid with", "পরিশোধের মাধ্যম"];
pub(super) const STATUS: Text = ["Status", "অবস্থা"];
pub(super) const REFUND: Text = ["Refunded", "ফেরত"];
pub(super) const PRINT: Text = ["Print the receipt", "রসিদ প্রিন্ট করুন"];
pub(super) const TEST: Text = ["Test, no money moved", "পরীক্ষামূলক, কোনো টাকা কাটা হয়নি"];
pub(super) const DHAKA: Text = ["Dhaka time", "ঢাকার সময়"];
pub(super) const FAILED: Text = ["The payment failed", "পেমেন্ট ব্যর্থ হয়েছে"];
pub(super) const CANCELLED: Text = ["You cancelled this payment", "আপনি এই পেমেন্ট বাতিল করেছেন"];
pub(super) const EXPIRED: Text = ["This payment link has expired", "এই পেমেন্ট লিংকের মেয়াদ শেষ"];
pub(super) const IS_REFUNDED: Text = ["Refunded", "টাকা ফেরত দেওয়া হয়েছে"];
pub(super) const REFUNDED: Text = ["This payment was refunded", "এই পেমেন্টের টাকা ফেরত দেওয়া হয়েছে"];
pub(super) const REFUNDED_NOTE: Text = [
    "The money goes back to the account you paid from. This can take a few days.",
    "যে পথে টাকা এসেছিল সে পথেই ফেরত যাবে। কয়েক দিন লাগতে পারে।",
];
pub(super) const NOTHING_TAKEN: Text = ["No money was taken.", "কোনো টাকা কাটা হয়নি।"];
pub(super) const NEW_PAYMENT: Text =
    ["To try again, go back to the shop and start a new payment.", "আবার চেষ্টা করতে দোকানে ফিরে নতুন পেমেন্ট শুরু করুন।"];
pub(super) const UTC: Text = ["UTC", "ইউটিসি"];
pub(super) const MONTHS: Text = [
    "January February March April May June July August September October November December",
    "জানুয়ারি ফেব্রুয়ারি মার্চ এপ্রিল মে জুন জুলাই আগস্ট সেপ্টেম্বর অক্টোবর নভেম্বর ডিসেম্বর",
];
pub(super) const NO_PAGE: Text = ["No such page", "এমন কোনো পাতা নেই"];
pub(super) const NO_PAGE_NOTE: Text =
    ["There is nothing at this address. Check the link.", "এই ঠিকানায় কিছু নেই। লিংকটি মিলিয়ে দেখুন।"];
pub(super) const UNKNOWN: Text = ["Unknown payment", "অজানা পেমেন্ট"];
pub(super) const UNKNOWN_NOTE: Text = [
    "There is no payment at this address. Go back to the shop and start again.",
    "এই ঠিকানায় কোনো পেমেন্ট নেই। দোকানে ফিরে আবার শুরু করুন।",
];
pub(super) const NO_ANSWER: Text = [
    "The payment service is not responding. No money was taken. Please try again in a moment.",
    "পেমেন্ট সেবা এই মুহূর্তে সাড়া দিচ্ছে না। কোনো টাকা কাটা হয়নি। একটু পরে আবার চেষ্টা করুন।",
];
pub(super) const REFUSED: Text = [
    "The payment service declined this payment. No money was taken. Please contact the shop.",
    "পেমেন্ট সেবা এই পেমেন্টটি নেয়নি। কোনো টাকা কাটা হয়নি। দোকানের সঙ্গে যোগাযোগ করুন।",
];
pub(super) const TOO_MANY: Text = [
    "Too many requests from your network. Please wait a minute and reload the page.",
    "আপনার নেটওয়ার্ক থেকে অনেক বেশি অনুরোধ এসেছে। এক মিনিট পরে পাতাটি আবার খুলুন।",
];
pub(super) const TROUBLE: Text = ["This page is not available right now", "পাতাটি এই মুহূর্তে দেখানো যাচ্ছে না"];
pub(super) const TROUBLE_NOTE: Text = [
    "If you have paid, do not pay again. Please reload the page in a moment.",
    "টাকা দিয়ে থাকলে আবার দেবেন না। একটু পরে পাতাটি আবার খুলুন।",
];

/// The name of a payment method, unless it is of a later version.
pub(super) fn method(method: &PaymentMethod) -> Option<Text> {
    match method {
        PaymentMethod::Mfs => Some(MOBILE_MONEY),
        PaymentMethod::Card => Some(CARD),
        PaymentMethod::Test => Some(TEST),
        _ => None,
    }
}
