//! The limits of a workspace, as sums in the heads of its scopes. A new payment changes its scope's head anyway. So its
//! limits need no other read, and all earlier payments count.

use std::ops::Bound;

use payments_core::{Amount, Currency, Day, Environment, Payment, PaymentId, Status};

use super::{
    codec::{items, unpack},
    draft::Draft,
    entry::Entry,
    head::{CHUNK, Head},
    keys,
    list::List,
};
use crate::{
    CommitError, Conflict,
    domain::{LimitReached, Scope, Workspace, seconds_of_minute_left},
};

/// The beginning of the names of all limits.
const LIMIT: &str = "limit.";
const A_MINUTE: &str = "limit.payments";
pub(super) const OF_ENDPOINTS: &str = "limit.endpoints";
/// The sum of a day's amounts.
const AMOUNT: &str = "amount";

fn of_payment(currency: Currency) -> String {
    format!("limit.payment.{}", currency.code())
}

fn of_day(currency: Currency) -> String {
    format!("limit.day.{}", currency.code())
}

/// The entries of a workspace's limits.
pub(super) fn limits_of(workspace: &Workspace) -> Vec<Entry> {
    let limits = &workspace.limits;
    let amount = |name: fn(Currency) -> String| {
        move |(currency, amount): (&Currency, &Amount)| (name(*currency), i128::from(amount.as_minor()))
    };
    let mut sums: Vec<_> = limits.payment_at_most.iter().map(amount(of_payment)).collect();
    sums.extend(limits.day_at_most.iter().map(amount(of_day)));
    let counts = [(A_MINUTE, limits.payments_a_minute), (OF_ENDPOINTS, limits.endpoints)];
    sums.extend(counts.into_iter().filter_map(|(name, count)| Some((name.to_owned(), count?.into()))));
    let heads = Environment::ALL.map(|environment| keys::head_of_scope(&workspace.scope(environment)));
    let of_head = |head: Vec<u8>| {
        sums.clone().into_iter().map(move |(name, amount)| Entry::Sum { head: head.clone(), name, amount })
    };
    heads.into_iter().flat_map(of_head).collect()
}

/// The part of a payment in the amount of its day. A payment that ended without money has none.
pub(super) fn part_of_day(scope: &Scope, payment: &Payment) -> Option<Entry> {
    let is_part = !matches!(payment.status, Status::Failed | Status::Cancelled | Status::Expired);
    let amount = payment.amount.as_minor().into();
    is_part.then(|| Entry::Sum { head: head_of_day(scope, payment), name: AMOUNT.to_owned(), amount })
}

fn head_of_day(scope: &Scope, payment: &Payment) -> Vec<u8> {
    keys::limited_day(scope, payment.currency, Day::in_dhaka(payment.created_at))
}

fn amount_of(minor: i128) -> Amount {
    Amount::from_minor(u64::try_from(minor).unwrap_or_default())
}

impl Draft<'_> {
    /// Checks a new payment against the limits of its workspace. Returns whether it is part of the amount of its day.
    pub(super) fn check_limits(&mut self, scope: &Scope, payment: &Payment) -> Result<bool, CommitError> {
        let head = self.head(&keys::head_of_scope(scope))?;
        let first = head.sums.range::<str, _>((Bound::Included(LIMIT), Bound::Unbounded)).next();
        if first.is_none_or(|(name, _)| !name.starts_with(LIMIT)) {
            return Ok(false);
        }
        let limit = |head: &Head, name: &str| head.sums.get(name).copied();
        let (currency, minor) = (payment.currency, i128::from(payment.amount.as_minor()));
        let of_payment = limit(head, &of_payment(currency));
        let (a_minute, of_day) = (limit(head, A_MINUTE), limit(head, &of_day(currency)));
        // Read all before any refusal, so that a place learns from one run which keys are read.
        let seconds = match a_minute {
            Some(at_most) => self.seconds_to_wait(scope, payment, u64::try_from(at_most).unwrap_or(u64::MAX))?,
            None => 0,
        };
        let so_far = match of_day {
            Some(_) => self.head(&head_of_day(scope, payment))?.sum(AMOUNT),
            None => 0,
        };
        let reached = match (of_payment, of_day) {
            (Some(at_most), _) if minor > at_most => LimitReached::Payment { at_most: amount_of(at_most), currency },
            (_, Some(at_most)) if so_far + minor > at_most => {
                LimitReached::Day { at_most: amount_of(at_most), left: amount_of(at_most - so_far), currency }
            }
            _ if seconds > 0 => {
                let at_most = a_minute.and_then(|it| u32::try_from(it).ok()).unwrap_or_default();
                LimitReached::Minute { at_most, seconds }
            }
            _ => return Ok(of_day.is_some()),
        };
        Err(Conflict::LimitReached(reached).into())
    }

    /// How long a new payment must wait until fewer than `at_most` were created in the minute before it.
    fn seconds_to_wait(&mut self, scope: &Scope, payment: &Payment, at_most: u64) -> Result<u64, CommitError> {
        let list = List::payments(scope);
        let head = self.head(&list.head)?;
        let Some(tail) = list.tail(head) else { return Ok(0) };
        let Some(position) = tail.count().checked_sub(at_most) else { return Ok(0) };
        let nth = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        let item = match position.checked_sub(tail.before) {
            Some(in_tail) => tail.items().nth(nth(in_tail)).map(<[u8]>::to_vec),
            None => {
                let chunk = self.get(&list.chunk(position / CHUNK))?;
                chunk.and_then(|chunk| items(&chunk).nth(nth(position % CHUNK)).map(<[u8]>::to_vec))
            }
        };
        let id: Option<PaymentId> = item.and_then(|item| unpack(PaymentId::PREFIX, &item));
        let at = id.and_then(|id| id.created_at());
        Ok(at.map_or(0, |at| seconds_of_minute_left(at, payment.created_at)))
    }
}
