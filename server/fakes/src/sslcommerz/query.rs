//! Validations and queries.

use serde_json::{Value, json};

use super::{
    State,
    answers::{invalid_request, invalid_transaction},
    attempt::{Attempt, End, Place, Row},
};
use crate::{Answer, Form, now};

impl State {
    /// Validates a payment by its `val_id`.
    pub(super) fn validate(&mut self, query: &Form) -> Answer {
        let Some(val_id) = query.get("val_id").filter(|id| !id.is_empty()) else { return invalid_request() };
        let is_this = |row: &Row| row.end == End::Valid && row.val_id == *val_id;
        let found = self.attempts.iter_mut().find_map(|it| Some((it.rows.iter().position(is_this)?, it)));
        let Some((at, attempt)) = found else { return invalid_transaction() };
        if attempt.is_validation_silent {
            return Answer { body: String::new(), ..Answer::ok(&Value::Null) };
        }
        let status = attempt.rows[at].word();
        attempt.rows[at].validated_at.get_or_insert_with(now);
        let mut shown = attempt.shown(attempt.rows.get(at), status, Place::Validation);
        shown["APIConnect"] = json!("DONE");
        Answer::ok(&shown)
    }

    /// Finds transactions by `tran_id`, or one by `sessionkey`.
    pub(super) fn query(&self, query: &Form) -> Answer {
        match (query.get("tran_id"), query.get("sessionkey")) {
            (Some(tran_id), None) if !tran_id.is_empty() => {
                let of = self.attempts.iter().filter(|attempt| attempt.field("tran_id") == tran_id);
                let rows: Vec<Value> = of.flat_map(rows).collect();
                Answer::ok(&json!({"APIConnect": "DONE", "no_of_trans_found": rows.len(), "element": rows}))
            }
            (None, Some(key)) if !key.is_empty() => {
                let Some(attempt) = self.attempts.iter().find(|attempt| attempt.key == *key) else {
                    return invalid_transaction();
                };
                let paid = attempt.rows.iter().find(|row| row.end == End::Valid);
                let row = paid.or(attempt.rows.last());
                let mut shown = attempt.shown(row, row.map_or("PENDING", Row::word), Place::Query);
                shown["APIConnect"] = json!("DONE");
                shown["sessionkey"] = json!(key);
                Answer::ok(&shown)
            }
            _ => invalid_request(),
        }
    }
}

/// The transactions of a session. A session whose page the customer has opened is one that is pending.
fn rows(attempt: &Attempt) -> Vec<Value> {
    let row = |row, status| {
        let mut shown = attempt.shown(row, status, Place::Query);
        shown["bank_gw"] = json!("Test gateway");
        shown
    };
    if attempt.rows.is_empty() && attempt.is_opened {
        return vec![row(None, "PENDING")];
    }
    attempt.rows.iter().map(|it| row(Some(it), it.word())).collect()
}
