//! The keys of rows: kinds of records, names of sums, queues.

use payments_core::{AppId, Currency, DeveloperId, Environment, LedgerAccount, Status, WebhookId};

use super::batch::{IdempotencyName, ScopeName};
use crate::{
    domain::{Effects, IdempotencyKey, KeyHash, Scope},
    store::{RecordKind, Work},
};

/// A kind of record in the table `record`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Kind {
    Workspace,
    ApiKey,
    App,
    GatewayToken,
    Endpoint,
    LogPart,
    /// The last migration into this database. Its id is empty.
    Migration,
}

impl Kind {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Workspace => "workspace",
            Self::ApiKey => "api-key",
            Self::App => "app",
            Self::GatewayToken => "gateway-token",
            Self::Endpoint => "endpoint",
            Self::LogPart => "log-part",
            Self::Migration => "migration",
        }
    }

    pub(super) fn known(text: &str) -> Option<Self> {
        use Kind::{ApiKey, App, Endpoint, GatewayToken, LogPart, Migration, Workspace};
        let all = [Workspace, ApiKey, App, GatewayToken, Endpoint, LogPart, Migration];
        all.into_iter().find(|kind| kind.as_str() == text)
    }

    /// The kind of the rows that hold records of a kind, if they are in the table `record`.
    pub(super) fn of(kind: RecordKind) -> Option<Self> {
        match kind {
            RecordKind::Workspace => Some(Self::Workspace),
            RecordKind::ApiKey => Some(Self::ApiKey),
            RecordKind::App => Some(Self::App),
            RecordKind::GatewayToken => Some(Self::GatewayToken),
            RecordKind::Endpoint => Some(Self::Endpoint),
            RecordKind::LogPart => Some(Self::LogPart),
            _ => None,
        }
    }
}

/// A kind of record and its id.
pub(super) type RecordKey = (Kind, String);

/// The key of the last migration into this database.
pub(super) fn migration() -> RecordKey {
    (Kind::Migration, String::new())
}

/// A queue and the id of a piece of its work.
pub(super) type WorkKey = (&'static str, String);

pub(super) const FAN_OUT: &str = "fan-out";
pub(super) const LANE: &str = "lane";
pub(super) const RETRY: &str = "retry";
pub(super) const EXPIRY: &str = "expiry";
pub(super) const GATEWAY_CHECK: &str = "gateway-check";

pub(super) fn work(work: &Work) -> WorkKey {
    match work {
        Work::FanOut(id) => (FAN_OUT, id.to_string()),
        Work::Lane(id) => (LANE, id.to_string()),
        Work::Retry(id) => (RETRY, id.to_string()),
        Work::Expiry(id) => (EXPIRY, id.to_string()),
        Work::GatewayCheck(id) => (GATEWAY_CHECK, id.to_string()),
    }
}

/// The work of a row; `None` if there is no such queue or id.
pub(super) fn known_work(queue: &str, id: &str) -> Option<Work> {
    match queue {
        FAN_OUT => id.parse().ok().map(Work::FanOut),
        LANE => id.parse().ok().map(Work::Lane),
        RETRY => id.parse().ok().map(Work::Retry),
        EXPIRY => id.parse().ok().map(Work::Expiry),
        GATEWAY_CHECK => id.parse().ok().map(Work::GatewayCheck),
        _ => None,
    }
}

pub(super) fn scope(scope: &Scope) -> ScopeName {
    (scope.developer_id.to_string(), scope.environment.as_str())
}

pub(super) fn environment(name: &str) -> Option<Environment> {
    [Environment::Live, Environment::Test].into_iter().find(|environment| environment.as_str() == name)
}

pub(super) fn idempotency(key: &IdempotencyKey) -> IdempotencyName {
    (scope(&key.scope), key.digest)
}

pub(super) fn hash(hash: &KeyHash) -> String {
    hex::encode(hash.digest)
}

pub(super) fn app(developer: &DeveloperId, app: &AppId) -> String {
    format!("{developer}/{app}")
}

/// The parent of a scope's endpoints.
pub(super) fn endpoints_of(scope: &Scope) -> String {
    format!("{}/{}", scope.developer_id, scope.environment)
}

// The names of sums.
pub(super) const PAYMENTS: &str = "payments";
pub(super) const DELIVERIES: &str = "deliveries";
pub(super) const STATUS: &str = "payments/";

pub(super) fn status(status: &Status) -> String {
    format!("{STATUS}{status}")
}

pub(super) fn deliveries_to(endpoint: &WebhookId) -> String {
    format!("{DELIVERIES}/{endpoint}")
}

pub(super) fn balance(currency: Currency, account: LedgerAccount) -> String {
    let account = match account {
        LedgerAccount::GatewayClearing => "gateway-clearing",
        LedgerAccount::Merchant => "merchant",
        LedgerAccount::PlatformFee => "platform-fee",
    };
    format!("balance/{currency}/{account}")
}

/// What a change adds to the sums of money of its scope.
pub(super) fn money(effects: &Effects) -> impl Iterator<Item = (String, i128)> {
    let currency = effects.currency;
    let balances = effects.balances.iter().map(move |(account, minor)| (balance(currency, *account), *minor));
    let paid = effects.volume.map(|minor| [(volume(currency), minor), (paid(currency), 1)]);
    balances.chain(paid.into_iter().flatten())
}

/// The gross amount of all payments ever paid.
pub(super) fn volume(currency: Currency) -> String {
    format!("volume/{currency}")
}

/// How many payments were ever paid.
pub(super) fn paid(currency: Currency) -> String {
    format!("paid/{currency}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_keep_the_names_under_which_earlier_versions_stored_them() {
        assert_eq!((volume(Currency::Bdt), paid(Currency::Usd)), ("volume/BDT".into(), "paid/USD".into()));
    }
}
