//! Faults of the server that a test plants, to see that the simulation finds them.

use std::cell::Cell;

use journaled_tree::simulation as engine;

macro_rules! faults {
    ($($(#[doc = $doc:literal])+ $fault:ident,)*) => {
        /// A fault of the server.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Planted { $($(#[doc = $doc])+ $fault,)* }

        impl Planted {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$fault,)*];

            /// What is wrong.
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
    /// Fan-out takes an event for finished after its first endpoint, if others wait.
    FanOutSkips,
    /// A delivery is logged before it is sent.
    LoggedBeforeSent,
    /// A customer is sent to a gateway although the attempt was not stored.
    SentBeforeCommit,
    /// Late money is not looked for.
    LateMoneyIgnored,
    /// A refund is requested again under another id.
    RefundUnderNewId,
    /// A refund takes the place of one that is pending.
    PendingRefundReplaced,
    /// A response is stored in a commit of its own.
    ResponseApart,
    /// Later events of a payment do not wait for earlier ones.
    OrderIgnored,
    /// A rotated secret signs no more, although it should overlap.
    OverlapIgnored,
    /// A retry that is due is dropped.
    RetryDropped,
    /// A session expires without asking the gateway.
    ExpiryWithoutAsking,
    /// A claim of a server that died never ends.
    LeaseNeverEnds,
    /// A refund's event is lost.
    EventLost,
    /// An effect outside the store begins before its key is claimed.
    EffectBeforeClaim,
    /// Any error of the card processor ends a refund.
    AnyErrorRefuses,
    /// Any code of an execute fails its attempt.
    AnyCodeFails,
    /// A question about late money counts although it was not answered.
    AnyQuestionCounts,
    /// Nobody looks for what a clock that went back holds up.
    HeldUp,
    /// A slash at the end of a path is another idempotency scope.
    SlashIsAnotherScope,
    /// Scheduled backups of all stores count as one's own.
    BackupsOfAllLines,
    /// A scheduled backup of a moment ago is removed when enough newer ones are there.
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
