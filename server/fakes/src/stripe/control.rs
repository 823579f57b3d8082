//! `/_control/…`: the controls over HTTP.

use http::StatusCode;
use serde_json::json;

use super::{
    CARD, Stripe,
    refund::{PENDING_REASONS, STATUSES},
    refusal::no_such,
    session::LARGEST,
};
use crate::{
    Answer, Call, books_json,
    control::{Order, done, made},
};

impl Stripe {
    pub(super) fn control(&self, call: &Call) -> Answer {
        let order = Order::new(call);
        let session = order.text("session");
        match call.path.trim_start_matches("/_control/") {
            "pay" => {
                let card = if order.text("card").is_empty() { CARD } else { order.text("card") };
                let target = self.pay(session, card);
                return made("location", target, "not open, or declined");
            }
            "finish" => self.finish(session, order.is("succeeds")),
            "take_late" => self.take_late(session),
            "falsify_amount" => self.falsify_amount(session, order.number("amount").unwrap_or_default().min(LARGEST)),
            "refuse_next_session" => self.refuse_next_session(),
            "forget_keys" => self.forget_keys(),
            "events" => {
                let times = order.number("times").unwrap_or(1);
                self.send_events_to(order.text("url"), u32::try_from(times).unwrap_or(1));
            }
            "reverse_events" => self.reverse_events(order.is("reversed")),
            "next_refund" => return self.order_next_refund(&order),
            "refund_by_hand" => {
                let reference = order.text("reference");
                let Some(minor) = order.number("minor") else {
                    self.refund_by_hand(reference);
                    return Answer::ok(&json!({}));
                };
                return made("id", self.refund_part_by_hand(reference, minor), "Stripe refuses this refund");
            }
            "succeed_refund" => return done(self.succeed_refund(order.text("refund")), "the refund is not pending"),
            "fail_refund" => self.fail_refund(order.text("refund")),
            "open_dispute" => return self.order_dispute(&order),
            "hold_withdrawals" => self.hold_withdrawals(order.is("held")),
            "withdraw" => return changed(self.withdraw(order.text("dispute"))),
            "reinstate" => return changed(self.reinstate(order.text("dispute"))),
            "escalate" => return changed(self.escalate(order.text("dispute"))),
            "answer_dispute" => return changed(self.answer_dispute(order.text("dispute"))),
            "close_dispute" => return changed(self.close_dispute(order.text("dispute"), order.is("won"))),
            "delay_fees" => self.delay_fees(order.is("late")),
            "make_fee_known" => {
                return done(self.make_fee_known(order.text("of")), "no such charge with an unknown fee");
            }
            "make_available" => self.make_available(),
            "pay_out" => return made("id", self.pay_out(), "no money is available"),
            "books" => return books_json(&self.books()),
            _ => return no_such("path", &call.path),
        }
        Answer::ok(&json!({}))
    }

    fn order_dispute(&self, order: &Order) -> Answer {
        let reason = if order.text("reason").is_empty() { "fraudulent" } else { order.text("reason") };
        let is_inquiry = order.has("inquiry");
        let minor = order.number("minor").unwrap_or_default();
        made(
            "id",
            self.open_dispute(order.text("of"), minor, reason, is_inquiry),
            "nothing is charged, or no such reason",
        )
    }

    fn order_next_refund(&self, order: &Order) -> Answer {
        let named = |name: &str, known: &[&'static str]| known.iter().copied().find(|it| *it == order.text(name));
        match (named("status", &STATUSES), named("pending_reason", &PENDING_REASONS)) {
            (Some("pending"), Some(reason)) => self.next_refund_waits(reason),
            (Some(status), _) => self.next_refund_is(status),
            (None, _) => {
                return Answer::json(StatusCode::BAD_REQUEST, &json!({"error": "no such status of a refund"}));
            }
        }
        Answer::ok(&json!({}))
    }
}

fn changed(did: bool) -> Answer {
    done(did, "no such dispute, or its status does not allow this")
}
