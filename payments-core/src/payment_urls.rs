//! The URLs of a new payment, each set by its name.

use crate::{CreatePayment, Money};

/// A new payment that has no URLs yet; see [`CreatePayment::of`].
#[derive(Debug, Clone, Copy)]
#[must_use = "a payment needs a success URL and a cancel URL"]
pub struct WithoutSuccessUrl {
    pub(crate) money: Money,
}

impl WithoutSuccessUrl {
    /// Sets where to send the customer after a successful payment: an absolute URL, in live mode with `https` except for
    /// localhost.
    pub fn success_url(self, url: impl Into<String>) -> WithoutCancelUrl {
        WithoutCancelUrl { money: self.money, success_url: url.into() }
    }
}

/// A new payment that has no cancel URL yet; see [`CreatePayment::of`].
#[derive(Debug, Clone)]
#[must_use = "a payment needs a cancel URL"]
pub struct WithoutCancelUrl {
    money: Money,
    success_url: String,
}

impl WithoutCancelUrl {
    /// Sets where to send the customer otherwise, under the same rules.
    #[must_use]
    pub fn cancel_url(self, url: impl Into<String>) -> CreatePayment {
        CreatePayment::with_urls(self.money, self.success_url, url.into())
    }
}
