//! Creating, retrieving and listing payments.

use std::{future::IntoFuture, pin::Pin};

use payments_core::{CreatePayment, Page, Payment, PaymentId, Status};
use reqwest::{Method, header};

use crate::{
    Client, IdempotencyKey, Result,
    error::{Error, Kind},
};

type Sending<'c, T> = Pin<Box<dyn Future<Output = Result<T>> + Send + 'c>>;

/// The payments of the key's developer and environment.
#[derive(Debug, Clone, Copy)]
pub struct Payments<'c> {
    client: &'c Client,
}

impl<'c> Payments<'c> {
    pub(crate) const fn new(client: &'c Client) -> Self {
        Self { client }
    }

    /// Creates a payment; await it to send it.
    ///
    /// It carries an idempotency key, a new one unless you give yours:
    ///
    /// ```no_run
    /// # use payments_client::{Client, CreatePayment, IdempotencyKey};
    /// # async fn create(client: Client, params: CreatePayment) -> Result<(), Box<dyn std::error::Error>> {
    /// let key = IdempotencyKey::new("order-1017")?;
    /// let payment = client.payments().create(params).idempotency_key(key).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn create(self, params: CreatePayment) -> CreatePaymentRequest<'c> {
        CreatePaymentRequest { client: self.client, params, key: None }
    }

    /// Reads a payment: the way to know that it is paid when no webhook came.
    ///
    /// # Errors
    /// [`Error::is_not_found`] for an id that this developer has not, in this environment.
    pub async fn retrieve(self, id: &PaymentId) -> Result<Payment> {
        self.client.send(self.client.request(Method::GET, &["payments", id.as_str()])).await
    }

    /// Reads a page of payments, newest first; await it to send it.
    ///
    /// ```no_run
    /// # use payments_client::{Client, Status};
    /// # async fn list(client: Client) -> Result<(), payments_client::Error> {
    /// let page = client.payments().list().status(Status::Completed).limit(50).await?;
    /// println!("{} of {}", page.items.len(), page.total);
    /// # Ok(())
    /// # }
    /// ```
    pub fn list(self) -> ListPayments<'c> {
        ListPayments { client: self.client, query: Vec::new() }
    }
}

/// A payment to be created.
#[derive(Debug)]
#[must_use = "nothing is sent until it is awaited"]
pub struct CreatePaymentRequest<'c> {
    client: &'c Client,
    params: CreatePayment,
    key: Option<IdempotencyKey>,
}

impl CreatePaymentRequest<'_> {
    /// Sends it under your own key.
    pub fn idempotency_key(mut self, key: IdempotencyKey) -> Self {
        self.key = Some(key);
        self
    }
}

impl<'c> IntoFuture for CreatePaymentRequest<'c> {
    type Output = Result<Payment>;
    type IntoFuture = Sending<'c, Payment>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { post(self.client, &["payments"], &self.params, self.key).await })
    }
}

/// Sends a body under an idempotency key.
pub(crate) async fn post<T: serde::de::DeserializeOwned>(
    client: &Client,
    segments: &[&str],
    body: &impl serde::Serialize,
    key: Option<IdempotencyKey>,
) -> Result<T> {
    let key = match key {
        Some(key) => key,
        None => IdempotencyKey::generate().map_err(|error| Kind::Build(error.to_string()))?,
    };
    let body = serde_json::to_vec(body).map_err(|error| Error::from(Kind::Build(error.to_string())))?;
    let request = client
        .request(Method::POST, segments)
        .header(header::CONTENT_TYPE, "application/json")
        .header("Idempotency-Key", key.as_str())
        .body(body);
    client.send(request).await
}

/// A page of payments to be read.
#[derive(Debug)]
#[must_use = "nothing is sent until it is awaited"]
pub struct ListPayments<'c> {
    client: &'c Client,
    query: Vec<(&'static str, String)>,
}

impl ListPayments<'_> {
    /// Only payments of this public status.
    pub fn status(self, status: Status) -> Self {
        self.with("status", status.to_string())
    }

    /// Which page, from 1.
    pub fn page(self, page: u32) -> Self {
        self.with("page", page.to_string())
    }

    /// How many payments a page has, 1 to 100; 20 unless said otherwise.
    pub fn limit(self, limit: u32) -> Self {
        self.with("limit", limit.to_string())
    }

    fn with(mut self, name: &'static str, value: String) -> Self {
        self.query.retain(|(known, _)| *known != name);
        self.query.push((name, value));
        self
    }
}

impl<'c> IntoFuture for ListPayments<'c> {
    type Output = Result<Page<Payment>>;
    type IntoFuture = Sending<'c, Page<Payment>>;

    fn into_future(self) -> Self::IntoFuture {
        let request = self.client.request(Method::GET, &["payments"]).query(&self.query);
        Box::pin(async move { self.client.send(request).await })
    }
}
