//! The credentials and cards that the fake knows.

/// The secret key that it knows.
pub const SECRET_KEY: &str = "sk_test_fake_4eC39HqLyjWDarjtT1zdp7dc";
/// What its events are signed with.
pub const WEBHOOK_SECRET: &str = "whsec_fake_a1b2c3d4e5f60718293a4b5c6d7e8f90";
/// A card that pays.
pub const CARD: &str = "4242424242424242";
/// A card that is declined.
pub const DECLINED_CARD: &str = "4000000000000002";
/// A way to pay that takes its time: the session is complete, and paid once [`Stripe::finish`](super::Stripe::finish) says so.
pub const SLOW_CARD: &str = "4000000000000077";
