//! The server's own records and rules. Pure: no clock, no randomness, no store.

mod activity;
mod app;
mod attempts;
mod audit;
mod books;
mod brand;
mod coverage;
mod delivery;
mod dispute;
mod endpoint;
mod erasure;
mod fan_out;
mod gateway_costs;
mod gateway_name;
mod gateway_pause;
mod gateway_refunds;
mod gateway_token;
mod held_up;
mod idempotency;
mod invariants;
mod limits;
mod lookup;
mod merchant;
mod money_move;
mod moves;
mod notice;
mod payout;
mod permission;
mod person_session;
mod platform_key;
mod request_log;
mod retries;
mod role;
#[cfg(any(test, feature = "testing"))]
mod samples;
mod session;
mod settlements;
mod slug;
mod subject;

pub use activity::DayTotals;
pub use app::App;
pub use attempts::{EndedAttempt, GatewayAttempt, LATE_MONEY_MILLIS, LONGEST_SILENT_BACKOFF_MILLIS, MAX_ATTEMPTS};
pub use audit::{AuditRecord, MAX_CHANGES, differences};
pub use books::{BooksChange, BooksEntry};
pub use brand::{Brand, Colour, Edit, LogoUrl};
pub use coverage::{Cover, Coverage};
pub use delivery::Outgoing;
pub use dispute::{DisputeMove, GatewayDispute, KnownDispute, MAX_DISPUTE_MOVES};
pub use endpoint::Endpoint;
pub use erasure::{ErasePolicy, erased_json, payment_shown};
pub use fan_out::{PendingEvent, fan_out};
pub use gateway_costs::{CostRow, GatewayCost};
pub use gateway_name::{GatewayName, NotAGatewayName};
pub use gateway_pause::GatewayPause;
pub use gateway_refunds::{GatewayRefund, GatewayRefundState, RefundChange, RefundReference};
pub use gateway_token::StoredToken;
pub use held_up::{LONGEST_CUSTOMER_BACKOFF_MILLIS, LONGEST_REFUND_BACKOFF_SECONDS, lease_runs};
pub use idempotency::{ClaimToken, IdempotencyKey, KeyClaim, StoredResponse};
pub use invariants::{event_count_faults, expected_bookings, faults, with_disputes_summed};
pub use limits::{LimitReached, Limits, LimitsChange, seconds_of_minute_left};
pub use lookup::{Lookup, LookupKind, lookups, lookups_of};
pub use merchant::{ApiKey, KeyHash, Scope, Totals, Workspace, owner_of};
pub use money_move::{BothBalances, MoneyMove, moves_money};
pub use moves::{Move, kind_of};
pub use notice::{KnownNotice, Notices, Untold};
pub use payout::{
    Actor, Destination, Funds, PayoutCondition, PayoutRecord, PayoutRules, closing_balance, held_day, is_held,
    may_approve,
};
pub use permission::Permission;
pub use person_session::{Grant, LONGEST_SESSION_SECONDS, PersonSession};
pub use platform_key::PlatformKey;
pub use request_log::{LogPart, PART, PARTS, Place};
pub use retries::{after_attempt, delivery_faults, endpoint_faults};
pub use role::{AdminPermission, Role};
#[cfg(any(test, feature = "testing"))]
pub use samples::{attempt as new_attempt, session as new_session};
pub use session::{ManualReview, ManualSettlement, PendingRefund, Resolution, Session};
pub use settlements::{MAX_SETTLED, PaymentRow, RowKind, SettledRow, StatementRow};
pub use slug::unused_slug;
pub use subject::Subject;

/// Stores a value as its text.
macro_rules! stored_as_text {
    ($type:ty: $text:path) => {
        impl serde::Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(&$text(self))
            }
        }

        impl<'de> serde::Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = <String as serde::Deserialize>::deserialize(deserializer)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }

        impl schemars::JsonSchema for $type {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({"type": "string"})
            }
        }
    };
}
use stored_as_text;

/// Whether a version is the first one. JSON leaves the first version out, as older servers did. A version counts a record's
/// changes, for optimistic locking.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes it so")]
fn is_first(version: &u64) -> bool {
    *version == 0
}
