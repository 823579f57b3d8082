//! The public and internal status of a payment.

use crate::open_enum::open_enum;

open_enum! {
    /// The public status of a payment (API specification, "States and transitions").
    pub enum Status {
        /// Waiting for the customer.
        Pending = "pending",
        /// The payment is confirmed as paid.
        Completed = "completed",
        /// The payment failed.
        Failed = "failed",
        /// The customer cancelled.
        Cancelled = "cancelled",
        /// The payment was paid and refunded.
        Refunded = "refunded",
        /// The session expired before the customer paid.
        Expired = "expired",
    }
}

open_enum! {
    /// The internal status of a payment.
    pub enum RawStatus {
        /// The customer has not acted yet.
        Created = "created",
        /// An attempt at the gateway failed, and the customer may try again. In older records the same as `created`.
        Pending = "pending",
        /// The customer was sent to the gateway.
        Processing = "processing",
        /// The payment is confirmed as paid.
        Paid = "paid",
        /// The payment failed.
        Failed = "failed",
        /// The customer cancelled.
        Cancelled = "cancelled",
        /// The session expired before the customer paid.
        Expired = "expired",
        /// The payment was paid and refunded.
        Refunded = "refunded",
    }
}

impl RawStatus {
    /// Whether the customer can still pay: `created`, `pending` or `processing`.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Created | Self::Pending | Self::Processing)
    }

    /// The public status for this internal one.
    #[must_use]
    pub fn public(&self) -> Status {
        match self {
            Self::Created | Self::Pending | Self::Processing => Status::Pending,
            Self::Paid => Status::Completed,
            Self::Failed => Status::Failed,
            Self::Cancelled => Status::Cancelled,
            Self::Expired => Status::Expired,
            Self::Refunded => Status::Refunded,
            Self::Other(word) => Status::from(word.as_ref()),
        }
    }
}

impl Status {
    /// Whether the customer has nothing more to do: any known status except `pending`.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        !matches!(self, Self::Pending | Self::Other(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_internal_status_has_its_public_status() {
        let rows = [
            ("created", "pending"),
            ("pending", "pending"),
            ("processing", "pending"),
            ("paid", "completed"),
            ("failed", "failed"),
            ("cancelled", "cancelled"),
            ("expired", "expired"),
            ("refunded", "refunded"),
        ];
        assert_eq!(rows.len(), RawStatus::KNOWN.len());
        for (raw, public) in rows {
            assert_eq!(RawStatus::known(raw).unwrap().public(), Status::known(public).unwrap());
        }
    }

    #[test]
    fn an_unknown_status_round_trips() {
        let status: Status = serde_json::from_str(r#""disputed""#).unwrap();
        assert_eq!(status, Status::Other("disputed".into()));
        assert_eq!(serde_json::to_string(&status).unwrap(), r#""disputed""#);
    }
}
