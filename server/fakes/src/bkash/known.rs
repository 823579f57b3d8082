//! The credentials and wallets that the fake accepts.

/// The valid app key.
pub const APP_KEY: &str = "4f6o0cjiki2rfm34kfdadl1eqq";
/// The valid app secret.
pub const APP_SECRET: &str = "2is7hdktrekvrbljjh44ll3d9l1dtjo4pasmjvs5vl5qr3fug4b";
/// The valid user name.
pub const USERNAME: &str = "sandboxTokenizedUser02";
/// The valid password.
pub const PASSWORD: &str = "sandboxTokenizedUser02@12345";
/// A wallet with money.
pub const WALLET: &str = "01770618575";
/// A wallet without money.
pub const POOR_WALLET: &str = "01823074817";
/// A blocked wallet.
pub const BLOCKED_WALLET: &str = "01823074818";
