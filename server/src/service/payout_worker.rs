//! The automatic steps of payouts: schedules request them, the operator's policy approves small ones, and the sandbox
//! plays the bank.

use std::{sync::Arc, time::Duration};

use payments_core::{Environment, Payout, PayoutSchedule, PayoutStatus, PayoutStep, Timestamp};
use tokio::time::{MissedTickBehavior, interval};

use super::{Result, Service, ServiceError, payout_steps::is_too_new, retry_on_conflict};
use crate::{
    domain::{Actor, Destination, PayoutCondition, PayoutRecord, held_day},
    store::{Change, Write},
};

const POLL_INTERVAL: Duration = Duration::from_secs(5);
/// How many schedules are looked at together.
const AT_ONCE: usize = 100;
/// How many payouts of a merchant are added up for the policy at most. With more in a day, a person approves.
const MAX_A_DAY: usize = 100;

impl Service {
    /// Moves payouts on. Runs forever.
    pub async fn move_payouts(self: Arc<Self>) {
        let mut ticks = interval(POLL_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            if let Err(error) = self.move_payouts_once().await {
                tracing::error!(%error, "could not read payouts; trying again");
            }
        }
    }

    async fn move_payouts_once(&self) -> Result<()> {
        for due in self.store.due_schedules(self.ambient.now(), AT_ONCE).await? {
            let (developer, currency) = (due.scope.developer_id.clone(), due.currency);
            if let Err(error) = retry_on_conflict(|| self.request_scheduled(&due)).await {
                tracing::error!(%developer, %currency, %error, "could not request a scheduled payout");
            }
        }
        for open in self.store.open_payouts().await? {
            let id = open.payout.id.clone();
            let moved = match open.scope.environment {
                Environment::Test => self.play_bank(&open).await,
                Environment::Live => self.approve_by_policy(&open).await,
                // No record has one.
                Environment::Other(_) => continue,
            };
            match moved {
                // Somebody else was faster.
                Ok(()) | Err(ServiceError::Conflict | ServiceError::Payout(_)) => {}
                // It waits for money, or for the workspace to be active.
                Err(ServiceError::Overdrawn | ServiceError::NotActive) => {}
                Err(error) => tracing::error!(payout = %id, %error, "could not move a payout on"),
            }
        }
        Ok(())
    }

    /// Requests the payout of a schedule that is due, and plans the next one, in one commit.
    async fn request_scheduled(&self, due: &Destination) -> Result<()> {
        let now = self.ambient.now();
        let Some(before) = self.store.destination(&due.scope, due.currency).await? else { return Ok(()) };
        if before.schedule.next_at.is_none_or(|at| at > now) {
            return Ok(());
        }
        let PayoutSchedule { interval, minimum, .. } = before.schedule.clone();
        let schedule = PayoutSchedule::new(interval, minimum, now);
        let after = Destination { version: before.version + 1, schedule, ..before.clone() };
        let planned = Write::Destination(Box::new(after));
        let requested = match self.new_payout(before, None, Actor::Platform).await {
            Ok((record, decision, rules)) if decision.payout.amount >= minimum => {
                let condition = PayoutCondition::Available(rules);
                let (payout, _) = self.records().payout_write(record, decision, condition)?;
                self.commit(Change { writes: vec![payout, planned.clone()], ..Change::default() }).await
            }
            Ok(_) | Err(ServiceError::Payout(_)) => return Ok(self.commit(Change::of(planned)).await?),
            Err(error) => return Err(error),
        };
        match requested.map_err(ServiceError::from) {
            // The next one pays it too.
            Err(ServiceError::PayoutOpen) => Ok(self.commit(Change::of(planned)).await?),
            requested => requested,
        }
    }

    /// Approves a payout if the merchant gets no more than the policy allows today.
    async fn approve_by_policy(&self, open: &PayoutRecord) -> Result<()> {
        let Payout { id, status, currency, amount, destination, .. } = &open.payout;
        let Some(at_most) = self.settings.payouts.approved_a_day.get(currency) else { return Ok(()) };
        let now = self.ambient.now();
        if *status != PayoutStatus::Requested || is_too_new(destination, now) {
            return Ok(());
        }
        let latest = self.store.payouts(&open.scope, None, MAX_A_DAY).await?.unwrap_or_default();
        let is_of_today = |at: Option<Timestamp>| at.is_some_and(|at| held_day(at) == held_day(now));
        if latest.len() == MAX_A_DAY && latest.iter().all(|it| is_of_today(Some(it.payout.created_at))) {
            return Ok(());
        }
        let counts = |it: &&PayoutRecord| {
            it.payout.currency == *currency
                && it.approved_by == Some(Actor::Platform)
                && it.payout.status != PayoutStatus::Cancelled
                && is_of_today(it.payout.approved_at)
        };
        let today: u64 = latest.iter().filter(counts).map(|it| it.payout.amount.as_minor()).sum();
        if today.saturating_add(amount.as_minor()) > at_most.as_minor() {
            return Ok(());
        }
        self.records().step_payout(id, &PayoutStep::Approved, &Actor::Platform, None).await.map(drop)
    }

    /// Pays a test payout. The last four characters of its destination say whether the bank refuses it (`0001`), pays it and
    /// sends it back (`0002`), or pays it.
    async fn play_bank(&self, open: &PayoutRecord) -> Result<()> {
        let Payout { id, status, destination, .. } = &open.payout;
        let reason = || "the bank knows no such account".to_owned();
        let all = [
            PayoutStep::Approved,
            PayoutStep::Sent,
            match &*destination.last4 {
                "0001" => PayoutStep::Failed { reason: reason() },
                _ => PayoutStep::Paid { reference: format!("TEST-{}", id.as_str()) },
            },
            PayoutStep::Returned { reason: reason() },
        ];
        let done = match status {
            PayoutStatus::Requested => 0,
            PayoutStatus::Approved => 1,
            _ => 2,
        };
        let end = if destination.last4 == "0002" { 4 } else { 3 };
        for step in all.iter().take(end).skip(done) {
            self.records().step_payout(id, step, &Actor::Platform, None).await?;
        }
        Ok(())
    }
}
