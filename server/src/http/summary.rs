//! A payment in words that a shopkeeper understands, in English and Bangla: a table of states and sentences.

mod next;

use payments_core::{
    Amount, Delivery, DeliveryStatus, DisputeStatus, RawStatus, RefundStatus, SummaryLine,
    SummaryTopic::{self, Customer, Gateway, Money, Shop},
    TimelineKind, Timestamp, UnknownFields,
};

use super::{
    language::{Language, Text},
    page::{digits, moment, money},
};
use crate::{
    domain::{GatewayAttempt, Outgoing},
    gateway,
    service::Told,
};

/// A value in a sentence, written as its language does.
#[derive(Clone)]
enum Value {
    Money(Amount),
    Time(Timestamp),
    Number(u64),
    Text(String),
}
use Value::{Money as Sum, Number, Text as Words, Time};

/// The lines of a payment. `title` gives the titles of gateways.
pub(super) fn summary(told: &Told, title: impl Fn(&GatewayAttempt) -> &'static str) -> Vec<SummaryLine> {
    let mut story = Story { told, gateway: "", lines: Vec::new() };
    story.gateway = story.attempt().map_or("", title);
    story.customer();
    story.gateway();
    story.money();
    story.shop();
    story.next();
    story.lines
}

/// What the gateway's refusal means. A gateway's own words, which are English, stand as a quote.
fn meaning(attempt: &GatewayAttempt) -> Option<[String; 2]> {
    let quote = format!("“{}”", attempt.failure.as_ref()?);
    let known = attempt.failure_code.as_deref().and_then(|code| gateway::meaning(attempt.gateway, code));
    let in_bangla = known.map_or_else(|| quote.clone(), |[_, bangla]| format!("{bangla} {quote}"));
    Some([quote, in_bangla])
}

struct Story<'t> {
    told: &'t Told,
    /// The title of the gateway of the last attempt.
    gateway: &'static str,
    lines: Vec<SummaryLine>,
}

