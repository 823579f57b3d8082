//! The account's activity: how many payments were created on each day, and how much of them was paid.

use crate::{Balance, Currency, Day, ErrorCode, aliased::aliased_resource, query::Query, validation::Invalid};

aliased_resource! {
    /// The totals of an account's payments for each of several days (in UTC). Each environment has its own activity.
    #[derive(Debug)]
    pub struct Activity {
        /// The first day.
        since: Day = "since",
        /// The last day: today.
        until: Day = "until",
        /// Every day from the first to the last, even without payments.
        days: Vec<DayActivity> = "days",
    }
}

aliased_resource! {
    /// The totals of the payments that were created on one day.
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
    /// The day's totals in one currency. `None` if this version does not know the currency.
    #[must_use]
    pub fn of(&self, currency: Currency) -> Option<&CurrencyActivity> {
        match currency {
            Currency::Bdt => Some(&self.bdt),
            Currency::Usd => Some(&self.usd),
            Currency::Other(_) => None,
        }
    }
}

aliased_resource! {
    /// The totals of the payments in one currency that were created on one day. `paid` divided by `created` is the success
    /// rate.
    #[derive(Debug)]
    pub struct CurrencyActivity {
        /// How many payments were created.
        created: u64 = "created",
        /// How many of these were paid, on that day or later.
        paid: u64 = "paid",
        /// The gross amount of the paid ones. Refunds do not reduce it.
        volume: Balance = "volume",
    }
}

/// The days that a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ActivityQuery {
    /// How many days, including today.
    pub days: u16,
    /// The currency of a chart.
    pub currency: Currency,
}

impl ActivityQuery {
    /// The default number of days.
    pub const DEFAULT_DAYS: u16 = 30;
    /// The maximum number of days.
    pub const MAX_DAYS: u16 = 366;

    /// Parses the query parameter `days` (1 to 366, default 30). `parameter` returns a parameter's value.
    ///
    /// # Errors
    /// One sentence per invalid parameter.
    pub fn from_query(parameter: impl Fn(&str) -> Option<String>) -> Result<Self, Invalid> {
        Self::of_chart(|name| (name == "days").then(|| parameter(name)).flatten())
    }

    /// Parses the same for a chart, and the parameter `currency` (default BDT).
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
    fn by_default_a_request_asks_for_thirty_days() {
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
            let named: Vec<_> = fields.iter().map(|error| error.field.as_str()).collect();
            assert_eq!(named, ["days", "currency"], "{days}");
        }
    }
}
