//! The last line of a payment's summary: what to do now. The first state that fits decides.

use payments_core::{DisputeStatus, RawStatus, Refund, RefundStatus, SummaryTopic::Next};

use super::{Story, Sum, Time, Words, answer_of, is_failing};
use crate::service::Told;

impl Story<'_> {
    pub(super) fn next(&mut self) {
        let Told { session, now, .. } = self.told;
        let payment = &session.payment;
        if session.needs_manual_review() {
            let text = match payment.was_paid() {
                true => [
                    "Wait: the payment counts as paid, and the platform looks into the rest. The customer need not pay again.",
                    "অপেক্ষা করুন: পেমেন্টটি পরিশোধিত, বাকিটা প্ল্যাটফর্ম দেখছে। ক্রেতাকে আবার টাকা দিতে হবে না।",
                ],
                false => [
                    "Wait: the platform looks into it. Do not ask the customer to pay again, and do not deliver yet.",
                    "অপেক্ষা করুন: প্ল্যাটফর্ম বিষয়টি দেখছে। ক্রেতাকে আবার টাকা দিতে বলবেন না, এখনই পণ্য দেবেন না।",
                ],
            };
            return self.say(Next, text, &[]);
        }
        if let Some(dispute) = payment.dispute().filter(|it| !it.status.is_closed()) {
            let due = dispute.evidence_due_by.filter(|_| dispute.status != DisputeStatus::UnderReview);
            let text = match due {
                Some(_) => [
                    "Send the platform what shows that the order was delivered, by {due}.",
                    "পণ্য দেওয়ার প্রমাণ {due}-এর মধ্যে প্ল্যাটফর্মকে পাঠান।",
                ],
                None => ["Wait: the bank decides.", "অপেক্ষা করুন: ব্যাংক সিদ্ধান্ত নেবে।"],
            };
            return self.say(Next, text, &[("due", Time(due.unwrap_or(*now)))]);
        }
        if payment.dispute().is_some_and(|it| it.status == DisputeStatus::Lost) {
            let text = [
                "Nothing: the bank gave the money back to the customer, and that is final.",
                "কিছু করার নেই: ব্যাংক ক্রেতাকে টাকা ফেরত দিয়েছে, এটাই চূড়ান্ত।",
            ];
            return self.say(Next, text, &[]);
        }
        let is_on_its_way = |it: &&Refund| matches!(it.status, RefundStatus::Pending | RefundStatus::PendingSettlement);
        let on_its_way = payment.refunds.iter().find(is_on_its_way).map(|it| it.created_at);
        let asked = session.pending_refund.as_ref().and_then(|it| it.id.created_at());
        if let Some(since) = on_its_way.or(asked) {
            let text = [
                "Nothing: the money has been on its way back to the customer since {since}.",
                "কিছু করার নেই: {since} থেকে টাকা ক্রেতার কাছে ফেরত যাচ্ছে।",
            ];
            return self.say(Next, text, &[("since", Time(since))]);
        }
        if let Some(refund) = payment.refund().filter(|it| it.status == RefundStatus::Failed) {
            let text =
                ["Refund {amount} once more: the money is still here.", "{amount} আবার ফেরত দিন: টাকা এখনো এখানেই আছে।"];
            return self.say(Next, text, &[("amount", Sum(refund.amount))]);
        }
        if let Some(delivery) = self.delivery().filter(|it| payment.was_paid() && is_failing(it)).cloned() {
            let text = [
                "The payment is complete. Fix your endpoint, which answered {answer}, then send {event} again under Deliveries.",
                "পেমেন্ট সম্পন্ন। ওয়েবহুক ঠিকানা ঠিক করুন, উত্তর ছিল {answer}; তারপর ডেলিভারি পাতা থেকে {event} আবার পাঠান।",
            ];
            let values = [("answer", Words(answer_of(&delivery))), ("event", Words(delivery.event.to_string()))];
            return self.say(Next, text, &values);
        }
        let check_at = session.check_at.filter(|at| at > now);
        let text = match (&payment.raw_status, check_at) {
            (RawStatus::Paid, _) => {
                ["Nothing: the payment is complete. Deliver the order.", "কিছু করার নেই: পেমেন্ট সম্পন্ন। পণ্য দিন।"]
            }
            (RawStatus::Refunded, _) => {
                ["Nothing: the whole amount went back to the customer.", "কিছু করার নেই: পুরো টাকা ক্রেতাকে ফেরত দেওয়া হয়েছে।"]
            }
            (RawStatus::Processing, Some(_)) => [
                "Wait: we ask {gateway} again on {check}. Do not ask the customer to pay again before that.",
                "অপেক্ষা করুন: আমরা {check}-এ {gateway}-কে আবার জিজ্ঞাসা করব। তার আগে ক্রেতাকে আবার টাকা দিতে বলবেন না।",
            ],
            (RawStatus::Processing, None) => [
                "Wait: we are asking {gateway} now. Do not ask the customer to pay again before it answers.",
                "অপেক্ষা করুন: আমরা এখন {gateway}-কে জিজ্ঞাসা করছি। উত্তরের আগে ক্রেতাকে আবার টাকা দিতে বলবেন না।",
            ],
            _ if self.is_over() => [
                "Ask the customer to pay again: make a new payment and send its link.",
                "ক্রেতাকে আবার টাকা দিতে বলুন: নতুন পেমেন্ট তৈরি করে তার লিংক পাঠান।",
            ],
            _ if !session.ended_attempts.is_empty() => [
                "Ask the customer to try again on the same payment page, until {until}.",
                "ক্রেতাকে একই পেমেন্ট পাতায় {until}-এর মধ্যে আবার চেষ্টা করতে বলুন।",
            ],
            _ => [
                "Nothing: the customer can still pay on the payment page.",
                "কিছু করার নেই: ক্রেতা এখনো পেমেন্ট পাতায় টাকা দিতে পারেন।",
            ],
        };
        let values = [("check", Time(check_at.unwrap_or(*now))), ("until", Time(session.expires_at))];
        self.say(Next, text, &values);
    }
}
