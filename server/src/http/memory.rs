//! The budgets of memory that a listener's connections share, by client address.

use std::{net::IpAddr, sync::Arc};

use crate::{budget::Budget, metrics::Requests};

/// For responses of more than 16 KiB that their clients still have to take.
const UNSENT_RESPONSES: i64 = 96 * 1024 * 1024;
/// For heads and bodies of requests, over the first 8 KiB of each connection.
const INPUT: i64 = 32 * 1024 * 1024;

#[derive(Clone)]
pub(crate) struct Memory {
    pub(super) unsent: Arc<Budget<IpAddr>>,
    pub(super) input: Arc<Budget<IpAddr>>,
}

impl Memory {
    pub(crate) fn new(metrics: &Requests) -> Self {
        let unsent = Budget::new(UNSENT_RESPONSES, metrics.unsent.clone());
        Self { unsent, input: Budget::new(INPUT, metrics.input.clone()) }
    }
}
