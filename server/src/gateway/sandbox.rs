//! The gateway of test payments. It moves no money; the checkout page's simulator ends its payments.

use async_trait::async_trait;
use payments_core::{Payment, PaymentMethod, SimulateOutcome};

use super::{
    contract::{Begun, Gateway, Order, Standing},
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

    async fn begin(&self, _: &Order<'_>) -> Result<Begun, GatewayError> {
        Ok(Begun::Simulated(SimulateOutcome::Completed))
    }

    /// Always open: the simulator ends a test payment.
    async fn query(&self, _: &Payment, _: &GatewayAttempt) -> Result<Standing, GatewayError> {
        Ok(Standing::Open)
    }

    async fn cancel(&self, _: &Payment, _: &GatewayAttempt) -> Result<Standing, GatewayError> {
        Ok(Standing::Cancelled)
    }
}
