//! Faults of networks and gateways.

use std::{collections::BTreeMap, sync::Mutex};

use crate::lock;

/// A way in which a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Executes the call and never responds.
    HangAfter,
    /// Does not execute the call and never responds.
    HangBefore,
    /// Executes the call and closes the connection.
    DropAfter,
    /// Closes the connection without executing the call.
    DropBefore,
    /// Executes the call and responds with a server error.
    ErrorAfter,
    /// Responds with a server error without executing the call.
    ErrorBefore,
    /// Executes the call and responds with an empty body.
    Empty,
    /// Executes the call and sends half of the response body.
    Truncated,
    /// Executes the call and answers something else.
    After(Instead),
    /// Answers something else without executing the call.
    Before(Instead),
}

/// An answer that is not about the subject of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Instead {
    /// 401: the key was revoked, or its token has expired.
    Unauthorized,
    /// 403: the key may not do this.
    Forbidden,
    /// 404: the subject is of another account, or a proxy does not know the path.
    NotFound,
    /// A page of a proxy, with status 200.
    Page,
    /// At bKash: this code; most codes mean that the outcome is unknown. At Stripe: the error about an idempotency key. At
    /// SSLCommerz: `INVALID_REQUEST`.
    Code(&'static str),
}

impl Fault {
    /// Every fault with its name in control requests.
    pub const ALL: [(&'static str, Self); 24] = [
        ("hang_after", Self::HangAfter),
        ("hang_before", Self::HangBefore),
        ("drop_after", Self::DropAfter),
        ("drop_before", Self::DropBefore),
        ("error_after", Self::ErrorAfter),
        ("error_before", Self::ErrorBefore),
        ("empty", Self::Empty),
        ("truncated", Self::Truncated),
        ("unauthorized_after", Self::After(Instead::Unauthorized)),
        ("unauthorized_before", Self::Before(Instead::Unauthorized)),
        ("forbidden_after", Self::After(Instead::Forbidden)),
        ("forbidden_before", Self::Before(Instead::Forbidden)),
        ("not_found_after", Self::After(Instead::NotFound)),
        ("not_found_before", Self::Before(Instead::NotFound)),
        ("page_after", Self::After(Instead::Page)),
        ("page_before", Self::Before(Instead::Page)),
        ("2003_after", Self::After(Instead::Code("2003"))),
        ("2003_before", Self::Before(Instead::Code("2003"))),
        ("2020_after", Self::After(Instead::Code("2020"))),
        ("2020_before", Self::Before(Instead::Code("2020"))),
        ("2024_after", Self::After(Instead::Code("2024"))),
        ("2024_before", Self::Before(Instead::Code("2024"))),
        ("9999_after", Self::After(Instead::Code("9999"))),
        ("9999_before", Self::Before(Instead::Code("9999"))),
    ];
}

/// Decides which calls fail: random ones from a seed, or the next call of an operation.
#[derive(Debug, Default)]
pub struct Faults(Mutex<Plan>);

#[derive(Debug, Default)]
struct Plan {
    random: Option<Random>,
    ordered: Vec<(String, Fault)>,
    /// The number of calls, and of failed ones.
    calls: (u64, u64),
    /// The number of calls per operation.
    by_operation: BTreeMap<String, u64>,
}

#[derive(Debug)]
struct Random {
    rng: fastrand::Rng,
    rate: f64,
    kinds: Vec<Fault>,
    spared: Vec<String>,
}

impl Faults {
    /// Makes this share of calls fail from now on, except the spared operations.
    pub fn at_random(&self, seed: u64, rate: f64, kinds: &[Fault], spared: &[&str]) {
        let spared = spared.iter().map(ToString::to_string).collect();
        let random = Random { rng: fastrand::Rng::with_seed(seed), rate, kinds: kinds.to_vec(), spared };
        lock(&self.0).random = Some(random);
    }

    /// Makes the next call of this operation fail. Repeated orders apply to one call each, in order.
    pub fn next(&self, operation: &str, fault: Fault) {
        lock(&self.0).ordered.push((operation.to_owned(), fault));
    }

    /// Removes all faults.
    pub fn none(&self) {
        let mut plan = lock(&self.0);
        plan.random = None;
        plan.ordered.clear();
    }

    /// The number of calls, and of failed ones.
    pub fn calls(&self) -> (u64, u64) {
        lock(&self.0).calls
    }

    /// The number of calls of this operation.
    pub fn calls_of(&self, operation: &str) -> u64 {
        lock(&self.0).by_operation.get(operation).copied().unwrap_or_default()
    }

    /// Draws the fault of a call.
    pub(crate) fn draw(&self, operation: &str) -> Option<Fault> {
        let mut plan = lock(&self.0);
        plan.calls.0 += 1;
        *plan.by_operation.entry(operation.to_owned()).or_default() += 1;
        let ordered = plan.ordered.iter().position(|(known, _)| known == operation);
        let drawn = match ordered {
            Some(index) => Some(plan.ordered.remove(index).1),
            None => plan.random.as_mut().and_then(|random| {
                let spared = random.spared.iter().any(|spared| spared == operation);
                let hit = !spared && random.rng.f64() < random.rate;
                hit.then(|| random.rng.choice(&random.kinds).copied()).flatten()
            }),
        };
        plan.calls.1 += u64::from(drawn.is_some());
        drawn
    }
}
