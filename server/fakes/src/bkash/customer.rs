//! The common interface of the fakes.

use super::{Bkash, POOR_WALLET, WALLET};
use crate::{
    Entry,
    customer::{Back, Does, Fake, last_part},
};

impl Fake for Bkash {
    fn name(&self) -> &'static str {
        "bkash"
    }

    /// It grants two tokens an hour.
    fn spared(&self) -> &'static [&'static str] {
        &["token"]
    }

    fn books(&self) -> Vec<Entry> {
        Bkash::books(self)
    }

    fn visit(&self, customer_url: &str, does: Does) -> Option<Back> {
        let payment = last_part(customer_url);
        let back = match does {
            Does::Pays => self.approve(payment, WALLET),
            Does::HasNoMoney => self.approve(payment, POOR_WALLET),
            Does::Cancels => self.cancel(payment),
        };
        back.map(Back::get)
    }

    fn take_late(&self, id: &str) {
        Bkash::take_late(self, id);
    }

    fn falsify_amount(&self, id: &str, minor: u64) {
        Bkash::falsify_amount(self, id, &format!("{}.{:02}", minor / 100, minor % 100));
    }
}
