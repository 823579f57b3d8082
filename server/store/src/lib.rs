//! The store keeps the server's records. Its methods are this project's own verbs, such as `commit`, `session` and `claim`.
//!
//! A store writes only by [`Store::commit`]. It takes a [`Change`] with its conditions, which are checked where the change is
//! committed. [`layout`] says which key holds what. [`bytes`] has the places for bytes, and knows no rule of payments.
//!
//! # The contract
//!
//! The tests `contract` prove these sentences in every place for bytes.
//!
//! Changes:
//!
//! 1. A change is durable when `commit` returns `Ok`. A crash cannot undo it, and every later read finds it.
//! 2. A change happens as a whole. If one of its conditions does not hold, the store stays as it was.
//! 3. A new record must have version 0 and must not exist. A changed record must have the version after the stored one, a
//!    removed record the stored version. Otherwise: [`Conflict::Stale`]. Of several changes of one version, one succeeds.
//! 4. A scope never has more webhook endpoints than the write allows: [`Conflict::TooManyEndpoints`]. A new payment may
//!    demand that no other payment of its scope has a value: [`Conflict::LookupUsed`]. If several payments demand the same
//!    value, one succeeds.
//! 5. If several conditions do not hold, the conflict names the first one in this order: claims on work, the idempotency key,
//!    the writes.
//! 6. Totals are sums. Changes made at the same time add up.
//! 30. A day's totals count the payments that were created on this day, for each scope and currency. A payment that is paid
//!     on another day counts on the day of its creation.
//! 7. Reads return a record as it was written. An event keeps its data when its payment changes.
//!
//! Idempotency keys:
//!
//! 8. A key stores one response: [`Conflict::IdempotencyKeyUsed`] returns it to other requests. After 24 hours the key is
//!    unused again.
//! 9. One request at a time claims a key: [`Conflict::KeyClaimed`]. The claim ends when the request stores its response or
//!    releases the key. After the end of its lease, another request may take the claim over. Then the response of the first
//!    request is refused: [`Conflict::ClaimLost`].
//!
//! Lists:
//!
//! 10. Lists are newest first. Records made within the same second may stand in either order. The order of two records
//!     never changes.
//! 11. A page and its `total` show the list at one moment. New payments only move older ones to later pages: a reader of page
//!     after page misses no payment that was there at the start, and may see one twice.
//! 12. A list by status holds each payment once, under its status. Payments that change status while a page is read may
//!     make it differ from its `total`.
//! 24. `payments_from` lists each payment as its last change left it, in the order of the pages. A reader that goes on after the
//!     last payment of a part reads none twice, and misses none that was there at the start.
//! 25. A payment is found by each of its lookup values and by no other value, in its own scope.
//! 26. `deliveries_of` lists every delivery of a payment's events once, whenever it was made.
//! 29. A reader that goes on through `deliveries_from` misses no delivery that was there at the start, and reads none twice.
//! 13. `endpoints` sorts by id. A cursor finds all endpoints with later ids, even those that were added after the cursor was
//!     returned.
//! 14. `outbox` starts with the smallest id at each call. So it skips no delivery, however late it was committed.
//!
//! Events:
//!
//! 23. Every event of a payment is in the list of its scope, once, in the order of the commits. A reader that goes on after
//!     the last event that it has read misses none and reads none twice. An event may appear in the list shortly after
//!     `commit` returns.
//!
//! Transactions:
//!
//! 27. Every booking that changes a merchant's balance is in the list of its scope's transactions, once, in the order of the commits. A reader
//!     that goes on to older entries misses none and reads none twice. Each entry has a balance: the sum of all entries up to
//!     it.
//!
//! Settlements:
//!
//! 31. A row of a gateway's statement has one record, which names its payment. A payment waits in `unsettled` until it has the
//!     rows of itself and of its refunds. `payments_at_gateway` finds every payment that a gateway's transaction paid.
//!
//! Time:
//!
//! 15. Leases, due work and pruning use the times that the caller gives. Nothing else depends on time, so a clock that steps
//!     back loses no record and no work.
//!
//! Work:
//!
//! 16. A piece of work has one holder. Its claim ends when it is released, or when another claim is made after the end of the
//!     lease. No two claims have the same epoch.
//! 17. After a claim has ended, changes under it fail with [`Conflict::WorkLost`], and it cannot be renewed. After the end of
//!     its lease, a claim may end at any moment, even if nobody takes it over. The same holds for a claim whose end lies
//!     further ahead than twice the length of a lease: it was made before the clock went back.
//! 18. `claim` returns the oldest events first, and timed work in the order of its due times. Timed work is never early and
//!     may be a few milliseconds late. Work that is due within these milliseconds comes in any order. `planned` lists work
//!     that is not due yet.
//! 19. While an event is claimed, `claim` returns no later event of its payment. One call may claim both.
//! 20. An event is pending exactly if its scope has a webhook endpoint when the change commits. Endpoints that earlier
//!     writes of the same change add count too. [`Committed`] says whether an event became pending.
//!
//! 28. A pending delivery is in its endpoint's outbox, or in the queue of retries if it waits for its next attempt. A waiting
//!     delivery makes no lane; `gauges` counts it. The time of its attempt may change while it waits.
//!
//! Pruning:
//!
//! 21. `prune` starts with the oldest record, handles at most `at_most` records and returns how many. 0 means that no older
//!     record is left. `prune` never drops a claim that takes over a key at the same moment.
//! 32. An erasure is a change of a payment that takes the customer's data out of it, out of its events and out of the search.
//!     Search entries are never removed otherwise. `erasable` reads a part of all payments, and finds those that have such data
//!     and no longer need it.
//! 22. A pending delivery keeps its payload. If pruning has passed it by then, it is redacted when it ends.

