//! The gateway of test payments. It moves no money; the checkout page's simulator ends its payments.

use async_trait::async_trait;
use payments_core::{Payment, PaymentMethod, SimulateOutcome};

use super::{
    SANDBOX,
    contract::{AttemptRequest, AttemptState, BeginOutcome, Gateway},
    declaration::{Declaration, RefundWay, Way},
    error::GatewayError,
    reference::ReferenceForm,
    returns::Returns,
};
use crate::domain::GatewayAttempt;

pub(super) struct Sandbox;

pub static WAY: Way = Way {
    name: "test",
    method: PaymentMethod::Test,
    title: ["Test, no money moved", "পরীক্ষামূলক, কোনো টাকা কাটা হয়নি"],
    hint: ["", ""],
    limits: &[],
    asks: &[],
};

static DECLARED: Declaration = Declaration {
    name: SANDBOX,
    title: "the simulator",
    ways: &[],
    reference: ReferenceForm::WithPayment,
    session_seconds: [0, u32::MAX],
    refunds: RefundWay::Manual,
    most_refunds: None,
    needs_token: false,
    lists: &[],
    statement: None,
    errors: &[],
    returns: Returns { outcome: "", words: &[], attempt: "" },
    notice_bytes: None,
    notice_answer: ("", ""),
    settings: &[],
    setup: "",
    check: |_| Ok(()),
    mode: |_| "",
};

#[async_trait]
impl Gateway for Sandbox {
    fn declared(&self) -> &'static Declaration {
        &DECLARED
    }

    async fn begin(&self, _: &AttemptRequest<'_>) -> Result<BeginOutcome, GatewayError> {
        Ok(BeginOutcome::Simulated(SimulateOutcome::Completed))
    }

    /// The state is always open: the simulator ends a test payment.
    async fn query(&self, _: &Payment, _: &GatewayAttempt) -> Result<AttemptState, GatewayError> {
        Ok(AttemptState::Open)
    }

    async fn cancel(&self, _: &Payment, _: &GatewayAttempt) -> Result<AttemptState, GatewayError> {
        Ok(AttemptState::Cancelled)
    }
}
