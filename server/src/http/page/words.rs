//! Texts of the checkout page that code chooses or that appear more than once. All others are in the template.

pub(super) use crate::http::language::OTHER_LANGUAGE;
use crate::http::language::Text;

pub(super) const AMOUNT: Text = ["Amount", "পরিমাণ"];
pub(super) const ORDER: Text = ["Order", "অর্ডার"];
pub(super) const TRY_AGAIN: Text =
    ["The payment did not go through. You can try again.", "পেমেন্টটি সম্পন্ন হয়নি। আবার চেষ্টা করতে পারেন।"];
pub(super) const BACK_TO: Text = ["Back to", "ফিরে যান:"];
pub(super) const PROGRESS: Text = ["One moment, please. Do not close this page.", "একটু অপেক্ষা করুন। এই পাতা বন্ধ করবেন না।"];
pub(super) const PAID: Text = ["Paid", "পরিশোধ হয়েছে"];
pub(super) const DHAKA: Text = ["Dhaka time", "ঢাকার সময়"];
pub(super) const FAILED: Text = ["The payment failed", "পেমেন্ট ব্যর্থ হয়েছে"];
pub(super) const CANCELLED: Text = ["You cancelled this payment", "আপনি এই পেমেন্ট বাতিল করেছেন"];
pub(super) const EXPIRED: Text = ["This payment link has expired", "এই পেমেন্ট লিংকের মেয়াদ শেষ"];
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
pub(super) const YOUR_PHONE: Text = ["Your mobile number", "আপনার মোবাইল নম্বর"];
pub(super) const YOUR_NAME: Text = ["Your name", "আপনার নাম"];
pub(super) const YOUR_EMAIL: Text = ["Your e-mail address", "আপনার ই-মেইল"];
pub(super) const WRONG_PHONE: Text = [
    "Enter a Bangladeshi mobile number: 11 digits that start with 013 to 019.",
    "এটি বাংলাদেশের মোবাইল নম্বর নয়। নম্বরটি ১১ সংখ্যার এবং 013 থেকে 019 দিয়ে শুরু হয়।",
];
pub(super) const NEEDED: Text = ["This way to pay needs it.", "এই পদ্ধতিতে পরিশোধ করতে এটি লাগবে।"];
