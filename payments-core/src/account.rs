//! What a merchant reads of its account.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::value::RawValue;

use crate::{AppId, DeveloperId, Timestamp, WorkspaceId, aliased::aliased_resource, hundredths};

/// A sum of the ledger, in whole minor units (paisa, cents). Unlike an [`Amount`](crate::Amount) it may be of any size
/// and below zero. On the wire it is a number in major units.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Balance(i128);

impl Balance {
    /// So many paisa or cents.
    #[must_use]
    pub const fn from_minor(minor: i128) -> Self {
        Self(minor)
    }

    /// The number of paisa or cents.
    #[must_use]
    pub const fn as_minor(self) -> i128 {
        self.0
    }
}

impl fmt::Display for Balance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 < 0 {
            f.write_str("-")?;
        }
        hundredths::write(f, self.0.unsigned_abs())
    }
}

impl fmt::Debug for Balance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Balance {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        hundredths::serialize(self, serializer)
    }
}

impl<'de> Deserialize<'de> for Balance {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = Box::<RawValue>::deserialize(deserializer)?;
        minor_units(number.get()).map(Self).ok_or_else(|| de::Error::custom("not a sum with at most 2 decimals"))
    }
}

/// The hundredths of a plain decimal, exactly.
fn minor_units(text: &str) -> Option<i128> {
    let (sign, unsigned) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let fraction = fraction.trim_end_matches('0');
    let plain = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !plain(whole) || !plain(fraction) || fraction.len() > 2 {
        return None;
    }
    let hundredths: i128 = format!("{fraction:0<2}").parse().ok()?;
    whole.parse::<i128>().ok()?.checked_mul(100)?.checked_add(hundredths)?.checked_mul(sign)
}

/// What a developer has and did (API specification, "Account"). Each environment has figures of its own.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Account {
    /// Whose account it is.
    pub workspace: WorkspaceProfile,
    /// What the platform owes the merchant.
    pub balance: AccountBalance,
    /// What customers have paid, over the account's life.
    pub volume: Volume,
}

/// A merchant's workspace.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkspaceProfile {
    /// Identifier of the workspace.
    pub id: WorkspaceId,
    /// What customers read.
    pub name: String,
    /// The name as it can stand in an address.
    pub slug: String,
    /// The merchant's web site.
    pub website: Option<String>,
    /// Whether it may work: `active`.
    pub status: String,
}

/// Balances as the account shows them, under both of their names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccountBalance {
    /// Taka.
    pub bdt: Balance,
    /// Dollars.
    pub usd: Balance,
    /// Taka, under the balance route's name.
    pub bdt_balance: Balance,
    /// Dollars, under the balance route's name.
    pub usd_balance: Balance,
}

/// Balances: the net of what was paid, less the net of what was refunded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Balances {
    /// Taka.
    pub bdt_balance: Balance,
    /// Dollars.
    pub usd_balance: Balance,
}

impl From<Balances> for AccountBalance {
    fn from(balances: Balances) -> Self {
        let Balances { bdt_balance, usd_balance } = balances;
        Self { bdt: bdt_balance, usd: usd_balance, bdt_balance, usd_balance }
    }
}

/// What customers have ever paid, refunds not taken off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Volume {
    /// Taka.
    pub bdt: Balance,
    /// Dollars.
    pub usd: Balance,
    /// How many payments were ever completed.
    pub total_payments: u64,
}

aliased_resource! {
    /// A developer's app (API specification, "Developer app").
    pub struct DeveloperApp {
        /// Identifier of the app.
        id: AppId = "id",
        /// Whose app it is.
        developer_id: DeveloperId = "developerId",
        /// The app's name.
        name: String = "name",
        /// What it is for.
        description: Option<String> = "description",
        /// Where customers may be sent back to.
        redirect_uris: Vec<String> = "redirectUris",
        /// Where the app gets its webhooks; mirrored into `websiteUrl`.
        webhook_url: Option<String> = "webhookUrl" | "websiteUrl",
        /// Whether it may work: `active`.
        status: String = "status",
        /// Whether it may work.
        is_active: bool = "isActive",
        /// When it was made.
        created_at: Timestamp = "createdAt",
        /// When it last changed.
        updated_at: Timestamp = "updatedAt",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_balance_is_read_to_the_last_digit_or_not_at_all() {
        for minor in [0, 5, -5, 71_250, -100, i128::from(i64::MAX) * 1000 + 7] {
            let text = serde_json::to_string(&Balance::from_minor(minor)).unwrap();
            assert_eq!(serde_json::from_str::<Balance>(&text).unwrap().as_minor(), minor, "{text}");
        }
        for text in ["0.005", "\"1\"", "1e2", "null", "[]"] {
            assert!(serde_json::from_str::<Balance>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_balance_is_written_in_major_units_of_any_size_and_sign() {
        for (minor, text) in [
            (0, "0"),
            (5, "0.05"),
            (-5, "-0.05"),
            (71_250, "712.5"),
            (-100, "-1"),
            (1_000_000_000_000_000_000_000, "10000000000000000000"),
        ] {
            assert_eq!(serde_json::to_string(&Balance::from_minor(minor)).unwrap(), text);
        }
    }
}
