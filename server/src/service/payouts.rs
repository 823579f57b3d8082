//! Payouts, as merchants ask for them.

use std::collections::HashMap;

use payments_core::{
    Amount, Balance, CreatePayout, Currency, Environment, InEachCurrency, NewPayout, Payout, PayoutAccount,
    PayoutDecision, PayoutId, PayoutPage, PayoutQuery, PayoutSchedule, PayoutStep, SetDestination, SetPayoutSchedule,
    Timestamp, UnknownFields, request_payout,
};
use secrecy::SecretString;

use super::{Acting, Answer, Caller, IdempotentRequest, Record, Result, Service, ServiceError, retry_on_conflict};
use crate::{
    domain::{Actor, Destination, GatewayName, PayoutCondition, PayoutRecord, PayoutRules, Scope, held_day},
    sealed,
    store::{Change, Write},
};

/// What the numbers of destinations are encrypted for.
pub(super) const PURPOSE: &str = "payout destination";

/// The operator's settings for payouts.
#[derive(Debug, Clone, Default)]
pub struct PayoutSettings {
    /// The key under which the numbers of destinations are encrypted. Without it there are no live payouts.
    pub seal_key: Option<SecretString>,
    /// For how many days a gateway holds the money of a payment.
    pub hold_days: HashMap<GatewayName, u8>,
    /// What stays in each merchant's balance.
    pub reserve: HashMap<Currency, Amount>,
    /// How much a merchant gets a day without a person's approval.
    pub approved_a_day: HashMap<Currency, Amount>,
    /// How far refunds may overdraw a merchant's balance. Without a limit, any refund may.
    pub overdraft: HashMap<Currency, Amount>,
}

impl PayoutSettings {
    /// The rules at a time.
    pub(super) fn rules(&self, currency: Currency, now: Timestamp) -> PayoutRules {
        let today = held_day(now);
        // A server whose clock is ahead may have recorded a payment of tomorrow.
        let days = |days: u8| today.saturating_sub(u32::from(days).saturating_sub(1))..=today + 1;
        let mut holds: Vec<_> = self.hold_days.iter().filter(|(_, held)| **held > 0).collect();
        holds.sort_by_key(|(gateway, _)| gateway.as_str());
        PayoutRules {
            holds: holds.into_iter().map(|(gateway, held)| (*gateway, days(*held))).collect(),
            reserve_minor: self.reserve.get(&currency).map_or(0, |reserve| reserve.as_minor().into()),
        }
    }
}

impl Service {
    /// Sets where payouts in a currency go. The schedule stays as it is.
    pub async fn set_destination(&self, caller: &Caller, params: SetDestination) -> Result<PayoutAccount> {
        let (currency, now) = (params.currency, self.ambient.now());
        let (destination, number) = params.masked(now).ok_or(ServiceError::NoPayouts)?;
        let sealed_number = match &self.settings.payouts.seal_key {
            Some(key) => {
                let sealed = sealed::seal(key, PURPOSE, &number.into(), &*self.ambient);
                hex::encode(sealed.ok_or(ServiceError::NoPayouts)?)
            }
            // Nobody sends a test payout.
            None if caller.scope.environment == Environment::Test => String::new(),
            None => return Err(ServiceError::NoPayouts),
        };
        let account = retry_on_conflict(|| async {
            let before = self.store.destination(&caller.scope, currency).await?;
            let after = Destination {
                version: before.as_ref().map_or(0, |before| before.version + 1),
                scope: caller.scope.clone(),
                currency,
                destination: destination.clone(),
                sealed_number: sealed_number.clone(),
                set_by: asker(caller),
                schedule: before.map_or_else(PayoutSchedule::manual, |before| before.schedule),
            };
            self.commit(Change::of(Write::Destination(Box::new(after.clone())))).await?;
            Ok(account_of(after))
        });
        account.await
    }

    /// Sets when payouts in a currency are requested by themselves.
    pub async fn set_payout_schedule(&self, caller: &Caller, params: SetPayoutSchedule) -> Result<PayoutAccount> {
        let SetPayoutSchedule { currency, interval, minimum } = params;
        retry_on_conflict(|| async {
            let before = self.store.destination(&caller.scope, currency).await?;
            let before = before.ok_or(ServiceError::NoDestination(currency))?;
            let minimum = minimum.unwrap_or(Amount::ZERO);
            let schedule = PayoutSchedule::new(interval.clone(), minimum, self.ambient.now());
            let after = Destination { version: before.version + 1, schedule, ..before };
            self.commit(Change::of(Write::Destination(Box::new(after.clone())))).await?;
            Ok(account_of(after))
        })
        .await
    }

    /// Where payouts go, and when.
    pub async fn payout_accounts(&self, caller: &Caller) -> Result<Vec<PayoutAccount>> {
        let mut accounts = Vec::new();
        for currency in Currency::ALL {
            accounts.extend(self.store.destination(&caller.scope, currency).await?.map(account_of));
        }
        Ok(accounts)
    }

