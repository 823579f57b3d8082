//! The credentials and cards that the fake accepts.

/// The valid secret key.
pub const SECRET_KEY: &str = "sk_test_fake_4eC39HqLyjWDarjtT1zdp7dc";
/// The secret that signs events.
pub const WEBHOOK_SECRET: &str = "whsec_fake_a1b2c3d4e5f60718293a4b5c6d7e8f90";
/// A card that pays.
pub const CARD: &str = "4242424242424242";
/// A declined card.
pub const DECLINED_CARD: &str = "4000000000000002";
/// A slow card: the session completes, and [`Stripe::finish`](super::Stripe::finish) later decides its payment.
pub const SLOW_CARD: &str = "4000000000000077";
