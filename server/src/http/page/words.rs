//! The checkout page's texts in English and Bangla. A missing text does not compile.

use warp::http::{HeaderMap, header};

/// A language of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Language {
    English,
    Bangla,
}

impl Language {
    /// Returns the language chosen in this request or an earlier one; otherwise the browser's preference.
    pub(super) fn of(chosen: Option<&str>, headers: &HeaderMap) -> Self {
        chosen.and_then(Self::named).or_else(|| stored(headers)).unwrap_or_else(|| preferred(headers))
    }

    fn named(code: &str) -> Option<Self> {
        match code {
            "en" => Some(Self::English),
            "bn" => Some(Self::Bangla),
            _ => None,
        }
    }

    /// The language tag for HTML and HTTP.
    pub(super) fn code(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Bangla => "bn",
        }
    }

    pub(super) fn words(self) -> &'static Words {
        match self {
            Self::English => &ENGLISH,
            Self::Bangla => &BANGLA,
        }
    }

    /// The other language, for the switch.
    pub(super) fn other(self) -> Self {
        match self {
            Self::English => Self::Bangla,
            Self::Bangla => Self::English,
        }
    }
}

/// The name of the cookie that stores the chosen language.
pub(super) const COOKIE: &str = "lang";

fn stored(headers: &HeaderMap) -> Option<Language> {
    let cookies = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE).and_then(|(_, code)| Language::named(code))
}

