//! The sandbox methods, for test keys.

use payments_core::{AdvanceSandbox, Advanced, Removed};
use reqwest::Method;

use crate::{Client, call::Call, request::Request};

/// The sandbox of a test key. The server refuses live keys, and the public key of a sandbox that others can reach.
#[derive(Debug, Clone, Copy)]
pub struct Sandbox<'c> {
    client: &'c Client,
}

impl Client {
    /// The sandbox methods.
    #[must_use]
    pub fn sandbox(&self) -> Sandbox<'_> {
        Sandbox { client: self }
    }
}

impl Sandbox<'_> {
    /// Advances the time of the key's sandbox by up to 31 days. Open checkout sessions that are then due expire, and
    /// deliveries whose next attempt is then due are attempted within a second. The client does not retry a lost response,
    /// because a repeated request would advance the time again.
    ///
    /// ```no_run
    /// # async fn expire(client: payments_client::Client) -> Result<(), payments_client::Error> {
    /// let moved = client.sandbox().advance(3600).await?;
    /// println!("{} payments expired, {} deliveries are attempted sooner", moved.expired, moved.retries);
    /// # Ok(())
    /// # }
    /// ```
    pub fn advance(self, seconds: u32) -> Request<Advanced> {
        let call = Call::new(Method::POST, "/sandbox/advance", None);
        Request::new(self.client, call.body(&AdvanceSandbox::by(seconds)))
    }

    /// Empties the sandbox of the key's workspace. Its records cannot be found again; keys and apps stay.
    ///
    /// ```no_run
    /// # async fn reset(client: payments_client::Client) -> Result<(), payments_client::Error> {
    /// client.sandbox().reset().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn reset(self) -> Request<Removed> {
        Request::new(self.client, Call::new(Method::POST, "/sandbox/reset", None).repeatable())
    }
}
