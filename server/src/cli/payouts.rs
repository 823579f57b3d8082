//! The settings of `serve` for payouts, and the commands about them.

use std::{collections::HashMap, hash::Hash, path::PathBuf};

use clap::{Args, Subcommand};
use payments_core::{Amount, Currency, PayoutStatus};
use secrecy::{ExposeSecret, SecretString};

use super::{CommandError, ExportFormat, values::one_of};
use crate::{domain::GatewayName, gateway, service::PayoutSettings};

const MIN_KEY_CHARS: usize = 32;
const MAX_HOLD_DAYS: u8 = 60;

#[derive(Debug, Args)]
pub struct PayoutArgs {
    /// Key of at least 32 characters under which the numbers of merchants' accounts are encrypted. Without it there are no live
    /// payouts. It belongs in the variable or the file. Keep a copy: without it nobody can read the numbers.
    #[arg(long, env = "PAYMENTS_PAYOUT_KEY", hide_env_values = true, value_name = "KEY")]
    pub payout_key: Option<SecretString>,
    /// Days for which payouts leave the money of a gateway's payments alone, such as bkash=2, at most 60; repeatable.
    #[arg(long = "payout-hold", env = "PAYMENTS_PAYOUT_HOLD", value_delimiter = ',', value_name = "GATEWAY=DAYS",
        value_parser = hold)]
    pub payout_holds: Vec<(GatewayName, u8)>,
    /// Amount that payouts leave in each merchant's balance, such as BDT=500; repeatable.
    #[arg(long = "payout-reserve", env = "PAYMENTS_PAYOUT_RESERVE", value_delimiter = ',', value_name = "CURRENCY=AMOUNT",
        value_parser = amount)]
    pub payout_reserves: Vec<(Currency, Amount)>,
    /// Amount a day that a merchant gets without a person's approval, such as BDT=20000; repeatable.
    #[arg(long, env = "PAYMENTS_PAYOUT_WITHOUT_APPROVAL", value_delimiter = ',', value_name = "CURRENCY=AMOUNT",
        value_parser = amount)]
    pub payout_without_approval: Vec<(Currency, Amount)>,
    /// How far refunds may overdraw a merchant's balance, such as BDT=5000; repeatable. Default: any refund may.
    #[arg(long = "refund-overdraft", env = "PAYMENTS_REFUND_OVERDRAFT", value_delimiter = ',', value_name = "CURRENCY=AMOUNT",
        value_parser = amount)]
    pub refund_overdrafts: Vec<(Currency, Amount)>,
}

impl PayoutArgs {
    pub fn settings(&self) -> Result<PayoutSettings, CommandError> {
        Ok(PayoutSettings {
            seal_key: self.payout_key.as_ref().map(long_enough).transpose()?,
            hold_days: each_once("--payout-hold", &self.payout_holds)?,
            reserve: each_once("--payout-reserve", &self.payout_reserves)?,
            approved_a_day: each_once("--payout-without-approval", &self.payout_without_approval)?,
            overdraft: each_once("--refund-overdraft", &self.refund_overdrafts)?,
        })
    }
}

/// Checks a key. Its value is never quoted, so no parser of clap does this.
fn long_enough(key: &SecretString) -> Result<SecretString, CommandError> {
    match key.expose_secret().chars().count() < MIN_KEY_CHARS {
        true => Err(format!("PAYMENTS_PAYOUT_KEY (payout-key): must have at least {MIN_KEY_CHARS} characters").into()),
        false => Ok(key.clone()),
    }
}

pub(super) fn each_once<K: Copy + Eq + Hash, V: Copy>(
    flag: &str,
    values: &[(K, V)],
) -> Result<HashMap<K, V>, CommandError> {
    let map: HashMap<K, V> = values.iter().copied().collect();
    if map.len() < values.len() { Err(format!("{flag} names one thing twice").into()) } else { Ok(map) }
}

fn hold(text: &str) -> Result<(GatewayName, u8), &'static str> {
    let parsed = || {
        let (gateway, days) = text.split_once('=')?;
        let days = days.parse().ok().filter(|days| *days <= MAX_HOLD_DAYS)?;
        Some((gateway::declared(gateway)?.name, days))
    };
    parsed().ok_or("must be a gateway and at most 60 days, such as bkash=2")
}

