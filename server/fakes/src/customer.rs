//! Drives a fake without naming its gateway.

use http::Method;

use crate::{Entry, Form, Program};

/// What a customer does on the gateway's page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Does {
    /// Pays.
    Pays,
    /// Tries to pay, and has no money.
    HasNoMoney,
    /// Cancels.
    Cancels,
}

/// How the browser goes back to the merchant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Back {
    /// The method.
    pub method: Method,
    /// The merchant's address.
    pub url: String,
    /// The form's fields; empty for GET.
    pub form: Form,
}

impl Back {
    /// The form as a body; empty for GET.
    #[must_use]
    pub fn body(&self) -> String {
        url::form_urlencoded::Serializer::new(String::new()).extend_pairs(self.form.iter()).finish()
    }

    /// By following a link.
    pub(crate) fn get(url: String) -> Self {
        Self { method: Method::GET, url, form: Form::default() }
    }
}

/// A fake with its customers and books. `Arc<dyn Fake>` is any of them.
pub trait Fake: Program {
    /// The gateway's name in the server's settings.
    fn name(&self) -> &'static str;
    /// The currency of its payments.
    fn currency(&self) -> &'static str {
        "BDT"
    }
    /// Where the server is that has its notices, if it sends them to one address.
    fn tell(&self, _base_url: &str) {}
    /// The operations that must not fail at random, because the gateway blocks a merchant who repeats them.
    fn spared(&self) -> &'static [&'static str] {
        &[]
    }
    /// The payments and the money that it took and sent back.
    fn books(&self) -> Vec<Entry>;
    /// What the customer does with the attempt whose page is at this address. `None` if the page is closed, or the browser stays
    /// there.
    fn visit(&self, customer_url: &str, does: Does) -> Option<Back>;
    /// Takes an attempt's money after all, by the entry's id.
    fn take_late(&self, id: &str);
    /// Reports another amount for an entry from now on.
    fn falsify_amount(&self, id: &str, minor: u64);
}

/// The last part of an address's path.
pub(crate) fn last_part(url: &str) -> &str {
    let path = url.split(['?', '#']).next().unwrap_or_default();
    path.rsplit('/').next().unwrap_or_default()
}
