//! A merchant: its keys and endpoints, and its shop's orders.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::{Mutex, MutexGuard};
use serde_json::Value;

use super::{ask::Key, endpoints::Receiver, notes::Asked};

pub(super) struct Merchant {
    pub(super) number: usize,
    pub(super) workspace: String,
    live_key: Key,
    test_key: Key,
    /// The keys that the operator has replaced.
    pub(super) revoked: Mutex<Vec<String>>,
    /// The endpoints: id, whether it is of the live environment, the receiver.
    pub(super) endpoints: Vec<(String, bool, Arc<Receiver>)>,
    orders: Mutex<Vec<Order>>,
    payouts: Mutex<Vec<Asked>>,
    /// When things were last done that may not be done too often.
    done: Mutex<BTreeMap<String, i64>>,
}

/// An order, as the shop knows it.
#[derive(Debug, Clone)]
pub(super) struct Order {
    pub(super) number: String,
    pub(super) is_live: bool,
    pub(super) body: Value,
    /// The payment, if an answer said so.
    pub(super) payment: Option<String>,
    /// The rank of the last status seen. A payment never goes back to a lower rank.
    pub(super) rank: u8,
    /// The keys of its refunds, and whether one was acknowledged.
    pub(super) refunds: Vec<(String, Value, bool)>,
}

impl Merchant {
    pub(super) fn new(
        number: usize,
        workspace: String,
        [live_key, test_key]: [Key; 2],
        endpoints: Vec<(String, bool, Arc<Receiver>)>,
    ) -> Self {
        let (revoked, orders, payouts, done) = (Mutex::default(), Mutex::default(), Mutex::default(), Mutex::default());
        Self { number, workspace, live_key, test_key, revoked, endpoints, orders, payouts, done }
    }

    pub(super) fn orders(&self) -> MutexGuard<'_, Vec<Order>> {
        self.orders.lock()
    }

    pub(super) fn payouts(&self) -> MutexGuard<'_, Vec<Asked>> {
        self.payouts.lock()
    }

    pub(super) fn key(&self, is_live: bool) -> &Key {
        if is_live { &self.live_key } else { &self.test_key }
    }

    pub(super) fn done(&self) -> MutexGuard<'_, BTreeMap<String, i64>> {
        self.done.lock()
    }
}
