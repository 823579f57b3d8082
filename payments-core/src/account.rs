//! The merchant's account.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::value::RawValue;

use crate::{Amount, AppId, DeveloperId, Timestamp, WorkspaceId, aliased::aliased_resource, hundredths};

/// A sum of ledger postings, in whole minor units (paisa, cents). Unlike an [`Amount`](crate::Amount), it can be
/// negative and has no maximum. On the wire it is a number in major units.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Balance(i128);

impl Balance {
    /// Creates a balance from minor units (paisa, cents).
    #[must_use]
    pub const fn from_minor(minor: i128) -> Self {
        Self(minor)
    }

    /// The balance in minor units (paisa, cents).
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
        minor_units(number.get()).map(Self).ok_or_else(|| de::Error::custom("must be a number with at most 2 decimals"))
    }
}

/// Parses the text of a JSON value exactly, in hundredths, if it is a number without an exponent.
fn minor_units(json: &str) -> Option<i128> {
    let (sign, unsigned) = json.strip_prefix('-').map_or((1, json), |rest| (-1, rest));
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let fraction = fraction.trim_end_matches('0');
    if fraction.len() > 2 {
        return None;
    }
    let hundredths: i128 = format!("{fraction:0<2}").parse().ok()?;
    whole.parse::<i128>().ok()?.checked_mul(100)?.checked_add(hundredths)?.checked_mul(sign)
}

aliased_resource! {
    /// A developer's account (API specification, "Account"). Each environment has its own totals.
    #[derive(Debug)]
    pub struct Account {
        /// The merchant's workspace.
        workspace: WorkspaceProfile = "workspace",
        /// What the platform owes the merchant.
        balance: AccountBalance = "balance",
        /// What customers have paid, over the lifetime of the account.
        volume: Volume = "volume",
        /// The limits that the platform has set. `None` if there are none.
        limits: Option<AccountLimits> = "limits" (omitted if None),
    }
}

aliased_resource! {
    /// The limits of a workspace. Each environment counts by itself. `None` means no limit.
    #[derive(Debug)]
    pub struct AccountLimits {
        /// The maximum amount of a payment.
        payment_at_most: LimitInEachCurrency = "paymentAtMost",
        /// The maximum amount of the payments that are created on a day in Dhaka and do not fail.
        day_at_most: LimitInEachCurrency = "dayAtMost",
        /// How many payments may be created within a minute.
        payments_a_minute: Option<u32> = "paymentsAMinute",
        /// How many API keys of the workspace may work.
        keys: Option<u32> = "keys",
        /// How many webhook endpoints may exist, if the server allows more.
        endpoints: Option<u32> = "endpoints",
    }
}

aliased_resource! {
    /// A limit in each currency.
    #[derive(Debug)]
    pub struct LimitInEachCurrency {
        /// Taka.
        bdt: Option<Amount> = "bdt",
        /// Dollars.
        usd: Option<Amount> = "usd",
    }
}

aliased_resource! {
    /// A merchant's workspace.
    #[derive(Debug)]
    pub struct WorkspaceProfile {
        /// Identifier of the workspace.
        id: WorkspaceId = "id",
        /// The name that customers see.
        name: String = "name",
        /// The name as used in URLs.
        slug: String = "slug",
        /// The merchant's website.
        website: Option<String> = "website",
        /// The workspace's status, such as `active`.
        status: String = "status",
    }
}

aliased_resource! {
    /// The balances of an account, each under two names.
    #[derive(Debug)]
    pub struct AccountBalance {
        /// The balance in taka.
        bdt: Balance = "bdt",
        /// The balance in US dollars.
        usd: Balance = "usd",
        /// The same as `bdt`, under the name that the balance route uses.
        bdt_balance: Balance = "bdt_balance",
        /// The same as `usd`, under the name that the balance route uses.
        usd_balance: Balance = "usd_balance",
        /// What a payout can take. `None` from a server without payouts.
        available: Option<InEachCurrency> = "available" (omitted if None),
        /// What payments brought that gateways still hold. `None` from a server without payouts.
        pending: Option<InEachCurrency> = "pending" (omitted if None),
    }
}

