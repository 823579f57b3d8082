//! The credentials, cards and fees of the fake.

/// The valid secret key.
pub const SECRET_KEY: &str = "sk_test_fake_4eC39HqLyjWDarjtT1zdp7dc";
/// The secret that signs events.
pub const WEBHOOK_SECRET: &str = "whsec_fake_a1b2c3d4e5f60718293a4b5c6d7e8f90";
/// The version of Stripe's API that the fake follows.
pub const VERSION: &str = "2025-03-31.basil";
/// A card that pays.
pub const CARD: &str = "4242424242424242";
/// A declined card.
pub const DECLINED_CARD: &str = "4000000000000002";
/// A slow card: the session completes, and [`Stripe::finish`](super::Stripe::finish) later decides its payment.
pub const SLOW_CARD: &str = "4000000000000077";

/// The fee of a charge: this many thousandths of its amount, rounded half up, and [`CHARGE_FEE_FIXED`].
pub const CHARGE_FEE_PER_MILLE: u64 = 29;
/// The fixed part of the fee of a charge, in minor units.
pub const CHARGE_FEE_FIXED: u64 = 30;

/// The fee of a charge, in minor units.
#[must_use]
pub const fn charge_fee(amount_minor: u64) -> u64 {
    (amount_minor * CHARGE_FEE_PER_MILLE + 500) / 1_000 + CHARGE_FEE_FIXED
}

/// The fee of a dispute that withdraws money, in minor units.
pub const DISPUTE_FEE: u64 = 1_500;
/// How long the merchant may answer a dispute, in seconds.
pub const DISPUTE_RESPONSE_TIME: u64 = 9 * 24 * 3600;
