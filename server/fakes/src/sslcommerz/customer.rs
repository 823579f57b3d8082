//! Customers, and the common interface of the fakes.

use http::Method;

use super::{
    Notice, SslCommerz, State,
    attempt::{Attempt, End},
    page,
};
use crate::{Answer, Back, Call, Does, Entry, Fake, lock};

impl SslCommerz {
    /// Pays a session, as its customer does. Returns the browser's way back, or `None` if the page is closed. The merchant gets
    /// a notice first; see [`notices_sent`](Self::notices_sent).
    pub fn pay(&self, session: &str) -> Option<Back> {
        lock(&self.0).end(session, End::Valid)
    }

    /// Fails a session: the customer's bank declines.
    pub fn fail(&self, session: &str) -> Option<Back> {
        lock(&self.0).end(session, End::Failed)
    }

    /// Cancels a session, as its customer does.
    pub fn cancel(&self, session: &str) -> Option<Back> {
        lock(&self.0).end(session, End::Cancelled)
    }

    /// Ends a session whose customer chose no way to pay. The browser does not go back. Returns whether it was open.
    pub fn leave(&self, session: &str) -> bool {
        lock(&self.0).end(session, End::Unattempted).is_some()
    }

    /// Expires a session. The browser does not go back. Returns whether it was open.
    pub fn expire(&self, session: &str) -> bool {
        lock(&self.0).end(session, End::Expired).is_some()
    }

    /// Takes the money of a session's `tran_id` once more, in another transaction. Returns its `bank_tran_id`.
    pub fn pay_again(&self, session: &str) -> Option<String> {
        let mut state = lock(&self.0);
        state.attempt(session).filter(|attempt| attempt.is_paid())?;
        state.add(session, End::Valid)?;
        state.attempt(session)?.rows.last().map(|row| row.bank_tran_id.clone())
    }

    /// Takes a session's money after all, even if it had failed. Sends no notice.
    pub fn take_late(&self, session: &str) {
        let State { attempts, made, .. } = &mut *lock(&self.0);
        let unpaid = attempts.iter_mut().find(|attempt| attempt.key == session && !attempt.is_paid());
        if let Some(attempt) = unpaid {
            *made += 1;
            attempt.end(End::Valid, *made);
        }
    }

    pub(super) fn customer(&self, call: &Call, session: &str) -> Answer {
        if call.method == Method::POST {
            let form = call.form();
            let back = match form.get("action").map_or("", String::as_str) {
                "cancel" => self.cancel(session),
                "fail" => self.fail(session),
                _ => self.pay(session),
            };
            return back.map_or_else(page::closed, |back| page::returning(&back));
        }
        match lock(&self.0).attempt(session).filter(|attempt| attempt.is_open) {
            None => page::closed(),
            Some(attempt) => {
                attempt.is_opened = true;
                page::open(attempt)
            }
        }
    }
}

impl State {
    pub(super) fn attempt(&mut self, key: &str) -> Option<&mut Attempt> {
        self.attempts.iter_mut().find(|attempt| attempt.key == key)
    }

    /// Ends an open session.
    fn end(&mut self, key: &str, end: End) -> Option<Back> {
        self.attempt(key).filter(|attempt| attempt.is_open)?;
        self.add(key, end)
    }

    /// Adds a transaction to a session and sends its notice.
    fn add(&mut self, key: &str, end: End) -> Option<Back> {
        let Self { attempts, made, notices, .. } = self;
        let attempt = attempts.iter_mut().find(|attempt| attempt.key == key)?;
        *made += 1;
        attempt.end(end, *made);
        let form = attempt.notice(attempt.rows.last()?);
        attempt.last_notice = Some(form.clone());
        if !attempt.field("ipn_url").is_empty() {
            notices.send(Notice { url: attempt.field("ipn_url").to_owned(), form: form.clone() });
        }
        let url = match end {
            End::Valid => "success_url",
            End::Failed => "fail_url",
            _ => "cancel_url",
        };
        Some(Back { method: Method::POST, url: attempt.field(url).to_owned(), form })
    }
}

impl Fake for SslCommerz {
    fn name(&self) -> &'static str {
        "sslcommerz"
    }

    fn books(&self) -> Vec<Entry> {
        SslCommerz::books(self)
    }

    fn visit(&self, customer_url: &str, does: Does) -> Option<Back> {
        let url = url::Url::parse(customer_url).ok()?;
        let session = url.query_pairs().find(|(name, _)| name == "SESSIONKEY")?.1.into_owned();
        match does {
            Does::Pays => self.pay(&session),
            Does::HasNoMoney => self.fail(&session),
            Does::Cancels => self.cancel(&session),
        }
    }

    fn take_late(&self, id: &str) {
        SslCommerz::take_late(self, id);
    }

    fn falsify_amount(&self, id: &str, minor: u64) {
        SslCommerz::falsify_amount(self, id, minor);
    }
}
