//! Strict fakes of three payment gateways, and of a provider at which people sign in, for tests.
//!
//! A fake answers over real HTTP, refuses invalid requests as the gateway does, keeps books of the money it took, and
//! injects network and gateway faults ([`Faults`]). It moves no real money.
//!
//! ```no_run
//! use gateway_fakes::{Running, bkash::Bkash};
//!
//! # async fn example() -> std::io::Result<()> {
//! let fake = Running::start(Bkash::new(), "127.0.0.1:0").await?;
//! println!("PAYMENTS_BKASH_BASE_URL={}/v1.2.0-beta", fake.url());
//! assert!(fake.program().books().is_empty());
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

pub mod bkash;
mod control;
mod customer;
mod faults;
mod form;
pub mod oidc;
mod serve;
pub mod sslcommerz;
pub mod stripe;

use std::{
    cell::Cell,
    sync::Arc,
    time::{SystemTime, UNIX_EPOCH},
};

use serde_json::json;

pub use customer::{Back, Does, Fake};
pub use faults::{Fault, Faults, Instead};
pub use form::Form;
pub use serve::{Answer, Call, Program, Running, run};

/// A fake of each gateway.
#[must_use]
pub fn all() -> Vec<Arc<dyn Fake>> {
    vec![Arc::new(bkash::Bkash::new()), Arc::new(stripe::Stripe::new()), Arc::new(sslcommerz::SslCommerz::new())]
}

/// A fake of each gateway, in the newest version of its API.
#[must_use]
pub fn newest() -> Vec<Arc<dyn Fake>> {
    vec![Arc::new(bkash::Bkash::v2()), Arc::new(stripe::Stripe::new()), Arc::new(sslcommerz::SslCommerz::new())]
}

/// One payment in a gateway's books.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The gateway's id of the payment.
    pub id: String,
    /// The merchant's reference.
    pub reference: String,
    /// The amount in minor units.
    pub amount_minor: u64,
    /// Whether the gateway said that it does not take the money.
    pub is_refused: bool,
    /// How often the money was taken. More than once fails a test.
    pub taken: u32,
    /// How many refunds sent money back.
    pub refunded: u32,
    /// The money sent back, in minor units.
    pub refunded_minor: u64,
    /// The money that disputes withdrew and did not reinstate, in minor units.
    pub disputed_minor: u64,
    /// The fees that the gateway kept, in minor units.
    pub kept_minor: u64,
}

/// The response with the books.
fn books_json(books: &[Entry]) -> Answer {
    let entry = |entry: &Entry| {
        json!({"id": entry.id, "reference": entry.reference, "amountMinor": entry.amount_minor,
            "taken": entry.taken, "refunded": entry.refunded, "refundedMinor": entry.refunded_minor,
            "disputedMinor": entry.disputed_minor, "keptMinor": entry.kept_minor})
    };
    Answer::ok(&books.iter().map(entry).collect())
}

thread_local! {
    /// The time of a simulation.
    static SIMULATED: Cell<Option<u64>> = const { Cell::new(None) };
}

/// Runs a call as if it were this time, in seconds since 1970.
pub fn at<T>(seconds: u64, call: impl FnOnce() -> T) -> T {
    let before = SIMULATED.replace(Some(seconds));
    let outcome = call();
    SIMULATED.set(before);
    outcome
}

/// The time in seconds since 1970.
fn now() -> u64 {
    let system = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    SIMULATED.get().unwrap_or_else(system)
}

/// Makes an id of 24 hex digits from a seed and a word, the same in each run.
fn token(prefix: &str, seed: u64, word: &str) -> String {
    use sha2::{Digest, Sha256};
    let digest = Sha256::new().chain_update(seed.to_be_bytes()).chain_update(word).finalize();
    let hex: String = digest.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    format!("{prefix}{hex}")
}

/// Escapes a text for HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Locks a mutex, even if a failed test poisoned it.
fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