    /// What payouts can take, and what gateways still hold.
    pub(super) async fn available(&self, scope: &Scope) -> Result<(InEachCurrency, InEachCurrency)> {
        let (bdt_available, bdt_pending) = self.available_in(scope, Currency::Bdt).await?;
        let (usd_available, usd_pending) = self.available_in(scope, Currency::Usd).await?;
        let of = |bdt, usd| InEachCurrency { bdt, usd, unknown: UnknownFields::new() };
        Ok((of(bdt_available, usd_available), of(bdt_pending, usd_pending)))
    }

    async fn available_in(&self, scope: &Scope, currency: Currency) -> Result<(Balance, Balance)> {
        let rules = self.settings.payouts.rules(currency, self.ambient.now());
        let funds = self.store.funds(scope, currency, &rules).await?;
        let available = i128::from(funds.available(rules.reserve_minor).as_minor());
        Ok((Balance::from_minor(available), Balance::from_minor(funds.pending)))
    }

    /// Requests a payout of an amount, or of all that is available.
    pub async fn request_payout(
        &self,
        caller: &Caller,
        params: CreatePayout,
        request: Option<&IdempotentRequest>,
    ) -> Result<Answer> {
        let CreatePayout { amount, currency } = params;
        retry_on_conflict(|| async {
            let destination = self.store.destination(&caller.scope, currency).await?;
            let destination = destination.ok_or(ServiceError::NoDestination(currency))?;
            let (record, decision, rules) = self.new_payout(destination, amount, asker(caller)).await?;
            self.records().commit_payout(record, decision, PayoutCondition::Available(rules), request).await
        })
        .await
    }

    /// Decides a new payout, which is not committed yet.
    pub(super) async fn new_payout(
        &self,
        destination: Destination,
        amount: Option<Amount>,
        requested_by: Actor,
    ) -> Result<(PayoutRecord, PayoutDecision, PayoutRules)> {
        let Destination { scope, currency, destination, sealed_number, set_by, .. } = destination;
        let now = self.ambient.now();
        let rules = self.settings.payouts.rules(currency, now);
        let funds = self.store.funds(&scope, currency, &rules).await?;
        let next = self.store.next_statement(&scope, currency).await?;
        let new = NewPayout {
            id: PayoutId::new(scope.developer_id.slot(), now, self.ambient.id_bytes()),
            environment: scope.environment,
            currency,
            destination,
            opening_balance: next.opening_balance,
            balance: Balance::from_minor(funds.balance),
            now,
        };
        let decision = request_payout(amount, funds.available(rules.reserve_minor), new)?;
        let record = PayoutRecord {
            version: 0,
            scope,
            payout: decision.payout.clone(),
            sealed_number,
            requested_by,
            approved_by: None,
            destination_by: set_by,
            from: next.from,
            ends_statement: false,
            batch: None,
        };
        Ok((record, decision, rules))
    }

    pub async fn payout(&self, caller: &Caller, id: &str) -> Result<Payout> {
        Ok(self.own_payout(caller, id).await?.payout)
    }

    /// A part of the list, newest first.
    pub async fn payouts(&self, caller: &Caller, query: &PayoutQuery) -> Result<PayoutPage> {
        let found = self.store.payouts(&caller.scope, query.after.as_ref(), query.limit() + 1).await?;
        let mut records = found.ok_or(ServiceError::NotFound { what: Record::Payout })?;
        let has_more = records.len() > query.limit();
        records.truncate(query.limit());
        let items: Vec<_> = records.into_iter().map(|it| it.payout).collect();
        let next = items.last().map(|payout| payout.id.clone()).or_else(|| query.after.clone());
        Ok(PayoutPage { items, has_more, next, unknown: UnknownFields::new() })
    }

    /// Cancels a payout that is not sent.
    pub async fn cancel_payout(&self, caller: &Caller, id: &str) -> Result<Payout> {
        let id = self.own_payout(caller, id).await?.payout.id;
        let step = PayoutStep::Cancelled { reason: None };
        Ok(self.records().step_payout(&id, &step, &asker(caller), None).await?.payout)
    }

    pub(super) async fn own_payout(&self, caller: &Caller, id: &str) -> Result<PayoutRecord> {
        let none = || ServiceError::NotFound { what: Record::Payout };
        let id: PayoutId = id.parse().map_err(|_| none())?;
        self.store.payout(&id).await?.filter(|it| it.scope == caller.scope).ok_or_else(none)
    }
}

/// Who asks: the person of a session, or the key.
fn asker(caller: &Caller) -> Actor {
    Acting::person().map_or_else(|| Actor::Key(caller.id.clone()), Actor::Person)
}

fn account_of(destination: Destination) -> PayoutAccount {
    let Destination { currency, destination, schedule, .. } = destination;
    PayoutAccount { currency, destination, schedule, unknown: UnknownFields::new() }
}
