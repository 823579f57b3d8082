//! The states of a payment: the public one and the internal one behind it.

use crate::open_enum::open_enum;

open_enum! {
    /// Where a payment stands, as a merchant sees it (API specification, "States and transitions").
    pub enum Status {
        /// Waiting for the customer.
        Pending = "pending",
        /// Paid: the approval is confirmed.
        Completed = "completed",
        /// The payment was refused.
        Failed = "failed",
        /// The customer gave up.
        Cancelled = "cancelled",
        /// Paid, and given back since.
        Refunded = "refunded",
        /// The session's life ended before anything was paid.
        Expired = "expired",
    }
}

open_enum! {
    /// Where a payment stands inside the platform.
    pub enum RawStatus {
        /// The session exists; the customer has done nothing yet.
        Created = "created",
        /// The same to a merchant as `created`; older records have it.
        Pending = "pending",
        /// The customer was sent to the gateway.
        Processing = "processing",
        /// The approval is confirmed.
        Paid = "paid",
        /// The payment was refused.
        Failed = "failed",
        /// The customer gave up.
        Cancelled = "cancelled",
        /// The session's life ended before anything was paid.
        Expired = "expired",
        /// Paid, and given back since.
        Refunded = "refunded",
    }
}

impl RawStatus {
    /// Whether the customer may still pay: `created`, `pending` and `processing`.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Created | Self::Pending | Self::Processing)
    }

    /// The public status that stands for this one.
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
    /// Whether nothing more is expected of the customer: everything but `pending`.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        !matches!(self, Self::Pending | Self::Other(_))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_internal_status_has_the_public_status_of_the_table() {
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
    fn a_word_of_a_later_version_is_kept_as_it_was_sent() {
        let status: Status = serde_json::from_str(r#""disputed""#).unwrap();
        assert_eq!(status, Status::Other("disputed".into()));
        assert_eq!(serde_json::to_string(&status).unwrap(), r#""disputed""#);
    }
}
