//! The volume of a merchant: what came in through gateways.

use payments_core::{LedgerAccount, Posting};

/// The volume that postings add: the amount that came in through a gateway. A refund does not reduce the volume.
pub(crate) fn volume_of(postings: &[Posting]) -> Option<i128> {
    let paid = |posting: &&Posting| posting.account == LedgerAccount::GatewayClearing && posting.minor < 0;
    postings.iter().find(paid).map(|posting| -i128::from(posting.minor))
}
