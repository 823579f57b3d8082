//! A real server for a test of live payments.

use std::{path::PathBuf, time::Duration};

use gateway_fakes::{
    Running,
    bkash::{Bkash, WALLET},
    stripe::{CARD, Stripe},
};
use payments_core::{Amount, Currency, Pay, PayResult, Payment, PaymentId};

use super::{Receiver, StartError, TestServer, server::program};
use crate::{Client, Error};

/// How often a test asks for a dispute, every 50 ms.
const ASKS: u32 = 200;

/// A [`TestServer`] for live payments: its gateways are fakes in the test's own process, and its client has a live key.
///
/// ```no_run
/// use payments_client::{CreatePayment, EventKind, Money, Status, testing::LiveServer};
///
/// #[tokio::test]
/// async fn a_returned_cup_is_refunded() -> Result<(), Box<dyn std::error::Error>> {
///     let server = LiveServer::start().await?;
///     let params = CreatePayment::of(Money::cents(1250))
///         .success_url("https://shop.example/paid")
///         .cancel_url("https://shop.example/cart");
///     let payment = server.client().payments().create(params).await?;
///     assert_eq!(server.pay_live(&payment.id).await?.status, Status::Completed);
///     assert_eq!(server.refund(&payment.id).await?.status, Status::Refunded);
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct LiveServer {
    server: TestServer,
    bkash: Running<Bkash>,
    stripe: Running<Stripe>,
}

/// Why a step of a live payment failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LiveError {
    /// The server refused it.
    #[error(transparent)]
    Api(#[from] Error),
    /// The operator's command failed.
    #[error(transparent)]
    Operator(#[from] StartError),
    /// The gateway's fake refused it: the payment is in no state for it.
    #[error("the gateway refused it; a payment is paid once, and disputed after that")]
    Refused,
    /// The customer's browser did not come back from the gateway.
    #[error("the browser did not come back from the gateway: {0}")]
    Browser(reqwest::Error),
    /// The server did not show the dispute.
    #[error("the server shows no dispute after 10 seconds")]
    NoDispute,
}

impl LiveServer {
    /// Starts a server and the fakes.
    ///
    /// # Errors
    /// If the program is missing or does not start.
    pub async fn start() -> Result<Self, StartError> {
        Self::start_program(program()).await
    }

    /// Starts a server of this program and the fakes.
    ///
    /// # Errors
    /// If the program is missing or does not start.
    pub async fn start_program(program: impl Into<PathBuf>) -> Result<Self, StartError> {
        let bkash = Running::start(Bkash::new(), "127.0.0.1:0").await?;
        let stripe = Running::start(Stripe::new(), "127.0.0.1:0").await?;
        let settings = format!("{}\n{}", bkash.settings(), stripe.settings());
        let mut server = TestServer::start_with(program.into(), settings).await?;
        stripe.program().send_events_to(&format!("{}/gateways/stripe/webhook", server.url()), 1);
        let workspace = server.administer(&["workspaces", "create", "--name", "Shop"]).await?;
        let key = ["keys", "create", "--workspace", &workspace, "--environment", "live"];
        server.client = Client::builder(server.administer(&key).await?).base_url(server.url()).build()?;
        Ok(Self { server, bkash, stripe })
    }

    /// A client with a live key.
    #[must_use]
    pub fn client(&self) -> &Client {
        self.server.client()
    }

    /// The server, for its address and its log.
    #[must_use]
    pub fn server(&self) -> &TestServer {
        &self.server
    }

    /// Starts a webhook endpoint and subscribes it to all events.
    ///
    /// # Errors
    /// Those of [`TestServer::receive_webhooks`].
    pub async fn receive_webhooks(&self) -> Result<Receiver, StartError> {
        self.server.receive_webhooks().await
    }

    /// Pays a payment at its gateway and comes back to the shop, as the customer would.
    ///
    /// # Errors
    /// If the payment is not open.
    pub async fn pay_live(&self, id: &PaymentId) -> Result<Payment, LiveError> {
        let currency = self.client().payments().retrieve(id).await?.currency;
        let PayResult::Redirect(to) = self.client().checkout().pay(id, Pay::default()).await? else {
            return Err(LiveError::Refused);
        };
        let attempt = to.redirect_url.rsplit('/').next().unwrap_or_default();
        let back = match currency {
            Currency::Bdt => self.bkash.program().approve(attempt, WALLET),
            Currency::Usd | Currency::Other(_) => self.stripe.program().pay(attempt, CARD),
        };
        let browser = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).no_proxy().build();
        let visit = browser.map_err(LiveError::Browser)?.get(back.ok_or(LiveError::Refused)?).send().await;
        visit.map_err(LiveError::Browser)?;
        Ok(self.client().payments().retrieve(id).await?)
    }

    /// Refunds a paid payment, or the rest of it, as the merchant.
    ///
    /// # Errors
    /// Those of [`Payments::refund`](crate::Payments::refund).
    pub async fn refund(&self, id: &PaymentId) -> Result<Payment, LiveError> {
        Ok(self.client().payments().refund(id, None).await?)
    }

    /// Disputes this much of a paid payment, as the customer would at the bank, and waits until the server knows it.
    ///
    /// # Errors
    /// If the payment is not paid, or has less left.
    pub async fn dispute(&self, id: &PaymentId, amount: Amount) -> Result<Payment, LiveError> {
        let before = self.client().payments().retrieve(id).await?;
        match before.currency {
            // The wallet writes to the operator.
            Currency::Bdt => {
                let (letter, amount) = (format!("letter-{}", before.disputes.len() + 1), amount.to_string());
                let open = ["disputes", "open", id.as_str(), "--amount", &amount, "--reference", &letter];
                self.server.administer(&open).await?;
            }
            Currency::Usd | Currency::Other(_) => {
                let dispute = self.stripe.program().open_dispute(id.as_str(), amount.as_minor(), "fraudulent", false);
                dispute.ok_or(LiveError::Refused)?;
            }
        }
        for _ in 0..ASKS {
            let payment = self.client().payments().retrieve(id).await?;
            if payment.disputes.len() > before.disputes.len() {
                return Ok(payment);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Err(LiveError::NoDispute)
    }
}
