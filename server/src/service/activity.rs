//! The account's activity: the totals of each of the last days.

use std::iter;

use payments_core::{Activity, Balance, Currency, CurrencyActivity, Day, DayActivity, UnknownFields};

use super::{Caller, Result, Service};
use crate::domain::DayTotals;

impl Service {
    /// The activity of the last `days` days, with today, in the key's environment.
    pub async fn activity(&self, caller: &Caller, days: u16) -> Result<Activity> {
        let until = Day::of(self.ambient.now());
        let since = until.minus(days.saturating_sub(1));
        let bdt = self.store.days(&caller.scope, Currency::Bdt, since..=until).await?;
        let usd = self.store.days(&caller.scope, Currency::Usd, since..=until).await?;
        let every = iter::successors(Some(since), |day| day.next()).take_while(|day| *day <= until);
        let days = every.map(|date| DayActivity {
            date,
            bdt: of_day(&bdt, date),
            usd: of_day(&usd, date),
            unknown: UnknownFields::new(),
        });
        Ok(Activity { since, until, days: days.collect(), unknown: UnknownFields::new() })
    }
}

/// A day's totals, out of a list sorted by day.
fn of_day(days: &[(Day, DayTotals)], date: Day) -> CurrencyActivity {
    let found = days.binary_search_by_key(&date, |(day, _)| *day).ok().and_then(|nth| days.get(nth));
    let DayTotals { created, paid, volume_minor } = found.map(|(_, totals)| *totals).unwrap_or_default();
    CurrencyActivity { created, paid, volume: Balance::from_minor(volume_minor), unknown: UnknownFields::new() }
}
