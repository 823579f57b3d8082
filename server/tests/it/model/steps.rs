//! Random operations of merchants and customers.

use std::{fmt, thread};

use proptest::{option, prelude::*, sample::select};

pub(super) const STATUSES: [&str; 6] = ["pending", "completed", "failed", "cancelled", "refunded", "expired"];

/// The merchant of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Who {
    Test,
    Live,
}

/// An operation. Payments and endpoints are named by an index, modulo their number.
#[derive(Debug, Clone)]
pub(super) enum Operation {
    Create {
        amount: String,
        currency: &'static str,
        key: Option<&'static str>,
    },
    Replay {
        index: usize,
    },
    Simulate {
        payment: usize,
        outcome: &'static str,
    },
    Pay {
        payment: usize,
        outcome: &'static str,
    },
    Leave {
        payment: usize,
    },
    /// Refunds `percent` of the amount, or the rest.
    Refund {
        payment: usize,
        percent: Option<u64>,
        reason: Option<&'static str>,
        key: Option<&'static str>,
    },
    Read {
        payment: usize,
    },
    List {
        status: Option<&'static str>,
        page: usize,
        limit: usize,
    },
    Account,
    Subscribe {
        events: &'static [&'static str],
        is_down: bool,
        key: Option<&'static str>,
    },
    Update {
        endpoint: usize,
        events: &'static [&'static str],
        is_active: bool,
        is_down: bool,
    },
    /// Rotates the secret. If it `overlaps`, the previous one still signs for a day.
    Rotate {
        endpoint: usize,
        overlaps: bool,
        key: Option<&'static str>,
    },
    Unsubscribe {
        endpoint: usize,
    },
    Ping {
        endpoint: usize,
        key: Option<&'static str>,
    },
    Resend {
        delivery: usize,
        key: Option<&'static str>,
    },
    Recover {
        endpoint: usize,
    },
    Endpoints,
    Deliveries {
        endpoint: Option<usize>,
        page: usize,
        limit: usize,
    },
    Restart,
    Crash,
    /// The store moves to the other engine.
    Migrate,
    WaitForExpiry,
}

pub(super) type Step = (Who, Operation);

pub(super) struct Steps(pub(super) Vec<Step>);

/// Prints one step per line.
impl fmt::Debug for Steps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|step| write!(f, "\n{step:?}"))
    }
}

/// Prints failed steps immediately, because a failure that happens only sometimes may not recur during shrinking.
impl Drop for Steps {
    fn drop(&mut self) {
        if thread::panicking() {
            println!("these steps failed:{self:?}");
        }
    }
}

pub(super) fn steps(with_expiry: bool) -> impl Strategy<Value = Steps> {
    let by = |who| operations(who, with_expiry).prop_map(move |operation| (who, operation));
    prop::collection::vec(prop_oneof![by(Who::Test), by(Who::Live)], 1..=60).prop_map(Steps)
}

pub(super) fn operations(who: Who, with_expiry: bool) -> impl Strategy<Value = Operation> {
    // Few keys, so that both the same and other requests reuse them.
    let key = || option::weighted(0.7, select(&["a", "b", "c"][..]));
    let outcome = || prop_oneof![3 => Just("paid"), 2 => Just("failed"), 1 => Just("cancelled")];
    let amount = prop_oneof![
        8 => "[1-9][0-9]{0,4}(\\.[0-9]{1,2})?",
        1 => "0(\\.[0-9]{1,2})?",
        1 => "[1-9][0-9]{11}\\.[0-9]{2}",
    ];
    let events = || {
        select(vec![
            &["*"][..],
            &["payment.created"],
            &["payment.completed", "payment.refunded"],
            &["payment.partially_refunded"],
        ])
    };
    // Mostly operations that succeed for this merchant.
    let (simulate, pay, refund) = if who == Who::Test { (5, 2, 1) } else { (1, 6, 6) };
    let operation = prop_oneof![
        7 => (amount, select(&["BDT", "USD"][..]), key())
            .prop_map(|(amount, currency, key)| Operation::Create { amount, currency, key }),
        2 => (0..9_usize).prop_map(|index| Operation::Replay { index }),
        simulate => (0..9_usize, outcome()).prop_map(|(payment, outcome)| Operation::Simulate { payment, outcome }),
        pay => (0..9_usize, outcome()).prop_map(|(payment, outcome)| Operation::Pay { payment, outcome }),
        1 => (0..9_usize).prop_map(|payment| Operation::Leave { payment }),
        refund => (0..9_usize, option::of(10..=100_u64), option::of(Just("damaged")), key())
            .prop_map(|(payment, percent, reason, key)| Operation::Refund { payment, percent, reason, key }),
        2 => (0..9_usize).prop_map(|payment| Operation::Read { payment }),
        2 => (option::of(select(&STATUSES[..])), 1..4_usize, prop_oneof![1..5_usize, 1..=100_usize])
            .prop_map(|(status, page, limit)| Operation::List { status, page, limit }),
        1 => Just(Operation::Account),
        2 => (events(), any::<bool>(), key())
            .prop_map(|(events, is_down, key)| Operation::Subscribe { events, is_down, key }),
        2 => (0..4_usize, events(), any::<bool>(), any::<bool>()).prop_map(|(endpoint, events, is_active, is_down)| {
            Operation::Update { endpoint, events, is_active, is_down }
        }),
        1 => (0..4_usize, any::<bool>(), key())
            .prop_map(|(endpoint, overlaps, key)| Operation::Rotate { endpoint, overlaps, key }),
        1 => (0..4_usize).prop_map(|endpoint| Operation::Unsubscribe { endpoint }),
        1 => (0..4_usize, key()).prop_map(|(endpoint, key)| Operation::Ping { endpoint, key }),
        1 => (0..9_usize, key()).prop_map(|(delivery, key)| Operation::Resend { delivery, key }),
        3 => (0..4_usize).prop_map(|endpoint| Operation::Recover { endpoint }),
        1 => Just(Operation::Endpoints),
        1 => (option::of(0..4_usize), 1..4_usize, 1..5_usize)
            .prop_map(|(endpoint, page, limit)| Operation::Deliveries { endpoint, page, limit }),
        1 => Just(Operation::Restart),
        1 => Just(Operation::Crash),
        1 => Just(Operation::Migrate),
    ];
    if with_expiry {
        prop_oneof![30 => operation, 1 => Just(Operation::WaitForExpiry)].boxed()
    } else {
        operation.boxed()
    }
}
