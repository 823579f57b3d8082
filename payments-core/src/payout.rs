//! Payouts: the platform sends a merchant's balance to the merchant's bank account or wallet.

use crate::{
    Amount, Balance, Currency, Environment, ErrorCode, PayoutId, Timestamp, aliased::aliased_resource,
    open_enum::open_enum, query::Query, validation::Invalid,
};

open_enum! {
    /// The status of a payout.
    pub enum PayoutStatus {
        /// The merchant has asked for it. The money is set aside.
        Requested = "requested",
        /// A person, or the platform's policy, has approved it.
        Approved = "approved",
        /// The platform sends it.
        Sending = "sending",
        /// Nobody knows yet whether the bank paid it.
        Unknown = "unknown",
        /// The bank paid it.
        Paid = "paid",
        /// The bank did not pay it. The money is in the balance again.
        Failed = "failed",
        /// It was cancelled before it was sent. The money is in the balance again.
        Cancelled = "cancelled",
        /// The bank paid it and sent it back. The money is in the balance again.
        Returned = "returned",
    }
}

impl PayoutStatus {
    /// Whether its money is set aside. A merchant has at most one such payout in a currency.
    #[must_use]
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Requested | Self::Approved | Self::Sending | Self::Unknown)
    }
}

open_enum! {
    /// The kind of a destination.
    pub enum DestinationKind {
        /// An account at a bank.
        BankAccount = "bank_account",
        /// A mobile wallet.
        Wallet = "wallet",
    }
}

aliased_resource! {
    /// Where payouts go. Nobody reads the whole number here.
    #[derive(Debug)]
    pub struct PayoutDestination {
        /// Its kind.
        kind: DestinationKind = "kind",
        /// Who holds the account or the wallet.
        holder: String = "holder",
        /// The bank's routing number (BDT) or SWIFT code (USD), or the wallet's provider, such as `bkash`.
        institution: String = "institution",
        /// The last four characters of the number.
        last4: String = "last4",
        /// When it was set. Payouts go to it a day later.
        created_at: Timestamp = "createdAt",
    }
}

aliased_resource! {
    /// The merchant's transactions from the one after the last payout's to the payout's own.
    #[derive(Debug)]
    pub struct Statement {
        /// The balance before them.
        opening_balance: Balance = "openingBalance",
        /// The balance after them: what is carried on.
        closing_balance: Balance = "closingBalance",
    }
}

aliased_resource! {
    /// A payout.
    #[derive(Debug)]
    pub struct Payout {
        /// The payout's id.
        id: PayoutId = "id",
        /// Its environment.
        environment: Environment = "environment",
        /// The amount that the destination gets.
        amount: Amount = "amount",
        /// The currency of the amount.
        currency: Currency = "currency",
        /// Its status.
        status: PayoutStatus = "status",
        /// A copy of the destination as it was when the payout was requested.
        destination: PayoutDestination = "destination",
        /// What it pays.
        statement: Statement = "statement",
        /// The bank's reference.
        reference: Option<String> = "reference",
        /// Why it failed, was cancelled or returned, or why its outcome is unknown.
        reason: Option<String> = "reason",
        /// When it was requested.
        created_at: Timestamp = "createdAt",
        /// When it was approved.
        approved_at: Option<Timestamp> = "approvedAt",
        /// When the platform began to send it.
        sent_at: Option<Timestamp> = "sentAt",
        /// When it was paid.
        paid_at: Option<Timestamp> = "paidAt",
        /// When it was paid, failed, was cancelled or was returned, whichever came last.
        ended_at: Option<Timestamp> = "endedAt",
        /// When it last changed.
        updated_at: Timestamp = "updatedAt",
    }
}

aliased_resource! {
    /// A part of the list of payouts, newest first.
    #[derive(Debug)]
    pub struct PayoutPage {
        /// The payouts.
        items: Vec<Payout> = "items",
        /// Whether the list goes on.
        has_more: bool = "hasMore",
        /// Where the next part begins: pass it as `after`.
        next: Option<PayoutId> = "next",
    }
}

/// The part of the list of payouts that a request asks for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PayoutQuery {
    /// Only payouts after this one in the list, which were requested before it.
    pub after: Option<PayoutId>,
    limit: Option<u8>,
}

impl PayoutQuery {
    /// The default number of items.
    pub const DEFAULT_LIMIT: u8 = 20;
    /// The maximum number of items.
    pub const MAX_LIMIT: u8 = 100;

    /// Parses the query parameters `after` and `limit` (1 to 100, default 20). `parameter` returns a parameter's value.
    ///
    /// # Errors
    /// One sentence per invalid parameter.
    pub fn from_query(parameter: impl Fn(&str) -> Option<String>) -> Result<Self, Invalid> {
        let mut query = Query::of(parameter);
        let after = query.parsed("after", ErrorCode::FieldInvalid, "must be the id of a payout");
        let limit = query.limit(Self::MAX_LIMIT);
        query.invalid.or(Self { after, limit })
    }

    /// The maximum number of items.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit.unwrap_or(Self::DEFAULT_LIMIT).into()
    }
}