aliased_resource! {
    /// An amount in each currency.
    #[derive(Debug)]
    pub struct InEachCurrency {
        /// Taka.
        bdt: Balance = "bdt",
        /// Dollars.
        usd: Balance = "usd",
    }
}

aliased_resource! {
    /// A developer's balances: the net amounts of paid payments, minus those of refunded payments.
    #[derive(Debug)]
    pub struct Balances {
        /// Taka.
        bdt_balance: Balance = "bdt_balance",
        /// Dollars.
        usd_balance: Balance = "usd_balance",
        /// What a payout can take. `None` from a server without payouts.
        available: Option<InEachCurrency> = "available" (omitted if None),
        /// What payments brought that gateways still hold. `None` from a server without payouts.
        pending: Option<InEachCurrency> = "pending" (omitted if None),
    }
}

impl From<Balances> for AccountBalance {
    fn from(balances: Balances) -> Self {
        let Balances { bdt_balance, usd_balance, available, pending, unknown } = balances;
        Self { bdt: bdt_balance, usd: usd_balance, bdt_balance, usd_balance, available, pending, unknown }
    }
}

aliased_resource! {
    /// What customers have paid, over the lifetime of the account. Refunds do not reduce it.
    #[derive(Debug)]
    pub struct Volume {
        /// Taka.
        bdt: Balance = "bdt",
        /// Dollars.
        usd: Balance = "usd",
        /// The number of completed payments.
        total_payments: u64 = "total_payments",
    }
}

aliased_resource! {
    /// A developer's app (API specification, "Developer app").
    #[derive(Debug)]
    pub struct DeveloperApp {
        /// Identifier of the app.
        id: AppId = "id",
        /// The app's developer.
        developer_id: DeveloperId = "developerId",
        /// The app's name.
        name: String = "name",
        /// The app's description.
        description: Option<String> = "description",
        /// The URLs that customers may be redirected to.
        redirect_uris: Vec<String> = "redirectUris",
        /// The URL that receives the app's webhooks. Also serialized as `websiteUrl`.
        webhook_url: Option<String> = "webhookUrl" | "websiteUrl",
        /// The app's status, such as `active`.
        status: String = "status",
        /// Whether the app is active.
        is_active: bool = "isActive",
        /// When the app was created.
        created_at: Timestamp = "createdAt",
        /// When the app last changed.
        updated_at: Timestamp = "updatedAt",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_balance_parses_exactly_or_fails() {
        for minor in [0, 5, -5, 71_250, -100, i128::from(i64::MAX) * 1000 + 7] {
            let text = serde_json::to_string(&Balance::from_minor(minor)).unwrap();
            assert_eq!(serde_json::from_str::<Balance>(&text).unwrap().as_minor(), minor, "{text}");
        }
        assert_eq!(serde_json::from_str::<Balance>("712.500").unwrap().as_minor(), 71_250);
        for text in ["0.005", "\"1\"", "\"1.5\"", "1e2", "1.5e2", "1.5e-1", "1.e2", "-", "null", "[]", "[1.5]"] {
            assert!(serde_json::from_str::<Balance>(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_balance_serializes_in_major_units() {
        for (minor, text) in [
            (0, "0"),
            (5, "0.05"),
            (-5, "-0.05"),
            (71_250, "712.5"),
            (-100, "-1"),
            (1_000_000_000_000_000_000_000, "10000000000000000000"),
        ] {
            let balance = Balance::from_minor(minor);
            assert_eq!(serde_json::to_string(&balance).unwrap(), text);
            assert_eq!((format!("{balance}"), format!("{balance:?}")), (text.to_owned(), text.to_owned()));
        }
    }
}
