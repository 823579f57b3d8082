//! JSON Schemas of this crate's types, for the OpenAPI documents of APIs other than the public one.

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::{
    Amount, AppId, AuditEntry, AuditId, Currency, Day, DeliveryId, DestinationKind, DeveloperId, DisputeId,
    DisputeStatus, Environment, KeyId, Notice, PaymentId, PayoutId, PayoutStatus, RawStatus, RefundId, Timestamp,
    TransactionId, WebhookId, WorkspaceId,
};

macro_rules! described {
    ($($type:ty = $name:literal $schema:tt;)+) => {
        $(impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                $name.into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!($schema)
            }
        })+
    };
}

described! {
    Amount = "Amount" {"type": "string", "examples": ["1250.50"], "description": "An amount in major units, exact."};
    AppId = "AppId" {"type": "string"};
    AuditEntry = "AuditEntry" {"type": "object", "description": "The same as in the public API."};
    AuditId = "AuditId" {"type": "string"};
    Currency = "Currency" {"type": "string", "examples": ["BDT", "USD"]};
    Day = "Day" {"type": "string", "format": "date"};
    DeliveryId = "DeliveryId" {"type": "string"};
    DestinationKind = "DestinationKind" {"type": "string"};
    DeveloperId = "DeveloperId" {"type": "string"};
    DisputeId = "DisputeId" {"type": "string"};
    DisputeStatus = "DisputeStatus" {"type": "string"};
    Environment = "Environment" {"type": "string", "examples": ["live", "test"]};
    KeyId = "KeyId" {"type": "string"};
    Notice = "Notice" {"type": "object", "description": "The same as in the public API."};
    PaymentId = "PaymentId" {"type": "string"};
    PayoutId = "PayoutId" {"type": "string"};
    PayoutStatus = "PayoutStatus" {"type": "string"};
    RawStatus = "RawStatus" {"type": "string"};
    RefundId = "RefundId" {"type": "string"};
    Timestamp = "Timestamp" {"type": "string", "format": "date-time"};
    TransactionId = "TransactionId" {"type": "string"};
    WebhookId = "WebhookId" {"type": "string"};
    WorkspaceId = "WorkspaceId" {"type": "string"};
}
