//! The kinds of objects: their paths, the filters of their lists, and their fields that can be expanded.

/// A kind of object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Session,
    Intent,
    Charge,
    Refund,
    Dispute,
    Row,
    Payout,
}

impl Kind {
    pub(super) const ALL: [Self; 7] =
        [Self::Session, Self::Intent, Self::Charge, Self::Refund, Self::Dispute, Self::Row, Self::Payout];

    /// The path of its objects, after `/v1/`.
    pub(super) const fn path(self) -> &'static str {
        match self {
            Self::Session => "checkout/sessions",
            Self::Intent => "payment_intents",
            Self::Charge => "charges",
            Self::Refund => "refunds",
            Self::Dispute => "disputes",
            Self::Row => "balance_transactions",
            Self::Payout => "payouts",
        }
    }

    /// Its name in error messages.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Session => "checkout session",
            Self::Intent => "payment_intent",
            Self::Charge => "charge",
            Self::Refund => "refund",
            Self::Dispute => "dispute",
            Self::Row => "balance transaction",
            Self::Payout => "payout",
        }
    }

    /// The filters of its list, besides those of every list. `None` if the fake does not list it.
    pub(super) const fn filters(self) -> Option<&'static [&'static str]> {
        match self {
            Self::Session => Some(&["payment_intent", "status"]),
            Self::Refund | Self::Dispute => Some(&["payment_intent", "charge"]),
            Self::Row => Some(&["source", "type", "currency"]),
            Self::Payout => Some(&["status"]),
            Self::Intent | Self::Charge => None,
        }
    }

    /// Its fields that can be expanded, and the kinds of the objects that they name.
    pub(super) const fn expandable(self) -> &'static [(&'static str, &'static [Self])] {
        match self {
            Self::Session => &[("payment_intent", &[Self::Intent])],
            Self::Intent => &[("latest_charge", &[Self::Charge])],
            Self::Charge => &[("balance_transaction", &[Self::Row]), ("payment_intent", &[Self::Intent])],
            Self::Refund => &[
                ("balance_transaction", &[Self::Row]),
                ("charge", &[Self::Charge]),
                ("failure_balance_transaction", &[Self::Row]),
                ("payment_intent", &[Self::Intent]),
            ],
            Self::Dispute => &[("charge", &[Self::Charge]), ("payment_intent", &[Self::Intent])],
            Self::Row => &[("source", &[Self::Charge, Self::Refund, Self::Dispute, Self::Payout])],
            Self::Payout => &[("balance_transaction", &[Self::Row])],
        }
    }
}