pub(super) fn amount(text: &str) -> Result<(Currency, Amount), &'static str> {
    let parsed = || {
        let (currency, amount) = text.split_once('=')?;
        Some((currency.parse().ok()?, amount.parse().ok()?))
    };
    parsed().ok_or("must be a currency and an amount, such as BDT=500")
}

#[derive(Debug, Subcommand)]
pub enum PayoutsCommand {
    /// List open payouts, oldest first: payout, workspace, amount, currency, status, kind, holder, institution and last four of the
    /// destination, requested, by whom.
    List {
        /// List all payouts of this status instead.
        #[arg(long, env = "PAYMENTS_STATUS", value_name = "STATUS", value_parser = one_of::<PayoutStatus>(STATUSES))]
        status: Option<PayoutStatus>,
    },
    /// Approve a payout that a merchant requested.
    Approve {
        /// The payout's id.
        payout: String,
        /// Who approves it: neither who requested it nor who set its destination.
        #[arg(long, env = "PAYMENTS_BY", value_name = "NAME")]
        by: String,
    },
    /// Cancel a payout that is not sent.
    Cancel(ReasonArgs),
    /// Send all approved payouts as a batch: mark them as sent, and print the bank's file with the whole numbers of the accounts.
    /// Those that cannot be sent now stay approved, and are named. The same batch again is only printed again.
    Send {
        /// The batch's name: letters, digits and hyphens, such as 2026-03-01.
        #[arg(long, env = "PAYMENTS_BATCH", value_name = "NAME")]
        batch: String,
        /// The form of the file.
        #[arg(long, env = "PAYMENTS_FORMAT", default_value = "csv")]
        format: ExportFormat,
        /// The key of `serve`, for a command that opens the store itself. It belongs in the variable.
        #[arg(long, env = "PAYMENTS_PAYOUT_KEY", hide_env_values = true, value_name = "KEY")]
        payout_key: Option<SecretString>,
    },
    /// Record that the bank paid a payout, also one that it had failed.
    Paid {
        /// The payout's id.
        payout: String,
        /// The bank's reference.
        #[arg(long, env = "PAYMENTS_REFERENCE", value_name = "R")]
        reference: String,
    },
    /// Record that the bank did not pay a payout.
    Failed(ReasonArgs),
    /// Record that nobody knows yet whether the bank paid a payout. It is never sent again.
    Unknown(ReasonArgs),
    /// Record that the bank sent a payout back after it had paid it.
    Returned(ReasonArgs),
    /// Record the bank's answers from a file. A file with a wrong row changes nothing, and the same file again neither.
    Results {
        /// A CSV file with the columns payout, status (paid, failed, unknown, returned), reference, reason.
        file: PathBuf,
    },
}

const STATUSES: [&str; 8] = ["requested", "approved", "sending", "unknown", "paid", "failed", "cancelled", "returned"];

#[derive(Debug, Args)]
pub struct ReasonArgs {
    /// The payout's id.
    pub payout: String,
    /// The reason, which the merchant sees.
    #[arg(long, env = "PAYMENTS_REASON", value_name = "TEXT")]
    pub reason: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_name_a_gateway_or_a_currency() {
        for (text, parsed) in [
            ("bkash=2", Some((GatewayName::of("bkash"), 2))),
            ("stripe=60", Some((GatewayName::of("stripe"), 60))),
            ("stripe=61", None),
            ("sandbox=1", None),
            ("bkash", None),
        ] {
            assert_eq!(hold(text).ok(), parsed, "{text}");
        }
        assert_eq!(amount("BDT=500").ok(), Some((Currency::Bdt, "500".parse().unwrap())));
        for text in ["BDT", "EUR=1", "BDT=-1", "BDT=1.001", "500"] {
            assert!(amount(text).is_err(), "{text}");
        }
        assert!(each_once("--payout-hold", &[(1, 2), (1, 3)]).is_err());
    }

    #[test]
    fn a_key_is_long_and_never_quoted() {
        let said = long_enough(&"hush".into()).unwrap_err().to_string();
        assert!(said.contains("at least 32 characters") && !said.contains("hush"), "{said}");
        assert!(long_enough(&"x".repeat(32).into()).is_ok());
    }
}
