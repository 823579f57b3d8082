//! The checkout methods. They use keyless routes, so the client sends no API key.

use payments_core::{
    Amount, CheckoutSession, Currency, DemoCheckout, Money, Pay, PayResult, PaymentId, Simulate, SimulateOutcome,
    Simulation,
};
use reqwest::Method;
use serde::Serialize;

use crate::{Client, call::Call, request::Request};

/// The checkout methods. A session has the id of its payment.
#[derive(Debug, Clone, Copy)]
pub struct Checkout<'c> {
    client: &'c Client,
}

impl Client {
    /// The checkout methods: the keyless routes that the checkout page uses.
    #[must_use]
    pub fn checkout(&self) -> Checkout<'_> {
        Checkout { client: self }
    }
}

impl Checkout<'_> {
    /// Retrieves a checkout session.
    ///
    /// ```no_run
    /// # use payments_client::{Client, PaymentId};
    /// # async fn read(client: Client, id: PaymentId) -> Result<(), payments_client::Error> {
    /// println!("{}", client.checkout().retrieve(&id).await?.expires_at);
    /// # Ok(())
    /// # }
    /// ```
    pub fn retrieve(self, id: &PaymentId) -> Request<CheckoutSession> {
        Request::new(self.client, Call::new(Method::GET, "/checkout/{}", Some(id.as_str())).keyless())
    }

    /// Ends a test session with this outcome.
    ///
    /// The request has no idempotency key, so the client does not retry a lost response. Retrieve the session instead.
    ///
    /// ```no_run
    /// # use payments_client::{Client, PaymentId, SimulateOutcome};
    /// # async fn simulate(client: Client, id: PaymentId) -> Result<(), payments_client::Error> {
    /// let ended = client.checkout().simulate(&id, SimulateOutcome::Completed).await?;
    /// assert!(ended.success);
    /// # Ok(())
    /// # }
    /// ```
    pub fn simulate(self, id: &PaymentId, outcome: SimulateOutcome) -> Request<Simulation> {
        let call = Call::new(Method::POST, "/checkout/{}/simulate", Some(id.as_str())).keyless();
        Request::new(self.client, call.body(&Simulate { outcome }))
    }

    /// Starts to pay, as the customer's browser does. The client does not retry a lost response.
    ///
    /// While an attempt at the gateway can be paid, each call leads to that attempt. If it failed, the payment is
    /// [`RawStatus::Pending`](crate::RawStatus::Pending), and a call begins another attempt. A session has at most ten.
    ///
    /// ```no_run
    /// # use payments_client::{Client, Pay, PayResult, PaymentId};
    /// # async fn pay(client: Client, id: PaymentId) -> Result<(), payments_client::Error> {
    /// match client.checkout().pay(&id, Pay::default()).await? {
    ///     PayResult::Redirect(to) => println!("redirect to the gateway: {}", to.redirect_url),
    ///     PayResult::Simulated(ended) => println!("a test session, {}", ended.status),
    ///     _ => {}
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn pay(self, id: &PaymentId, params: Pay) -> Request<PayResult> {
        let call = Call::new(Method::POST, "/checkout/{}/pay", Some(id.as_str())).keyless();
        Request::new(self.client, call.body(&params))
    }

    /// Creates a test session in the sandbox. The client does not retry a lost response.
    ///
    /// ```no_run
    /// # use payments_client::{Client, CreateDemoSession, Money};
    /// # async fn demo(client: Client) -> Result<(), payments_client::Error> {
    /// let demo = client.checkout().demo_session(CreateDemoSession::of(Money::taka(100))).await?;
    /// println!("open {}", demo.checkout_url);
    /// # Ok(())
    /// # }
    /// ```
    pub fn demo_session(self, params: CreateDemoSession) -> Request<DemoCheckout> {
        let call = Call::new(Method::POST, "/checkout/demo-session", None).keyless();
        Request::new(self.client, call.body(&params))
    }
}

/// The parameters of a demo session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CreateDemoSession {
    amount: Amount,
    currency: Currency,
    #[serde(skip_serializing_if = "Option::is_none")]
    customer_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    customer_email: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
}

impl CreateDemoSession {
    /// Creates parameters with the money to pay.
    #[must_use]
    pub fn of(money: Money) -> Self {
        let Money { amount, currency } = money;
        Self { amount, currency, customer_name: None, customer_email: None, description: None }
    }

    /// Sets the customer's name.
    #[must_use]
    pub fn customer_name(mut self, name: impl Into<String>) -> Self {
        self.customer_name = Some(name.into());
        self
    }

    /// Sets the customer's e-mail address.
    #[must_use]
    pub fn customer_email(mut self, email: impl Into<String>) -> Self {
        self.customer_email = Some(email.into());
        self
    }

    /// Sets the description on the checkout page.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        self.description = Some(description.into());
        self
    }
}
