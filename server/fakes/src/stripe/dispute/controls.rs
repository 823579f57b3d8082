//! What the customer's bank and the merchant do about a dispute.

use super::{
    super::{
        State, Stripe,
        balance::Balance,
        session::{LARGEST, Session},
    },
    Dispute, Status,
};
use crate::lock;

const CREATED: &str = "charge.dispute.created";
const UPDATED: &str = "charge.dispute.updated";
const CLOSED: &str = "charge.dispute.closed";
const WITHDRAWN: &str = "charge.dispute.funds_withdrawn";
const REINSTATED: &str = "charge.dispute.funds_reinstated";

impl Stripe {
    /// Disputes this much of a charge, or what is not refunded if it is 0. `of` is the id of the session, the payment intent or
    /// the charge, or the reference. A chargeback withdraws the money and a fee; an inquiry moves no money. Returns the id of
    /// the dispute, or `None` if nothing is charged, or Stripe does not know the reason.
    pub fn open_dispute(&self, of: &str, minor: u64, reason: &str, is_inquiry: bool) -> Option<String> {
        let mut state = lock(&self.state);
        let session = state.charged(of)?;
        let State { sessions, disputes, balance, events, holds_withdrawals, .. } = &mut *state;
        let session = sessions.get_mut(&session)?;
        let amount = if minor == 0 { session.amount.saturating_sub(session.refunded) } else { minor };
        if amount == 0 || amount > LARGEST {
            return None;
        }
        let mut dispute = Dispute::new(session, amount, reason, is_inquiry, disputes.len() as u64)?;
        session.is_disputed = true;
        let mut kinds = vec![CREATED];
        if !is_inquiry && !*holds_withdrawals {
            dispute.withdraw(session, balance);
            kinds.push(WITHDRAWN);
        }
        let (id, json) = (dispute.id.clone(), dispute.json(balance));
        disputes.push(dispute);
        events.send_all(kinds.into_iter().map(|kind| (kind, json.clone())).collect());
        Some(id)
    }

    /// The ids of all disputes, oldest first.
    pub fn disputes(&self) -> Vec<String> {
        lock(&self.state).disputes.iter().map(|dispute| dispute.id.clone()).collect()
    }

    /// Makes chargebacks withdraw their money only by [`withdraw`](Self::withdraw), or when they are lost.
    pub fn hold_withdrawals(&self, are_held: bool) {
        lock(&self.state).holds_withdrawals = are_held;
    }

    /// Withdraws the money of a chargeback whose withdrawal was held. Returns whether it did.
    pub fn withdraw(&self, dispute: &str) -> bool {
        self.change(dispute, |dispute, session, balance, _| {
            let may = !dispute.status.is_inquiry() && !dispute.status.is_closed() && dispute.withdrawal.is_none();
            may.then(|| {
                dispute.withdraw(session, balance);
                vec![WITHDRAWN]
            })
        })
    }

    /// Gives the withdrawn money back before the dispute is closed. The fee stays. Returns whether it did.
    pub fn reinstate(&self, dispute: &str) -> bool {
        self.change(dispute, |dispute, session, balance, _| {
            let may = !dispute.status.is_closed() && dispute.is_withdrawn();
            may.then(|| {
                dispute.reinstate(session, balance);
                vec![REINSTATED]
            })
        })
    }

    /// Makes a chargeback of an open inquiry: its money and a fee are withdrawn. Returns whether it did.
    pub fn escalate(&self, dispute: &str) -> bool {
        self.change(dispute, |dispute, session, balance, holds_withdrawals| {
            if !dispute.status.is_inquiry() || dispute.status.is_closed() {
                return None;
            }
            dispute.begin_response(Status::NeedsResponse);
            let mut kinds = vec![UPDATED];
            if !holds_withdrawals {
                dispute.withdraw(session, balance);
                kinds.push(WITHDRAWN);
            }
            Some(kinds)
        })
    }

    /// Sends evidence to the bank, which reviews it. Returns whether it did.
    pub fn answer_dispute(&self, dispute: &str) -> bool {
        self.change(dispute, |dispute, _, _, _| {
            dispute.status = match dispute.status {
                Status::NeedsResponse => Status::UnderReview,
                Status::WarningNeedsResponse => Status::WarningUnderReview,
                _ => return None,
            };
            dispute.submissions += 1;
            Some(vec![UPDATED])
        })
    }

    /// Closes a dispute. If the merchant won, the withdrawn money comes back. An inquiry has no winner. Returns whether it did:
    /// a dispute whose money was reinstated cannot be lost.
    pub fn close_dispute(&self, dispute: &str, is_won: bool) -> bool {
        self.change(dispute, |dispute, session, balance, _| {
            let is_lost_after_all = !is_won && dispute.reinstatement.is_some();
            if dispute.status.is_closed() || is_lost_after_all {
                return None;
            }
            let is_inquiry = dispute.status.is_inquiry();
            dispute.status = match is_won {
                _ if is_inquiry => Status::WarningClosed,
                true => Status::Won,
                false => Status::Lost,
            };
            Some(match is_won {
                _ if is_inquiry => vec![CLOSED],
                true if dispute.is_withdrawn() => {
                    dispute.reinstate(session, balance);
                    vec![CLOSED, REINSTATED]
                }
                false if dispute.withdrawal.is_none() => {
                    dispute.withdraw(session, balance);
                    vec![WITHDRAWN, CLOSED]
                }
                _ => vec![CLOSED],
            })
        })
    }

    /// Changes a dispute and sends the events of the change. Returns whether it changed.
    fn change(
        &self,
        id: &str,
        step: impl FnOnce(&mut Dispute, &mut Session, &mut Balance, bool) -> Option<Vec<&'static str>>,
    ) -> bool {
        let State { sessions, disputes, balance, events, holds_withdrawals, .. } = &mut *lock(&self.state);
        let Some(dispute) = disputes.iter_mut().find(|dispute| dispute.id == id) else { return false };
        let Some(session) = sessions.get_mut(&dispute.session) else { return false };
        let Some(kinds) = step(dispute, session, balance, *holds_withdrawals) else { return false };
        let json = dispute.json(balance);
        events.send_all(kinds.into_iter().map(|kind| (kind, json.clone())).collect());
        true
    }
}
