//! Gateways' answers to requests that move money. Only an answer that names the request's subject is final.
//!
//! A request may have reached the gateway even if the response denies it: a key was replaced, a proxy answered, a gateway
//! lost its records. So only a response that [names](Names) its subject can reject it, or tell the state of an attempt or a
//! refund. Everything else is a [`GatewayError`](super::GatewayError), which ends nothing.

use std::ops::Deref;

use super::title;
use crate::domain::GatewayName;

/// A response that may name the refund, charge or attempt that a request was about.
pub(super) trait Names {
    /// Whether the response is about `subject`.
    fn names(&self, subject: &str) -> bool;
}

/// A response about the refund, charge or attempt that a request was about.
#[derive(Debug)]
pub(super) struct About<R>(R);

impl<R: Names> About<R> {
    /// `None` if the response is about something else, or does not say what it is about.
    pub(super) fn new(response: R, subject: &str) -> Option<Self> {
        response.names(subject).then_some(Self(response))
    }

    /// Makes a rejection final, because this response is about the request.
    pub(super) fn final_rejection(&self, rejection: Rejection) -> FinalRejection {
        FinalRejection(rejection)
    }
}

impl<R> Deref for About<R> {
    type Target = R;

    fn deref(&self) -> &R {
        &self.0
    }
}

/// A rejection of one request that moves money: the money has not moved, and will not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FinalRejection(Rejection);

impl From<FinalRejection> for Rejection {
    fn from(FinalRejection(rejection): FinalRejection) -> Self {
        rejection
    }
}

/// Why a gateway did not carry out a request, in its own words, which say nothing about money.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{gateway} refused: {message} (code {code})", gateway = title(*gateway))]
pub struct Rejection {
    pub gateway: GatewayName,
    pub code: String,
    pub message: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Refund(&'static str);

    impl Names for Refund {
        fn names(&self, subject: &str) -> bool {
            self.0 == subject
        }
    }

    #[test]
    fn a_response_rejects_only_the_request_that_it_is_about() {
        let rejection = Rejection { gateway: GatewayName::of("stripe"), code: "failed".into(), message: "no".into() };
        assert!(About::new(Refund("ref_1"), "ref_2").is_none());
        let final_rejection = About::new(Refund("ref_1"), "ref_1").unwrap().final_rejection(rejection.clone());
        assert_eq!(Rejection::from(final_rejection), rejection);
    }
}
