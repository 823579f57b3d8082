//! GET requests.

use serde_json::Value;

use super::{
    State, Stripe,
    expand::{expand, is_expand},
    kind::Kind,
    page::{PARAMETERS, page},
    payout::Payout,
    refusal::{no_such, refuse_unknown},
    session::Session,
};
use crate::{Answer, Call, Form, lock};

impl Stripe {
    /// Answers a GET request of an object or a list.
    pub(super) fn get(&self, Call { path, query, .. }: &Call, base_url: &str) -> Result<Value, Answer> {
        let state = &mut *lock(&self.state);
        let after = |kind: Kind| path.strip_prefix("/v1/")?.strip_prefix(kind.path());
        let found = Kind::ALL.into_iter().find_map(|kind| Some((kind, after(kind)?)));
        let (kind, mut value) = match found {
            Some((kind, "")) => (kind, state.list(kind, query, base_url)?),
            Some((kind, rest)) => {
                let id = rest.strip_prefix('/').ok_or_else(|| no_such("path", path))?;
                (kind, state.retrieve(kind, id, query, base_url)?)
            }
            None => return Err(no_such("path", path)),
        };
        expand(&mut value, kind, query, &|id| state.object(id))?;
        Ok(value)
    }
}

impl State {
    fn retrieve(&mut self, kind: Kind, id: &str, query: &Form, base_url: &str) -> Result<Value, Answer> {
        refuse_unknown_but_expand(query, &[])?;
        let found = match kind {
            Kind::Session => self.sessions.get_mut(id).map(|session| {
                session.expire_if_due();
                session.json(base_url)
            }),
            Kind::Intent => self.sessions.values().find(|it| it.intent == id).map(Session::intent_json),
            Kind::Charge => self.charge_json(id),
            Kind::Refund => self.refunds.get(id).map(|refund| refund.json()),
            Kind::Dispute => self.dispute_json(id),
            Kind::Row => self.balance.row(id),
            Kind::Payout => self.payout_json(id),
        };
        found.ok_or_else(|| no_such(kind.name(), id))
    }

    fn list(&mut self, kind: Kind, query: &Form, base_url: &str) -> Result<Value, Answer> {
        let filters = kind.filters().ok_or_else(|| no_such("path", kind.path()))?;
        // Balance transactions do not show their payout.
        let payout = if kind == Kind::Row { &["payout"][..] } else { &[] };
        refuse_unknown_but_expand(query, &[&PARAMETERS[..], filters, payout].concat())?;
        if let Some(payout) = query.get("payout") {
            self.payouts.iter().find(|it| it.id == *payout).ok_or_else(|| no_such("payout", payout))?;
        }
        page(kind, self.newest_first(kind, query, base_url), query)
    }

    fn newest_first(&mut self, kind: Kind, query: &Form, base_url: &str) -> Vec<Value> {
        match kind {
            Kind::Session => {
                self.sessions.values_mut().for_each(Session::expire_if_due);
                newest_first(self.sessions.values(), |it| it.number, |it| it.json(base_url))
            }
            Kind::Refund => newest_first(self.refunds.values(), |it| it.number, |it| it.json()),
            Kind::Dispute => newest_first(self.disputes.iter(), |it| it.number, |it| it.json(&self.balance)),
            Kind::Row => self.balance.newest_first(query.get("payout")),
            Kind::Payout => newest_first(self.payouts.iter(), |it| it.number, Payout::json),
            Kind::Intent | Kind::Charge => Vec::new(),
        }
    }

    /// Finds an object by its id, to expand it.
    fn object(&self, id: &str) -> Option<Value> {
        let (prefix, _) = id.split_once('_')?;
        match prefix {
            "pi" => self.sessions.values().find(|it| it.intent == id).map(Session::intent_json),
            "ch" => self.charge_json(id),
            "re" => self.refunds.get(id).map(|refund| refund.json()),
            "du" => self.dispute_json(id),
            "po" => self.payout_json(id),
            "txn" => self.balance.row(id),
            _ => None,
        }
    }

    fn dispute_json(&self, id: &str) -> Option<Value> {
        self.disputes.iter().find(|dispute| dispute.is(id)).map(|dispute| dispute.json(&self.balance))
    }

    fn payout_json(&self, id: &str) -> Option<Value> {
        self.payouts.iter().find(|payout| payout.id == id).map(Payout::json)
    }

    fn charge_json(&self, id: &str) -> Option<Value> {
        let is_of = |session: &&Session| session.charge.as_ref().is_some_and(|charge| charge.id == id);
        self.sessions.values().find(is_of).map(Session::charge_json)
    }
}

fn newest_first<'s, T: 's>(
    all: impl Iterator<Item = &'s T>,
    number: impl Fn(&T) -> u64,
    json: impl FnMut(&'s T) -> Value,
) -> Vec<Value> {
    let mut all: Vec<&T> = all.collect();
    all.sort_by_key(|one| std::cmp::Reverse(number(one)));
    all.into_iter().map(json).collect()
}

fn refuse_unknown_but_expand(query: &Form, known: &[&str]) -> Result<(), Answer> {
    refuse_unknown(query.keys().filter(|name| !is_expand(name)), known)
}
