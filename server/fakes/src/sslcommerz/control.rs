//! `/_control/…`: the controls over HTTP.

use http::StatusCode;
use serde_json::json;

use super::{SslCommerz, answers::page};
use crate::{
    Answer, Back, Call, books_json,
    control::{Order, done, made},
};

const CLOSED: &str = "no such session, or it has ended";

impl SslCommerz {
    pub(super) fn control(&self, call: &Call) -> Answer {
        let order = Order::new(call);
        let session = order.text("session");
        match call.path.trim_start_matches("/_control/") {
            "pay" => return back(self.pay(session)),
            "fail" => return back(self.fail(session)),
            "cancel" => return back(self.cancel(session)),
            "leave" => return done(self.leave(session), CLOSED),
            "expire" => return done(self.expire(session), CLOSED),
            "pay_again" => return made("bank_tran_id", self.pay_again(session), "the session is not paid"),
            "take_late" => self.take_late(session),
            "repeat_notice" => return done(self.repeat_notice(session), "it has sent no notice"),
            "falsify_amount" => self.falsify_amount(session, order.number("amount").unwrap_or_default()),
            "set_risk" => self.set_risk(session, order.is("risky")),
            "silence_validation" => self.silence_validation(session, order.is("silent")),
            "next_refund" => {
                let known = ["success", "processing", "failed"].into_iter().find(|it| *it == order.text("status"));
                let Some(status) = known else { return done(false, "no such status of a new refund") };
                self.next_refund_is(status);
            }
            "finish_refund" => {
                let is_refunded = match order.text("status") {
                    "refunded" => true,
                    "cancelled" => false,
                    _ => return done(false, "no such end of a refund"),
                };
                return done(self.finish_refund(order.text("refund"), is_refunded), "no such refund, or it has ended");
            }
            "maintenance" => self.set_maintenance(order.is("on")),
            "deactivate_store" => self.deactivate_store(order.is("on")),
            "be_strict" => self.be_strict(order.is("strict")),
            "take_multipart" => self.take_multipart(order.is("on")),
            "take_refunds_without_id" => self.take_refunds_without_id(order.is("on")),
            "books" => return books_json(&self.books()),
            _ => return page(StatusCode::NOT_FOUND, "Not Found"),
        }
        Answer::ok(&json!({}))
    }
}

fn back(back: Option<Back>) -> Answer {
    back.map_or_else(
        || done(false, CLOSED),
        |back| Answer::ok(&json!({"method": back.method.as_str(), "location": back.url, "form": *back.form})),
    )
}
