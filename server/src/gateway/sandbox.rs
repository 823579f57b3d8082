//! The gateway of test payments. It moves no money; the checkout page's simulator ends its payments.

use async_trait::async_trait;
use payments_core::{Payment, PaymentMethod, SimulateOutcome};

use super::{
    contract::{AttemptRequest, AttemptState, BeginOutcome, Gateway},
    error::GatewayError,
};
use crate::domain::{GatewayAttempt, GatewayName};

pub(super) struct Sandbox;

#[async_trait]
impl Gateway for Sandbox {
    fn name(&self) -> GatewayName {
        GatewayName::Sandbox
    }

    fn method(&self) -> PaymentMethod {
        PaymentMethod::Test
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