#![forbid(unsafe_code)]
// Only other crates of the server use this one, and most fields are clear by their names.
#![allow(missing_docs, rustdoc::private_intra_doc_links)]

/// Whether a simulation has planted this fault in the server.
#[cfg(feature = "simulation")]
#[macro_export]
macro_rules! planted {
    ($fault:ident) => {
        $crate::planted::is_planted($crate::planted::Planted::$fault)
    };
}
/// Whether a simulation has planted this fault in the server: there is none without the feature `simulation`.
#[cfg(not(feature = "simulation"))]
#[macro_export]
macro_rules! planted {
    ($fault:ident) => {
        false
    };
}

pub mod ambient;
mod backups;
pub mod bytes;
mod change;
mod claim;
pub mod domain;
pub mod embedded;
mod error;
#[cfg(feature = "simulation")]
mod falsified;
mod invariants;
pub mod layout;
mod leases;
mod list_parts;
mod location;
mod migration;
#[cfg(feature = "simulation")]
pub mod planted;
pub mod postgres;
mod request_counts;

use std::collections::BTreeMap;

use payments_core::{Currency, DeliveryId, Environment, Status};

use self::domain::Cover;

pub use backups::{BackedUp, Backups, Series};
pub use change::{
    BookingWrite, Change, ClaimEnd, Committed, Conflict, EventWrite, NewResponse, PaymentWrite, PayoutWrite, Write,
};
pub use claim::{Claim, LEASE_SECONDS, Lease, Planned, Queue, Work};
pub use error::{CommitError, Result, StoreError};
pub use layout::{Checked, Finding, NextStatement, Snapshot, Store};
pub use leases::Leases;
pub use list_parts::{
    DeliveriesFrom, EventEntry, EventsFrom, PaymentSource, PaymentsFrom, TransactionEntry, TransactionsFrom,
    earliest_in_list,
};
pub use location::Location;
pub use migration::{Contents, Migration, Unfinished};
pub use request_counts::{Report, RequestCounts, SharedWindow, WINDOW, WindowId};

/// The JSON of a payment, byte for byte as the API serves it.
#[derive(Clone, PartialEq, Eq)]
pub struct PaymentJson(pub String);

/// Counts over the records of all developers.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// The number of payments by environment and public status. Several rows may have the same two: add them up.
    pub payments: Vec<(Environment, Status, u64)>,
    pub outbox: u64,
    /// How many deliveries wait for their next attempt.
    pub waiting: u64,
    /// The live money of each currency that the books know. The sums of a cell are of one moment.
    pub covers: BTreeMap<Currency, Cover>,
}

/// Records that are dropped or redacted when they are old.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prunable {
    /// Responses of idempotency keys, by the time they were stored.
    StoredResponses,
    /// Claims on idempotency keys, by the end of their lease.
    KeyClaims,
    /// Request and response bodies of deliveries, by the time of the delivery. A pending delivery keeps its payload until it
    /// ends.
    DeliveryBodies,
    /// Entries of the audit log.
    Audit,
}

/// The beginning of an endpoint's outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxHead {
    /// Deliveries in the order of their ids. If a delivery is here, so is every delivery that was committed earlier and has a
    /// smaller id.
    pub ids: Vec<DeliveryId>,
    /// Whether the outbox held no other delivery. Do not infer it from the number of ids: there may be fewer than `at_most`
    /// although others exist.
    pub is_all: bool,
}