/// Reads the weights of `Accept-Language` (RFC 9110, section 12.5.4). English by default.
fn preferred(headers: &HeaderMap) -> Language {
    let text = headers.get(header::ACCEPT_LANGUAGE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut best = (0.0, Language::English);
    for part in text.split(',') {
        let mut fields = part.split(';').map(str::trim);
        let tag = fields.next().unwrap_or_default().to_ascii_lowercase();
        let weight = fields.find_map(|field| field.strip_prefix("q=")).map_or(1.0, |q| q.parse().unwrap_or(0.0));
        let language = Language::named(tag.split('-').next().unwrap_or_default());
        if let Some(language) = language.filter(|_| weight > best.0) {
            best = (weight, language);
        }
    }
    best.1
}

/// The texts in one language.
pub(super) struct Words {
    /// The name of the other language, in that language.
    pub(super) other_language: &'static str,
    pub(super) pay_to: &'static str,
    pub(super) amount: &'static str,
    pub(super) payment: &'static str,
    pub(super) test_mark: &'static str,
    pub(super) test_note: &'static str,
    pub(super) simulator_question: &'static str,
    pub(super) simulate_pay: &'static str,
    pub(super) simulate_fail: &'static str,
    pub(super) simulate_cancel: &'static str,
    pub(super) how_to_pay: &'static str,
    pub(super) mobile_money: &'static str,
    pub(super) mobile_money_note: &'static str,
    pub(super) card: &'static str,
    pub(super) card_note: &'static str,
    pub(super) phone: &'static str,
    pub(super) phone_hint: &'static str,
    pub(super) phone_fault: &'static str,
    pub(super) pay: &'static str,
    pub(super) back_to: &'static str,
    pub(super) leads_to: &'static str,
    pub(super) progress: &'static str,
    pub(super) to_gateway: &'static str,
    pub(super) to_shop: &'static str,
    pub(super) go_on: &'static str,
    pub(super) checking: &'static str,
    pub(super) checking_note: &'static str,
    pub(super) continue_paying: &'static str,
    pub(super) paid: &'static str,
    pub(super) paid_note: &'static str,
    pub(super) paid_at: &'static str,
    pub(super) dhaka: &'static str,
    pub(super) failed: &'static str,
    pub(super) cancelled: &'static str,
    pub(super) expired: &'static str,
    pub(super) refunded: &'static str,
    pub(super) refunded_note: &'static str,
    pub(super) nothing_taken: &'static str,
    pub(super) new_payment: &'static str,
    pub(super) unknown: &'static str,
    pub(super) unknown_note: &'static str,
    pub(super) no_answer: &'static str,
    pub(super) refused: &'static str,
    pub(super) too_many: &'static str,
    pub(super) trouble: &'static str,
    pub(super) trouble_note: &'static str,
}

static ENGLISH: Words = Words {
    other_language: "বাংলা",
    pay_to: "You pay",
    amount: "Amount",
    payment: "Payment",
    test_mark: "Test payment",
    test_note: "No money moves.",
    simulator_question: "How should this payment end?",
    simulate_pay: "Pay",
    simulate_fail: "Fail",
    simulate_cancel: "Cancel",
    how_to_pay: "How do you want to pay?",
    mobile_money: "bKash",
    mobile_money_note: "Confirm with your PIN on bKash's page.",
    card: "Card",
    card_note: "Enter your card on the card processor's page.",
    phone: "Your bKash number",
    phone_hint: "11 digits, such as 01712345678. Optional: you can also enter it on bKash's page.",
    phone_fault: "Enter a Bangladeshi mobile number: 11 digits that start with 013 to 019.",
    pay: "Pay",
    back_to: "Back to",
    leads_to: "This link goes to",
    progress: "One moment, please. Do not close this page.",
    to_gateway: "Taking you to the payment page…",
    to_shop: "Taking you back to the shop…",
    go_on: "Continue",
    checking: "We are checking your payment",
    checking_note: "If you have paid, wait a moment: this page shows the result by itself. Do not pay again.",
    continue_paying: "I have not paid yet. Continue",
    paid: "Paid",
    paid_note: "Thank you. We have notified the shop.",
    paid_at: "Paid on",
    dhaka: "Dhaka time",
    failed: "The payment failed",
    cancelled: "You cancelled this payment",
    expired: "This payment link has expired",
    refunded: "This payment was refunded",
    refunded_note: "The money goes back to the account you paid from. This can take a few days.",
    nothing_taken: "No money was taken.",
    new_payment: "To try again, go back to the shop and start a new payment.",
    unknown: "Unknown payment",
    unknown_note: "There is no payment at this address. Go back to the shop and start again.",
    no_answer: "The payment service is not responding. No money was taken. Please try again in a moment.",
    refused: "The payment service declined this payment. No money was taken. Please contact the shop.",
    too_many: "Too many requests from your network. Please wait a minute and reload the page.",
    trouble: "This page is not available right now",
    trouble_note: "If you have paid, do not pay again. Please reload the page in a moment.",
};

static BANGLA: Words = Words {
    other_language: "English",
    pay_to: "আপনি দিচ্ছেন",
    amount: "পরিমাণ",
    payment: "পেমেন্ট",
    test_mark: "পরীক্ষামূলক পেমেন্ট",
    test_note: "কোনো টাকা কাটা হবে না।",
    simulator_question: "এই পেমেন্টের ফলাফল কী হবে?",
    simulate_pay: "পরিশোধ করুন",
    simulate_fail: "ব্যর্থ করুন",
    simulate_cancel: "বাতিল করুন",
    how_to_pay: "কীভাবে পরিশোধ করবেন?",
    mobile_money: "বিকাশ",
    mobile_money_note: "বিকাশের নিজস্ব পাতায় পিন দিয়ে নিশ্চিত করবেন।",
    card: "কার্ড",
    card_note: "কার্ডের তথ্য কার্ড প্রসেসরের নিজস্ব পাতায় দেবেন।",
    phone: "আপনার বিকাশ নম্বর",
    phone_hint: "১১ সংখ্যা, যেমন 01712345678। খালি রেখে বিকাশের পাতায়ও দিতে পারেন।",
    phone_fault: "এটি বাংলাদেশের মোবাইল নম্বর নয়। নম্বরটি ১১ সংখ্যার এবং 013 থেকে 019 দিয়ে শুরু হয়।",
    pay: "পরিশোধ করুন",
    back_to: "ফিরে যান:",
    leads_to: "এই লিংকটি যে সাইটে নিয়ে যাবে:",
    progress: "একটু অপেক্ষা করুন। এই পাতা বন্ধ করবেন না।",
    to_gateway: "পেমেন্ট পাতায় নিয়ে যাওয়া হচ্ছে…",
    to_shop: "দোকানে ফিরিয়ে নেওয়া হচ্ছে…",
    go_on: "এগিয়ে যান",
    checking: "আপনার পেমেন্ট যাচাই করা হচ্ছে",
    checking_note: "টাকা দিয়ে থাকলে আর কিছু করতে হবে না: এই পাতাই একটু পরে জানাবে। আবার টাকা দেবেন না।",
    continue_paying: "এখনও টাকা দিইনি: এগিয়ে যান",
    paid: "পরিশোধ হয়েছে",
    paid_note: "ধন্যবাদ। দোকানকে জানানো হয়েছে।",
    paid_at: "পরিশোধের সময়",
    dhaka: "ঢাকার সময়",
    failed: "পেমেন্ট ব্যর্থ হয়েছে",
    cancelled: "আপনি এই পেমেন্ট বাতিল করেছেন",
    expired: "এই পেমেন্ট লিংকের মেয়াদ শেষ",
    refunded: "এই পেমেন্টের টাকা ফেরত দেওয়া হয়েছে",
    refunded_note: "যে পথে টাকা এসেছিল সে পথেই ফেরত যাবে। কয়েক দিন লাগতে পারে।",
    nothing_taken: "কোনো টাকা কাটা হয়নি।",
    new_payment: "আবার চেষ্টা করতে দোকানে ফিরে নতুন পেমেন্ট শুরু করুন।",
    unknown: "অজানা পেমেন্ট",
    unknown_note: "এই ঠিকানায় কোনো পেমেন্ট নেই। দোকানে ফিরে আবার শুরু করুন।",
    no_answer: "পেমেন্ট সেবা এই মুহূর্তে সাড়া দিচ্ছে না। কোনো টাকা কাটা হয়নি। একটু পরে আবার চেষ্টা করুন।",
    refused: "পেমেন্ট সেবা এই পেমেন্টটি নেয়নি। কোনো টাকা কাটা হয়নি। দোকানের সঙ্গে যোগাযোগ করুন।",
    too_many: "আপনার নেটওয়ার্ক থেকে অনেক বেশি অনুরোধ এসেছে। এক মিনিট পরে পাতাটি আবার খুলুন।",
    trouble: "পাতাটি এই মুহূর্তে দেখানো যাচ্ছে না",
    trouble_note: "টাকা দিয়ে থাকলে আবার দেবেন না। একটু পরে পাতাটি আবার খুলুন।",
};

#[cfg(test)]
mod tests {
    use warp::http::HeaderValue;

    use super::*;

    #[test]
    fn a_chosen_language_overrides_the_browsers_preference() {
        for (accepted, language) in [
            ("", Language::English),
            ("bn", Language::Bangla),
            ("bn-BD,bn;q=0.9,en;q=0.8", Language::Bangla),
            ("en-GB,en;q=0.9,bn;q=0.8", Language::English),
            ("en;q=0.5, bn;q=0.7", Language::Bangla),
            ("fr-FR, de;q=0.9", Language::English),
            ("bn;q=0", Language::English),
            ("bn;q=x,;;,", Language::English),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_LANGUAGE, HeaderValue::from_static(accepted));
            assert_eq!(Language::of(None, &headers), language, "{accepted}");
            assert_eq!(Language::of(Some("bn"), &headers), Language::Bangla);
            assert_eq!(Language::of(Some("xx"), &headers), language, "no language of the page is no choice");
            headers.insert(header::COOKIE, HeaderValue::from_static("a=b; lang=bn"));
            assert_eq!(Language::of(None, &headers), Language::Bangla);
            assert_eq!(Language::of(Some("en"), &headers), Language::English);
        }
    }
}
