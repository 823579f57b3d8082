//! The account's activity: how many payments were created on each day, and how much of them was paid.

use crate::{Balance, Currency, Day, ErrorCode, aliased::aliased_resource, query::Query, validation::Invalid};

aliased_resource! {
    /// What an account's payments come to on each of several days, which are days in UTC. Each environment has its own activity.
    #[derive(Debug)]
    pub struct Activity {
        /// The first day.
        since: Day = "since",
        /// The last day: today.
        until: Day = "until",
        /// Every day from the first to the last, also those without payments.
        days: Vec<DayActivity> = "days",
    }
}

aliased_resource! {
    /// What the payments that were created on a day come to.
    #[derive(Debug)]
    pub struct DayActivity {
        /// The day.
        date: Day = "date",
        /// Payments in taka.
        bdt: CurrencyActivity = "bdt",
        /// Payments in US dollars.
        usd: CurrencyActivity = "usd",
    }
}

impl DayActivity {
    /// What the day's payments in a currency come to.
    #[must_use]
    pub fn of(&self, currency: Currency) -> &CurrencyActivity {
        match currency {
            Currency::Bdt => &self.bdt,
            Currency::Usd => &self.usd,
        }
    }
}

aliased_resource! {
    /// What payments in one currency come to that were created on the same day. Paid divided by created is their success rate.
    #[derive(Debug)]
    pub struct CurrencyActivity {
        /// How many were created.
        created: u64 = "created",
        /// How many of these were ever paid, on whichever day.
        paid: u64 = "paid",
        /// The gross amount of those that were ever paid. Refunds do not reduce it.
        volume: Balance = "volume",
    }
}

/// The days that a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActivityQuery {
    /// How many days, today among them.
    pub days: u16,
    /// The currency of a chart.
    pub currency: Currency,
}

impl ActivityQuery {
    /// The default number of days.
    pub const DEFAULT_DAYS: u16 = 30;
    /// The maximum number of days.
    pub const MAX_DAYS: u16 = 366;

    /// Parses the query parameter `days` (1 to 366, default 30). `parameter` returns the value of one.
    ///
    /// # Errors
    /// One sentence per invalid parameter.
    pub fn from_query(parameter: impl Fn(&str) -> Option<String>) -> Result<Self, Invalid> {
        Self::of_chart(|name| (name == "days").then(|| parameter(name)).flatten())
    }

    /// As [`from_query`](Self::from_query) for a chart, which also has the parameter `currency` (default BDT).
    ///
    /// # Errors
    /// One sentence per invalid parameter.
    pub fn of_chart(parameter: impl Fn(&str) -> Option<String>) -> Result<Self, Invalid> {
        let mut query = Query::of(parameter);
        let days = query.whole("days", Self::MAX_DAYS).unwrap_or(Self::DEFAULT_DAYS);
        let currency = query.parsed("currency", ErrorCode::CurrencyInvalid, "must be BDT or USD");
        query.invalid.or(Self { days, currency: currency.unwrap_or(Currency::Bdt) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(pairs: &[(&str, &str)]) -> Result<ActivityQuery, Invalid> {
        ActivityQuery::of_chart(|name| {
            pairs.iter().find(|(known, _)| *known == name).map(|(_, text)| (*text).to_owned())
        })
    }

    #[test]
    fn a_request_asks_for_thirty_days_unless_it_says_otherwise() {
        assert_eq!(chart(&[]).unwrap(), ActivityQuery { days: 30, currency: Currency::Bdt });
        let asked = chart(&[("days", "366"), ("currency", "USD")]).unwrap();
        assert_eq!(asked, ActivityQuery { days: 366, currency: Currency::Usd });
        let of_days = ActivityQuery::from_query(|name| (name == "currency").then(|| "EUR".to_owned()));
        assert_eq!(of_days.unwrap().days, 30, "days have both currencies");
    }

    #[test]
    fn each_invalid_parameter_is_named() {
        for days in ["0", "367", "-1", "1.5", "x", ""] {
            let fields = chart(&[("days", days), ("currency", "EUR")]).unwrap_err().fields();
            let named: Vec<_> = fields.iter().map(|fault| fault.field.as_str()).collect();
            assert_eq!(named, ["days", "currency"], "{days}");
        }
    }
}
