//! When the server requests payouts automatically.

use serde::Serialize;

use crate::{
    Amount, Currency, Day, ErrorCode, PayoutDestination, Timestamp,
    aliased::{UnknownFields, aliased_resource},
    create_payment,
    open_enum::open_enum,
    payout_params,
    validation::{Fields, Invalid},
};

open_enum! {
    /// How often a payout is requested. Each begins with a day in Dhaka.
    pub enum PayoutInterval {
        /// Only by a request.
        Manual = "manual",
        /// Each day.
        Daily = "daily",
        /// Each Sunday.
        Weekly = "weekly",
        /// On the first day of each month.
        Monthly = "monthly",
    }
}

impl PayoutInterval {
    /// When the next day begins on which a payout is due; `None` if none is.
    #[must_use]
    pub fn next_after(&self, now: Timestamp) -> Option<Timestamp> {
        let mut day = Day::in_dhaka(now);
        loop {
            day = day.next()?;
            let is_due = match self {
                Self::Manual | Self::Other(_) => return None,
                Self::Daily => true,
                Self::Weekly => day.is_sunday(),
                Self::Monthly => day.of_month() == 1,
            };
            if is_due {
                return format!("{day}T00:00:00+06:00").parse().ok();
            }
        }
    }
}

aliased_resource! {
    /// When payouts are requested by themselves.
    #[derive(Debug)]
    pub struct PayoutSchedule {
        /// How often.
        interval: PayoutInterval = "interval",
        /// Nothing is requested while less is available.
        minimum: Amount = "minimum",
        /// When the next payout is requested.
        next_at: Option<Timestamp> = "nextAt",
    }
}

impl PayoutSchedule {
    /// Without a schedule, only requests make payouts.
    #[must_use]
    pub fn manual() -> Self {
        Self::new(PayoutInterval::Manual, Amount::ZERO, Timestamp::UNIX_EPOCH)
    }

    /// A schedule that begins now.
    #[must_use]
    pub fn new(interval: PayoutInterval, minimum: Amount, now: Timestamp) -> Self {
        Self { next_at: interval.next_after(now), interval, minimum, unknown: UnknownFields::default() }
    }
}

aliased_resource! {
    /// Where the payouts in a currency go, and when.
    #[derive(Debug)]
    pub struct PayoutAccount {
        /// The currency of the payouts.
        currency: Currency = "currency",
        /// Where they go.
        destination: PayoutDestination = "destination",
        /// When they are requested by themselves.
        schedule: PayoutSchedule = "schedule",
    }
}

/// The parameters of a schedule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SetPayoutSchedule {
    /// The currency of the payouts.
    pub currency: Currency,
    /// How often a payout is requested.
    pub interval: PayoutInterval,
    /// Nothing is requested while less is available. Default: nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum: Option<Amount>,
}

impl SetPayoutSchedule {
    /// Requests a payout of all that is available, this often.
    #[must_use]
    pub const fn new(currency: Currency, interval: PayoutInterval) -> Self {
        Self { currency, interval, minimum: None }
    }

    /// Parses a request body with `currency`, `interval` (`manual`, `daily`, `weekly` or `monthly`) and the optional `minimum`.
    /// Refuses any other field.
    ///
    /// # Errors
    /// One sentence per invalid field.
    pub fn from_json(body: &[u8]) -> Result<Self, Invalid> {
        let mut fields = Fields::of_body(body)?.refusing_unknown();
        let currency = payout_params::currency(&mut fields);
        let interval = match fields.text("interval", 64).map(|word| PayoutInterval::known(&word)) {
            Some(Some(interval)) => interval,
            Some(None) => {
                let error = "must be manual, daily, weekly or monthly";
                fields.error("interval", ErrorCode::FieldInvalid, error, PayoutInterval::Manual)
            }
            None => fields.error("interval", ErrorCode::FieldMissing, "must be given", PayoutInterval::Manual),
        };
        let minimum = fields.has("minimum").then(|| create_payment::amount_in(&mut fields, "minimum"));
        fields.finish(Self { currency, interval, minimum })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payout_is_due_when_its_day_begins_in_dhaka() {
        for (interval, now, next) in [
            ("manual", "2026-03-01T00:00:00Z", None),
            ("daily", "2026-03-01T17:59:59Z", Some("2026-03-01T18:00:00Z")),
            ("daily", "2026-03-01T18:00:00Z", Some("2026-03-02T18:00:00Z")),
            // The eighth of March 2026 is a Sunday.
            ("weekly", "2026-03-07T17:00:00Z", Some("2026-03-07T18:00:00Z")),
            ("weekly", "2026-03-07T19:00:00Z", Some("2026-03-14T18:00:00Z")),
            ("monthly", "2026-02-28T19:00:00Z", Some("2026-03-31T18:00:00Z")),
            ("monthly", "2026-12-31T00:00:00Z", Some("2026-12-31T18:00:00Z")),
        ] {
            let found = PayoutInterval::known(interval).unwrap().next_after(now.parse().unwrap());
            assert_eq!(found, next.map(|next| next.parse().unwrap()), "{interval} after {now}");
        }
    }

    #[test]
    fn a_schedule_needs_a_currency_and_an_interval() {
        let parse = |body: &str| SetPayoutSchedule::from_json(body.as_bytes());
        let daily = parse(r#"{"currency": "BDT", "interval": "daily", "minimum": 500}"#).unwrap();
        assert_eq!((daily.interval, daily.minimum), (PayoutInterval::Daily, Some(Amount::from_minor(50_000))));
        for body in ["{}", r#"{"currency": "BDT", "interval": "hourly"}"#, r#"{"interval": "daily"}"#] {
            assert!(parse(body).is_err(), "{body}");
        }
    }
}
