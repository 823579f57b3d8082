//! bKash's codes, which are the same numbers in both versions, and what they mean.

use crate::gateway::declaration::ErrorWords;

pub(super) const ERRORS: &[ErrorWords] = &[
    ErrorWords {
        codes: &[
            "2009", "2010", "2011", "2012", "2013", "2014", "2015", "2016", "2017", "2018", "2019", "2043", "2045",
            "2057", "2058", "2059",
        ],
        meaning: [
            "bKash did not accept the wallet, its verification code or its PIN.",
            "বিকাশ নম্বর, যাচাই কোড বা পিন গ্রহণ করেনি।",
        ],
    },
    ErrorWords {
        codes: &["2023"], meaning: ["There was not enough money in the account.", "অ্যাকাউন্টে যথেষ্ট টাকা ছিল না।"]
    },
    ErrorWords {
        codes: &["2037", "2038", "2039", "2040", "2041", "2044", "2046"],
        meaning: [
            "This bKash account cannot pay now; bKash can say why.",
            "এই বিকাশ অ্যাকাউন্ট থেকে এখন পরিশোধ করা যাচ্ছে না; কারণ বিকাশ জানাতে পারবে।",
        ],
    },
    ErrorWords {
        codes: &["2029"],
        meaning: [
            "bKash has just had an equal payment; the next one can follow after five minutes.",
            "একই অঙ্কের একটি পেমেন্ট এইমাত্র হয়েছে; পাঁচ মিনিট পরে আবার করা যাবে।",
        ],
    },
    ErrorWords {
        codes: &["2056"],
        meaning: [
            "This attempt at bKash was used up or has expired.",
            "বিকাশের এই চেষ্টাটি শেষ হয়ে গেছে বা মেয়াদ পেরিয়েছে।",
        ],
    },
    ErrorWords {
        codes: &["2060"],
        meaning: ["The payment was not confirmed at bKash.", "বিকাশে পেমেন্টটি নিশ্চিত করা হয়নি।"],
    },
    ErrorWords {
        codes: &["2069"], meaning: ["The payment was cancelled at bKash.", "বিকাশে পেমেন্টটি বাতিল করা হয়েছে।"]
    },
    ErrorWords {
        codes: &["2062", "2068", "2117", "2119"],
        meaning: ["bKash has already completed this payment.", "বিকাশ পেমেন্টটি আগেই সম্পন্ন করেছে।"],
    },
    ErrorWords {
        codes: &["503", "2003", "2020", "2024"],
        meaning: ["bKash had a fault or was under maintenance.", "বিকাশে ত্রুটি ছিল বা রক্ষণাবেক্ষণ চলছিল।"],
    },
    ErrorWords {
        codes: &["2001", "9999"],
        meaning: ["bKash refused the platform's credentials.", "বিকাশ প্ল্যাটফর্মের পরিচয় গ্রহণ করেনি।"],
    },
    ErrorWords {
        codes: &[
            "2006", "2007", "2008", "2025", "2031", "2048", "2049", "2054", "2063", "2064", "2065", "2067", "2118",
        ],
        meaning: ["bKash does not permit a payment with these details.", "এই তথ্য দিয়ে বিকাশে পেমেন্ট করা যায় না।"],
    },
    ErrorWords {
        codes: &["2071"],
        meaning: ["It is too late for a refund through bKash.", "বিকাশের মাধ্যমে টাকা ফেরতের সময় পেরিয়ে গেছে।"],
    },
    ErrorWords {
        codes: &["2072"], meaning: ["bKash does not refund this amount.", "বিকাশ এই অঙ্কের টাকা ফেরত দেয় না।"]
    },
    ErrorWords {
        codes: &["2073", "2074", "2075", "2076", "2077", "2078", "2080", "2081", "2082", "2127"],
        meaning: ["bKash does not make this refund.", "বিকাশ এই টাকা ফেরত দেয় না।"],
    },
];
