//! The answer to a removal.

use crate::aliased::aliased_resource;

aliased_resource! {
    /// The response to deleting a webhook endpoint, or to emptying a sandbox.
    #[derive(Debug)]
    #[non_exhaustive]
    pub struct Removed {
        /// Always true.
        success: bool = "success",
        /// A sentence that describes the result.
        message: String = "message",
    }
}
