//! The common interface of the fakes.

use super::{CARD, DECLINED_CARD, Stripe};
use crate::{
    Entry,
    customer::{Back, Does, Fake, last_part},
};

impl Fake for Stripe {
    fn name(&self) -> &'static str {
        "stripe"
    }

    fn currency(&self) -> &'static str {
        "USD"
    }

    fn tell(&self, base_url: &str) {
        self.send_events_to(&format!("{base_url}/gateways/{}/webhook", self.name()), 2);
    }

    fn books(&self) -> Vec<Entry> {
        Stripe::books(self)
    }

    fn visit(&self, customer_url: &str, does: Does) -> Option<Back> {
        let session = last_part(customer_url);
        let back = match does {
            Does::Pays => self.pay(session, CARD),
            Does::HasNoMoney => self.pay(session, DECLINED_CARD),
            Does::Cancels => self.cancel(session),
        };
        back.map(Back::get)
    }

    fn take_late(&self, id: &str) {
        Stripe::take_late(self, id);
    }

    fn falsify_amount(&self, id: &str, minor: u64) {
        Stripe::falsify_amount(self, id, minor);
    }
}
