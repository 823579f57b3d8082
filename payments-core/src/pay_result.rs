//! The result of starting to pay.

use serde::{Deserialize, Deserializer, de};

use crate::{RawJson, Simulation, aliased::aliased_resource};

aliased_resource! {
    /// A live checkout session whose customer pays at the gateway.
    #[derive(Debug)]
    #[non_exhaustive]
    pub struct Redirect {
        /// The gateway's URL, to redirect the customer to.
        redirect_url: String = "redirectUrl",
    }
}

/// The result of starting to pay a checkout session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PayResult {
    /// The simulator ended a test session.
    Simulated(Simulation),
    /// A live session: redirect the customer to the gateway.
    Redirect(Redirect),
}

/// Only `Simulated` has the field `success`.
impl<'de> Deserialize<'de> for PayResult {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Shape {
            success: Option<bool>,
        }
        // Parse twice, because `untagged` cannot buffer the raw text of unknown fields.
        let json = RawJson::deserialize(deserializer)?;
        let result = json.parse().and_then(|shape: Shape| match shape.success {
            Some(_) => json.parse().map(Self::Simulated),
            None => json.parse().map(Self::Redirect),
        });
        result.map_err(de::Error::custom)
    }
}
