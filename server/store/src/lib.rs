//! The store: where the server keeps its records, in this project's own verbs.
//!
//! A store writes only by [`Store::commit`]: one [`Change`] with the conditions under which it may happen. The conditions
//! travel with the change because they are checked where it is committed. [`layout`] says which key holds what, once; [`bytes`]
//! says where bytes are kept, and knows no rule of payments.
//!
//! # The contract
//!
//! The tests `contract` prove these sentences in every place for bytes.
//!
//! Changes:
//!
//! 1. A change is durable when `commit` returns `Ok`. A crash cannot undo it, and every later read finds it.
//! 2. A change happens as a whole. If one of its conditions does not hold, the store stays as it was.
//! 3. A new record has version 0 and is not in the store. A changed record has the version after the stored one. A removed
//!    record has the stored version. Otherwise: [`Conflict::Stale`]. Of several changes of one version, one succeeds.
//! 4. A scope never has more webhook endpoints than the write allows: [`Conflict::TooManyEndpoints`].
//!    A new payment may demand that no other payment of its scope has a value: [`Conflict::LookupUsed`]. Of several that demand
//!    the same value, one succeeds.
//! 5. If several conditions do not hold, the conflict names the first: claims on work, then the idempotency key, then the
//!    writes in their order.
//! 6. Totals are additions. Changes made at the same time add up.
//! 30. A day's totals are those of the payments created on it, in their own scope and currency. A payment that is paid on another
//!     day counts on the day of its creation.
//! 7. Reads return a record as it was written. An event keeps its data when its payment changes.
//!
//! Idempotency keys:
//!
//! 8. A key stores one response: [`Conflict::IdempotencyKeyUsed`] returns it to the others. After 24 hours the key is unused.
//! 9. One request at a time claims a key: [`Conflict::KeyClaimed`]. The claim ends when the request stores its response or
//!    releases the key. After the end of its lease, another request may take it over, and the first one's response is
//!    refused: [`Conflict::ClaimLost`].
//!
//! Lists:
//!
//! 10. Lists are newest first. Records made within the same second may stand in either order. The order of two records
//!     never changes.
//! 11. A page and its `total` show the list at one moment. New payments only move older ones to later pages: reading page
//!     after page misses no payment that was there at the start, and may see one twice.
//! 12. A list by status holds each payment once, under its status. Payments that change status while a page is read may
//!     make it differ from its `total`.
//! 24. `payments_from` lists each payment as its last change left it, in the order of the pages. A reader that goes on after the
//!     last payment of a part reads none twice, and misses none that was there at the start.
//! 25. A payment is found by each of its values and by no other, in its own scope.
//! 26. Every delivery of a payment's events is among the deliveries of the payment, once, whenever it was made.
//! 29. A reader that goes on through `deliveries_from` misses no delivery that was there at the start, and reads none twice.
//! 13. `endpoints` sorts by id. A cursor finds all endpoints with later ids, also those added after the cursor was read.
//! 14. `outbox` starts with the smallest id at each call. So it skips no delivery, however late it was committed.
//!
//! Events:
//!
//! 23. Every event of a payment is in the list of its scope, once, in the order of the commits. A reader that goes on after the
//!     last event that it has read misses none and reads none twice. An event may appear in the list later than `commit` returns,
//!     but not much.
//!
//! Transactions:
//!
//! 27. Every change with postings is in the list of its scope's transactions, once, in the order of the commits. A reader that
//!     goes on to older entries misses none and reads none twice. Each entry has the balance that all entries up to it add up to.
//!
//! Time:
//!
//! 15. Leases, due work and pruning go by the times that the caller gives. Nothing else depends on time, so a clock that
//!     steps back loses no record and no work.
//!
//! Work:
//!
//! 16. A piece of work has one holder. Its claim ends by release, or when another claim is made after the end of the lease.
//!     No two claims have the same epoch.
//! 17. A claim that has ended finishes nothing: its changes fail with [`Conflict::WorkLost`], and it is not renewed. Once its
//!     lease is over, a claim may end at any moment, even if nobody takes it over. So may a claim whose end lies further ahead
//!     than twice the length of a lease: it was made before the clock went back.
//! 18. `claim` returns the oldest events first, and the timed work that is due first. Timed work is never early and may be a
//!     few milliseconds late. What is due within these milliseconds comes in either order. `planned` lists what is not due yet.
//! 19. Of two events of one payment, `claim` does not return the later one while a claim on the earlier one counts, except with
//!     it.
//! 20. An event is pending exactly if its scope has a webhook endpoint when the change commits. Endpoints that earlier
//!     writes of the same change add count too. [`Committed`] says whether an event became pending.
//!
//! 28. A pending delivery is in its endpoint's outbox, or in the queue of retries if it waits for its next attempt. One that
//!     waits makes no lane; `gauges` counts it. The time of the attempt may change until then.
//!
//! Pruning:
//!
//! 21. `prune` starts with the oldest record, handles at most `at_most` records and returns how many. At 0, nothing older
//!     is left. It never drops a claim on a key that takes over at the same moment.
//! 22. A pending delivery keeps its payload. If pruning has reached it meanwhile, it is stored redacted when it ends.

#![forbid(unsafe_code)]
// Other crates of the server alone use it; most of its fields say by their names what they are.
#![allow(missing_docs, rustdoc::private_intra_doc_links)]

/// Whether a simulation has planted this fault in the server.
#[cfg(feature = "simulation")]
macro_rules! planted {
    ($fault:ident) => {
        crate::planted::is_planted(crate::planted::Planted::$fault)
    };
}
#[cfg(not(feature = "simulation"))]
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

use payments_core::{DeliveryId, Environment, Status};

pub use backups::{BackedUp, Backups, Series};
pub use change::{Change, ClaimEnd, Committed, Conflict, EventWrite, NewResponse, PaymentWrite, Write};
pub use claim::{Claim, LEASE_SECONDS, Lease, Planned, Queue, Work};
pub use error::{CommitError, Result, StoreError};
pub use layout::{Checked, Finding, Snapshot, Store};
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

/// What all developers' records add up to.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Gauges {
    /// How many payments there are in each environment and public status. Rows of the same two add up.
    pub payments: Vec<(Environment, Status, u64)>,
    pub outbox: u64,
    /// How many deliveries wait for their next attempt.
    pub waiting: u64,
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
}

/// The beginning of an endpoint's outbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxHead {
    /// Deliveries in the order of their ids. If it names a delivery, it also names every earlier committed one with a smaller
    /// id.
    pub ids: Vec<DeliveryId>,
    /// Whether the outbox held no other delivery. Do not infer it from the number of ids: there may be fewer than `at_most`
    /// although others exist.
    pub is_all: bool,
}
