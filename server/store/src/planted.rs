//! Faults of the server that a test plants, to see that the simulation finds them.

use std::cell::Cell;

use journaled_tree::simulation as engine;

macro_rules! faults {
    ($($(#[doc = $doc:literal])+ $fault:ident,)*) => {
        /// A fault of the server.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Planted { $($(#[doc = $doc])+ $fault,)* }

        impl Planted {
            pub const ALL: &'static [Self] = &[$(Self::$fault,)*];

            /// The fault in words.
            #[must_use]
            pub fn words(self) -> &'static str {
                match self { $(Self::$fault => concat!($($doc),+).trim_start(),)* }
            }
        }
    };
}

faults! {
    /// A commit whose outcome is unknown counts as made.
    UnknownCountsAsDone,
    /// A stale version is overwritten.
    VersionIgnored,
    /// A claim that ended still finishes work.
    ClaimNotChecked,
    /// Fan-out finishes an event after its first endpoint, although others remain.
    FanOutSkips,
    /// A delivery is logged before it is sent.
    LoggedBeforeSent,
    /// A customer is sent to a gateway although the attempt was not stored.
    SentBeforeCommit,
    /// Late money is not looked for.
    LateMoneyIgnored,
    /// A refund is requested again under another id.
    RefundUnderNewId,
    /// A refund replaces one that is pending.
    PendingRefundReplaced,
    /// A response is stored in a commit of its own.
    ResponseApart,
    /// Later events of a payment do not wait for earlier ones.
    OrderIgnored,
    /// A replaced secret stops signing at once, although it should overlap.
    OverlapIgnored,
    /// A retry that is due is dropped.
    RetryDropped,
    /// A session expires without asking the gateway.
    ExpiryWithoutAsking,
    /// A claim of a server that died never ends.
    LeaseNeverEnds,
    /// A refund that was made in the gateway's dashboard counts again.
    RefundCountedTwice,
    /// A dispute that the gateway reports again counts again.
    DisputeCountedTwice,
    /// What a dispute took is refunded.
    RefundAfterDispute,
    /// A payout whose outcome is unknown is sent again.
    PayoutSentAgain,
    /// A payout takes more than is available.
    PayoutOverAvailable,
    /// A statement leaves out a transaction.
    StatementLeavesOut,
    /// A returned payout is credited twice.
    ReturnedTwice,
    /// A settled row counts again when it is imported again.
    RowCountedTwice,
    /// The gateway's list of refunds is not read.
    RefundsNotRead,
    /// A refund's event is lost.
    EventLost,
    /// An effect outside the store begins before its key is claimed.
    EffectBeforeClaim,
    /// Any error of the card processor ends a refund.
    AnyErrorRefuses,
    /// Any error code of an execute call fails its attempt.
    AnyCodeFails,
    /// A query about late money counts although it was not answered.
    AnyQuestionCounts,
    /// Nobody looks for plans that are held up because the clock went back.
    HeldUp,
    /// A path with a slash at its end is another idempotency scope.
    SlashIsAnotherScope,
    /// Scheduled backups of other stores count as the store's own.
    BackupsOfAllLines,
    /// A scheduled backup is removed when enough newer ones are there, even if it is a moment old.
    BackupsWithoutAge,
}

thread_local! {
    static PLANTED: Cell<Option<Planted>> = const { Cell::new(None) };
}

/// From now on the server has this fault on this thread, or none.
pub fn plant(fault: Option<Planted>) {
    PLANTED.set(fault);
    let of_engine = fault == Some(Planted::BackupsOfAllLines);
    engine::plant(of_engine.then_some(engine::Planted::BackupsOfAllLines));
}

/// Whether the server has this fault on this thread.
pub fn is_planted(fault: Planted) -> bool {
    planted() == Some(fault)
}

/// The fault that the server has on this thread.
pub(crate) fn planted() -> Option<Planted> {
    PLANTED.get()
}
