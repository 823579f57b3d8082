//! Random numbers for backoff.

use std::sync::atomic::{AtomicU64, Ordering};

/// SplitMix64: uniform, fast and lock-free. Not for secrets.
#[derive(Debug)]
pub(crate) struct Jitter(AtomicU64);

impl Jitter {
    const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

    pub(crate) const fn seeded(seed: u64) -> Self {
        Self(AtomicU64::new(seed))
    }

    /// A random number, uniform in 0..1.
    pub(crate) fn next(&self) -> f64 {
        let mut bits = self.0.fetch_add(Self::STEP, Ordering::Relaxed).wrapping_add(Self::STEP);
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        // 32 bits convert to a float exactly.
        f64::from(u32::try_from(bits >> 32).unwrap_or(0)) / (f64::from(u32::MAX) + 1.0)
    }
}