impl Story<'_> {
    fn say(&mut self, topic: SummaryTopic, text: Text, values: &[(&str, Value)]) {
        let currency = self.told.session.payment.currency;
        let written = |language: Language| {
            let all = values.iter().chain(&[("gateway", Words(self.gateway.to_owned()))]).cloned().collect::<Vec<_>>();
            all.into_iter().fold(language.say(text).to_owned(), |text, (name, value)| {
                let value = match value {
                    Sum(amount) => money(amount, currency, language),
                    Time(time) => moment(time, currency, language),
                    Number(number) => digits(number, language),
                    Words(text) => text,
                };
                text.replace(&format!("{{{name}}}"), &value)
            })
        };
        let (en, bn) = (written(Language::English), written(Language::Bangla));
        self.lines.push(SummaryLine { topic, en, bn, unknown: UnknownFields::new() });
    }

    /// The attempt that decided the payment, or the last one.
    fn attempt(&self) -> Option<&GatewayAttempt> {
        self.told.session.last_attempt()
    }

    fn is_over(&self) -> bool {
        !self.told.session.payment.raw_status.is_open() || self.told.session.expires_at <= self.told.now
    }

    fn customer(&mut self) {
        let Told { session, .. } = self.told;
        let (payment, until) = (&session.payment, ("until", Time(session.expires_at)));
        if payment.is_simulated {
            let text = ["This is a test: no money moves.", "এটি পরীক্ষামূলক পেমেন্ট: কোনো টাকা লেনদেন হয় না।"];
            self.say(Customer, text, &[]);
        }
        let attempts = session.ended_attempts.len() + usize::from(session.attempt.is_some());
        let sent = session.moves.iter().rfind(|it| it.kind == TimelineKind::SentToGateway);
        let sent = sent.map_or(payment.created_at, |it| it.again.map_or(it.at, |(_, last)| last));
        let (sent, times) = (("sent", Time(sent)), ("times", Number(attempts as u64)));
        match (attempts, &payment.raw_status) {
            (0, RawStatus::Paid | RawStatus::Refunded) => self.say(
                Customer,
                ["The customer paid on {paid}.", "ক্রেতা {paid}-এ টাকা দিয়েছেন।"],
                &[("paid", Time(payment.paid_at.unwrap_or(payment.updated_at)))],
            ),
            (0, RawStatus::Cancelled) => self.say(
                Customer,
                ["The customer went back to the shop without paying.", "ক্রেতা টাকা না দিয়ে দোকানে ফিরে গেছেন।"],
                &[],
            ),
            (0, RawStatus::Failed) => self.say(
                Customer,
                ["The customer tried to pay, and it did not work.", "ক্রেতা টাকা দেওয়ার চেষ্টা করেছেন, কিন্তু হয়নি।"],
                &[],
            ),
            (0, _) if self.is_over() => self.say(
                Customer,
                [
                    "The customer chose no way to pay before the payment page closed on {until}.",
                    "পেমেন্ট পাতা {until}-এ বন্ধ হওয়ার আগে ক্রেতা টাকা দেওয়ার কোনো উপায় বেছে নেননি।",
                ],
                &[until],
            ),
            (0, _) => self.say(
                Customer,
                [
                    "The customer has not chosen a way to pay yet. The payment page is open until {until}.",
                    "ক্রেতা এখনো টাকা দেওয়ার উপায় বেছে নেননি। পেমেন্ট পাতা {until} পর্যন্ত খোলা আছে।",
                ],
                &[until],
            ),
            (1, _) => self.say(
                Customer,
                [
                    "The customer chose {gateway} and was sent there on {sent}.",
                    "ক্রেতা {gateway} বেছে নিয়ে {sent}-এ সেখানে গেছেন।",
                ],
                &[sent],
            ),
            _ => self.say(
                Customer,
                [
                    "The customer tried {times} times, last at {gateway} on {sent}.",
                    "ক্রেতা {times} বার চেষ্টা করেছেন, সর্বশেষ {gateway}-এ {sent}-এ।",
                ],
                &[times, sent],
            ),
        }
    }

    fn gateway(&mut self) {
        let Told { session, .. } = self.told;
        let payment = &session.payment;
        let Some(attempt) = self.attempt().cloned() else { return };
        if let (Some(paid_at), Some(transaction)) = (payment.paid_at, &attempt.transaction) {
            let values =
                [("amount", Sum(payment.amount)), ("paid", Time(paid_at)), ("transaction", Words(transaction.clone()))];
            let text = [
                "{gateway} confirmed {amount} on {paid}: transaction {transaction}.",
                "{gateway} {paid}-এ {amount} পাওয়া নিশ্চিত করেছে: লেনদেন নম্বর {transaction}।",
            ];
            self.say(Gateway, text, &values);
        } else {
            match (&payment.raw_status, meaning(&attempt), attempt.silent_since) {
                (RawStatus::Paid | RawStatus::Refunded, ..) => {
                    self.say(Gateway, ["{gateway} confirmed the money.", "{gateway} টাকা পাওয়া নিশ্চিত করেছে।"], &[]);
                }
                (RawStatus::Processing, _, Some(since)) => self.say(
                    Gateway,
                    [
                        "{gateway} has not answered our questions since {since}, so nobody knows whether the customer paid.",
                        "{gateway} {since} থেকে আমাদের প্রশ্নের উত্তর দিচ্ছে না, তাই ক্রেতা টাকা দিয়েছেন কি না জানা যায়নি।",
                    ],
                    &[("since", Time(since))],
                ),
                (RawStatus::Processing, ..) => self.say(
                    Gateway,
                    ["{gateway} has not confirmed any money yet.", "{gateway} এখনো কোনো টাকা পাওয়া নিশ্চিত করেনি।"],
                    &[],
                ),
                (RawStatus::Cancelled, ..) => self.say(
                    Gateway,
                    ["The customer cancelled, and {gateway} took no money.", "ক্রেতা বাতিল করেছেন, {gateway} কোনো টাকা নেয়নি।"],
                    &[],
                ),
                (_, Some([en, bn]), _) => {
                    let text = ["{gateway} refused the payment: {en}.", "{gateway} পেমেন্টটি নেয়নি: {bn}।"];
                    self.say(Gateway, text, &[("en", Words(en)), ("bn", Words(bn))]);
                }
                _ => self.say(
                    Gateway,
                    ["{gateway} took no money for this payment.", "{gateway} এই পেমেন্টের জন্য কোনো টাকা নেয়নি।"],
                    &[],
                ),
            }
        }
        if let Some(review) = session.review.as_ref().filter(|review| review.resolved.is_none()) {
            let text = [
                "What {gateway} says does not fit this payment: “{what}”.",
                "{gateway} যা বলছে তা এই পেমেন্টের সঙ্গে মেলে না: “{what}”।",
            ];
            self.say(Gateway, text, &[("what", Words(review.what.clone()))]);
        } else if let Some(at) = session.next_late_check().filter(|_| payment.paid_at.is_none() && self.is_over()) {
            let text = [
                "We ask {gateway} again on {at}, in case the money arrives late.",
                "টাকা দেরিতে এলে যাতে ধরা পড়ে, আমরা {at}-এ {gateway}-কে আবার জিজ্ঞাসা করব।",
            ];
            self.say(Gateway, text, &[("at", Time(at))]);
        }
    }

    fn money(&mut self) {
        let Told { session, .. } = self.told;
        let payment = &session.payment;
        if payment.amount_refunded() > Amount::ZERO {
            let values = [
                ("refunded", Sum(payment.amount_refunded())),
                ("amount", Sum(payment.amount)),
                ("left", Sum(payment.amount_left())),
            ];
            let text = [
                "{refunded} of {amount} went into refunds; {left} can still be refunded.",
                "{amount}-এর মধ্যে {refunded} ফেরত দেওয়া হয়েছে বা হচ্ছে; আরও {left} ফেরত দেওয়া যাবে।",
            ];
            self.say(Money, text, &values);
        }
        if let Some(refund) = payment.refund() {
            let settled = refund.settled_at.or(refund.failed_at).unwrap_or(refund.created_at);
            let values = [
                ("amount", Sum(refund.amount)),
                ("asked", Time(refund.created_at)),
                ("settled", Time(settled)),
                ("due", Time(self.told.due_at(refund.created_at))),
                ("why", Words(refund.failure_reason.as_ref().map_or_else(String::new, |why| format!(": “{why}”")))),
            ];
            let text = match refund.status {
                RefundStatus::PendingSettlement => [
                    "The platform sends the refund of {amount} by hand. It was asked for on {asked}, and is due by {due}.",
                    "প্ল্যাটফর্ম {amount} হাতে ফেরত পাঠাবে। {asked}-এ চাওয়া হয়েছে, {due}-এর মধ্যে পাঠানোর কথা।",
                ],
                RefundStatus::Pending => [
                    "{gateway} has been sending the refund of {amount} since {asked}.",
                    "{gateway} {asked} থেকে {amount} ফেরত পাঠাচ্ছে।",
                ],
                RefundStatus::Failed => [
                    "The refund of {amount} failed on {settled}{why}.",
                    "{amount} ফেরত দেওয়া {settled}-এ ব্যর্থ হয়েছে{why}।",
                ],
                _ => ["The refund of {amount} was sent on {settled}.", "{amount} {settled}-এ ফেরত পাঠানো হয়েছে।"],
            };
            self.say(Money, text, &values);
        }
        if session.pending_refund.is_some() {
            let text = [
                "We asked {gateway} for a refund, and it has not confirmed it yet.",
                "আমরা {gateway}-কে টাকা ফেরত দিতে বলেছি, এখনো নিশ্চিত করেনি।",
            ];
            self.say(Money, text, &[]);
        }
        if let Some(dispute) = payment.dispute() {
            let why = dispute.reason.as_ref().map_or_else(String::new, |why| format!(" (“{why}”)"));
            let text = match dispute.status {
                DisputeStatus::Won => [
                    "The dispute about {amount}{why} was decided for the shop: the money stays here.",
                    "{amount} নিয়ে আপত্তি{why} দোকানের পক্ষে মীমাংসা হয়েছে: টাকা এখানেই থাকছে।",
                ],
                DisputeStatus::Lost => [
                    "The dispute about {amount}{why} was decided for the customer, who gets the money back.",
                    "{amount} নিয়ে আপত্তি{why} ক্রেতার পক্ষে মীমাংসা হয়েছে, ক্রেতা টাকা ফেরত পাবেন।",
                ],
                _ => [
                    "The customer told the bank that {amount} should not have been charged{why}.",
                    "ক্রেতা ব্যাংককে জানিয়েছেন যে {amount} নেওয়া ঠিক হয়নি{why}।",
                ],
            };
            self.say(Money, text, &[("amount", Sum(dispute.amount)), ("why", Words(why))]);
        }
    }

    /// The last delivery to each endpoint, the newest first; one that failed before one that was taken.
    fn delivery(&self) -> Option<&Delivery> {
        let all: Vec<&Delivery> = self.told.deliveries.iter().map(|Outgoing { delivery, .. }| delivery).collect();
        let is_last = |it: &&&Delivery| !all.iter().any(|other| other.webhook_id == it.webhook_id && other.id > it.id);
        let last: Vec<_> = all.iter().filter(is_last).copied().collect();
        let failing = last.iter().filter(|it| is_failing(it)).max_by_key(|it| it.created_at);
        failing.or_else(|| last.iter().max_by_key(|it| it.created_at)).copied()
    }

    fn shop(&mut self) {
        let Some(delivery) = self.delivery().cloned() else {
            let text = [
                "We sent the shop's server nothing: it has no webhook endpoint for this payment's events.",
                "দোকানের সার্ভারে কিছু পাঠানো হয়নি: এই পেমেন্টের খবর নেওয়ার কোনো ওয়েবহুক ঠিকানা নেই।",
            ];
            return self.say(Shop, text, &[]);
        };
        let values = [
            ("event", Words(delivery.event.to_string())),
            ("at", Time(delivery.delivered_at.unwrap_or(delivery.created_at))),
            ("answer", Words(answer_of(&delivery))),
            ("times", Number(delivery.attempts.into())),
            ("next", Time(delivery.next_attempt_at.unwrap_or(delivery.created_at))),
        ];
        let text = match (delivery.status == DeliveryStatus::Success, delivery.attempts, delivery.next_attempt_at) {
            (true, ..) => [
                "We sent the shop's server {event}, and it answered {answer} on {at}.",
                "আমরা দোকানের সার্ভারে {event} পাঠিয়েছি, সেটি {at}-এ {answer} উত্তর দিয়েছে।",
            ],
            (false, 0, _) => {
                ["{event} waits to be sent to the shop's server.", "{event} দোকানের সার্ভারে পাঠানোর অপেক্ষায় আছে।"]
            }
            (false, _, Some(_)) => [
                "We sent the shop's server {event}, and it answered {answer} (attempts: {times}). We try again on {next}.",
                "আমরা দোকানের সার্ভারে {event} পাঠিয়েছি, উত্তর {answer} (চেষ্টা: {times})। {next}-এ আবার পাঠাব।",
            ],
            (false, _, None) => [
                "We sent the shop's server {event}, and it answered {answer} (attempts: {times}). We do not try again.",
                "আমরা দোকানের সার্ভারে {event} পাঠিয়েছি, উত্তর {answer} (চেষ্টা: {times})। আর পাঠানো হবে না।",
            ],
        };
        self.say(Shop, text, &values);
    }
}

fn is_failing(delivery: &Delivery) -> bool {
    delivery.status != DeliveryStatus::Success && delivery.attempts > 0
}

/// What the shop's server answered: a status, or the code of an error.
fn answer_of(delivery: &Delivery) -> String {
    let error = delivery.error.as_ref().map(|error| error.code.as_str().to_owned());
    delivery.response_status.map(|status| status.to_string()).or(error).unwrap_or_default()
}

#[cfg(test)]
mod tests;
