//! Refunds, which end later.

use serde_json::{Value, json};

use super::{
    SslCommerz, State,
    answers::invalid_request,
    attempt::{End, Row},
    money::minor,
    time::dhaka,
};
use crate::{Answer, Form, lock, now, token};

#[derive(Debug)]
pub(super) struct Refund {
    reference: String,
    /// The merchant's id of it; empty if an old client gave none.
    merchant_id: String,
    session: String,
    bank_tran_id: String,
    tran_id: String,
    /// In minor units of taka.
    amount: u64,
    status: &'static str,
    initiated_at: u64,
    refunded_at: Option<u64>,
}

impl SslCommerz {
    /// Sets how the next refund begins: `success`, `processing`, or `failed`, which moves no money.
    pub fn next_refund_is(&self, status: &'static str) {
        lock(&self.0).next_refund = Some(status);
    }

    /// Ends a refund: the money is back at the customer, or the refund is cancelled and the money is the merchant's again. The id
    /// is that of SSLCommerz or the merchant's. Returns whether it was under way.
    pub fn finish_refund(&self, id: &str, is_refunded: bool) -> bool {
        let State { attempts, refunds, .. } = &mut *lock(&self.0);
        let is_this = |refund: &&mut Refund| refund.reference == id || refund.merchant_id == id;
        let Some(refund) = refunds.iter_mut().find(|it| is_this(it) && it.status == "processing") else { return false };
        if is_refunded {
            refund.status = "refunded";
            refund.refunded_at = Some(now());
            return true;
        }
        refund.status = "cancelled";
        let rows = attempts.iter_mut().filter(|attempt| attempt.key == refund.session).flat_map(|it| &mut it.rows);
        for row in rows.filter(|row| row.bank_tran_id == refund.bank_tran_id) {
            row.refunds -= 1;
            row.refunded -= refund.amount;
        }
        true
    }

    /// SSLCommerz's ids of all refunds, in the order of their beginning.
    pub fn refunds(&self) -> Vec<String> {
        lock(&self.0).refunds.iter().map(|refund| refund.reference.clone()).collect()
    }
}

impl State {
    /// Starts a refund.
    pub(super) fn refund(&mut self, query: &Form) -> Answer {
        let field = |name: &str| query.get(name).map_or("", String::as_str);
        let [bank_tran_id, merchant_id, remarks] =
            ["bank_tran_id", "refund_trans_id", "refund_remarks"].map(|name| field(name).to_owned());
        let lengths = [(&bank_tran_id, 80), (&merchant_id, 30), (&remarks, 255), (&field("refe_id").to_owned(), 50)];
        let is_long = lengths.iter().any(|(text, most)| text.chars().count() > *most);
        let lacks_id = merchant_id.is_empty() && !self.takes_refunds_without_id;
        let Some(amount) = minor(field("refund_amount")).filter(|amount| *amount > 0) else { return invalid_request() };
        if bank_tran_id.is_empty() || remarks.is_empty() || lacks_id || is_long {
            return invalid_request();
        }
        let Self { attempts, refunds, next_refund, made, .. } = self;
        let failed = |tran_id: &str, reason: &str| {
            Answer::ok(&json!({"APIConnect": "DONE", "bank_tran_id": bank_tran_id, "trans_id": tran_id,
                "refund_ref_id": "", "status": "failed", "errorReason": reason}))
        };
        let is_this = |row: &Row| row.end == End::Valid && row.bank_tran_id == bank_tran_id;
        let found = attempts.iter_mut().find_map(|it| Some((it.rows.iter().position(is_this)?, it)));
        let Some((at, attempt)) = found else { return failed("", "No paid transaction has this bank_tran_id") };
        let tran_id = attempt.field("tran_id").to_owned();
        if !merchant_id.is_empty() && refunds.iter().any(|refund| refund.merchant_id == merchant_id) {
            return failed(&tran_id, "Duplicate refund_trans_id");
        }
        if amount > attempt.taka - attempt.rows[at].refunded {
            return failed(&tran_id, "The refund amount is greater than the amount that is left");
        }
        let status = next_refund.take().unwrap_or("success");
        if status == "failed" {
            return failed(&tran_id, "The bank does not refund this transaction");
        }
        *made += 1;
        attempt.rows[at].refunds += 1;
        attempt.rows[at].refunded += amount;
        let refund = Refund {
            reference: token("", *made, "refund"),
            merchant_id,
            session: attempt.key.clone(),
            bank_tran_id,
            tran_id,
            amount,
            status: "processing",
            initiated_at: now(),
            refunded_at: None,
        };
        let answer = refund.json(status);
        refunds.push(refund);
        Answer::ok(&answer)
    }

    /// Finds a refund.
    pub(super) fn refund_query(&self, reference: &str) -> Answer {
        let Some(refund) = self.refunds.iter().find(|refund| refund.reference == reference) else {
            return invalid_request();
        };
        let mut shown = refund.json(refund.status);
        // The documentation says `tran_id`, samples say `trans_id`.
        shown["tran_id"] = json!(refund.tran_id);
        shown["initiated_on"] = json!(dhaka(refund.initiated_at));
        shown["refunded_on"] = json!(refund.refunded_at.map(dhaka).unwrap_or_default());
        Answer::ok(&shown)
    }
}

impl Refund {
    fn json(&self, status: &str) -> Value {
        json!({"APIConnect": "DONE", "bank_tran_id": self.bank_tran_id, "trans_id": self.tran_id,
            "refund_ref_id": self.reference, "status": status, "errorReason": ""})
    }
}
