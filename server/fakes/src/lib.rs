//! Strict fakes of two payment gateways, for tests.
//!
//! A fake answers over real HTTP, refuses what the real gateway refuses, keeps books of the money it took, and fails in the
//! ways networks fail when it is told to ([`Faults`]). It moves no money and knows no customer but those in its
//! documentation.
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
mod faults;
mod serve;
pub mod stripe;

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::json;

pub use faults::{Fault, Faults};
pub use serve::{Answer, Ask, Form, Program, Running, by_hand};

/// What a gateway knows of one payment's money.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The gateway's name for the payment.
    pub id: String,
    /// The merchant's name for it.
    pub reference: String,
    /// In minor units.
    pub amount_minor: u64,
    /// How often its money was taken. More than once would be the gateway's fault, and fails a test.
    pub taken: u32,
    /// How often its money was given back.
    pub refunded: u32,
}

/// The answer to a call for the books.
fn books_json(books: &[Entry]) -> Answer {
    let entry = |entry: &Entry| {
        json!({"id": entry.id, "reference": entry.reference, "amountMinor": entry.amount_minor,
            "taken": entry.taken, "refunded": entry.refunded})
    };
    Answer::ok(&books.iter().map(entry).collect())
}

/// The time in seconds since 1970.
fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

/// Twenty-four hex digits from a seed and a word: the same in each run, different for each word.
fn token(prefix: &str, seed: u64, word: &str) -> String {
    use sha2::{Digest, Sha256};
    let digest = Sha256::new().chain_update(seed.to_be_bytes()).chain_update(word).finalize();
    let hex: String = digest.iter().take(12).map(|byte| format!("{byte:02x}")).collect();
    format!("{prefix}{hex}")
}

/// A text as it can stand in HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Whatever was poisoned by a failed test is still the books.
fn lock<T>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
