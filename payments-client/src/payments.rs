//! The payment methods.

use payments_core::{
    Amount, CreatePayment, CreateRefund, Currency, Page, Payment, PaymentId, PaymentPage, SimulatePayment, Status,
    Timeline, Timestamp,
};
use reqwest::Method;

use crate::{Client, Error, IdempotencyKey, IdempotentRequest, call::Call, request::Request};

/// The payment methods, for the key's developer and environment.
#[derive(Debug, Clone, Copy)]
pub struct Payments<'c> {
    client: &'c Client,
}

impl Client {
    /// The payment methods: create, retrieve, refund, list and reconcile.
    #[must_use]
    pub fn payments(&self) -> Payments<'_> {
        Payments { client: self }
    }
}

impl<'c> Payments<'c> {
    pub(crate) const fn client(self) -> &'c Client {
        self.client
    }

    /// Creates a payment.
    ///
    /// The request has an idempotency key, yours or a generated one. The server prunes a key after 24 hours; after
    /// that, the same key creates a second payment.
    ///
    /// ```no_run
    /// # use payments_client::{Client, CreatePayment};
    /// # async fn create(client: Client, params: CreatePayment) -> Result<(), payments_client::Error> {
    /// let payment = client.payments().create(params).idempotency_key("order-1017").await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn create(self, params: CreatePayment) -> IdempotentRequest<Payment> {
        IdempotentRequest::new(self.client, Call::new(Method::POST, "/payments", None).body(&params))
    }

    /// Retrieves a payment, for example to check that it is paid if no webhook arrived.
    ///
    /// ```no_run
    /// # use payments_client::{Client, PaymentId};
    /// # async fn retrieve(client: Client, id: PaymentId) -> Result<(), payments_client::Error> {
    /// let payment = client.payments().retrieve(&id).await?;
    /// println!("{}", payment.status);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// A payment keeps its status while it is disputed:
    ///
    /// ```no_run
    /// # use payments_client::{Client, DisputeStatus, PaymentId};
    /// # async fn retrieve(client: Client, id: PaymentId) -> Result<(), payments_client::Error> {
    /// let payment = client.payments().retrieve(&id).await?;
    /// for dispute in payment.disputes.iter().filter(|it| it.status == DisputeStatus::NeedsResponse) {
    ///     println!("send evidence of {} by {:?}", dispute.amount, dispute.evidence_due_by);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn retrieve(self, id: &PaymentId) -> Request<Payment> {
        Request::new(self.client, Call::new(Method::GET, "/payments/{}", Some(id.as_str())))
    }

    /// Retrieves a payment's history, oldest first: its moves with their causes, the gateway's answers, its refunds, and its
    /// events with their deliveries.
    ///
    /// ```no_run
    /// # use payments_client::{Client, PaymentId};
    /// # async fn where_is_the_money(client: Client, id: PaymentId) -> Result<(), payments_client::Error> {
    /// for entry in client.payments().timeline(&id).await?.items {
    ///     println!("{} {}", entry.created_at, entry.description);
    ///     for delivery in entry.event.into_iter().flat_map(|event| event.deliveries) {
    ///         println!("  sent to {}: {}", delivery.webhook_id, delivery.status.as_str());
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn timeline(self, id: &PaymentId) -> Request<Timeline> {
        Request::new(self.client, Call::new(Method::GET, "/payments/{}/timeline", Some(id.as_str())))
    }

    /// Refunds a paid live payment, or the rest of it after [parts](Self::refund_part). Test payments cannot be refunded.
    ///
    /// ```no_run
    /// # use payments_client::{Client, PaymentId};
    /// # async fn refund(client: Client, id: PaymentId) -> Result<(), payments_client::Error> {
    /// let payment = client.payments().refund(&id, Some("The cup was broken")).await?;
    /// if payment.refund().is_some_and(|refund| refund.requires_manual_settlement) {
    ///     println!("the operator sends the money by hand");
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn refund(self, id: &PaymentId, reason: Option<&str>) -> IdempotentRequest<Payment> {
        let rest = CreateRefund::rest();
        self.refund_with(id, &reason.map_or(rest.clone(), |reason| rest.reason(reason)))
    }

    /// Refunds a part of a paid live payment. The payment stays completed until its last part is refunded.
    ///
    /// Each part needs its own idempotency key, such as the number of the returned item: the same key again returns the first
    /// answer, and another key refunds another part. A refund of more than the rest is refused with status 409.
    ///
    /// ```no_run
    /// # use payments_client::{Amount, Client, PaymentId};
    /// # async fn refund(client: Client, id: PaymentId) -> Result<(), payments_client::Error> {
    /// let cup = Amount::from_major(250);
    /// let payment = client.payments().refund_part(&id, cup, Some("The cup was broken"), "return-1017-cup").await?;
    /// println!("{} of {} is refunded", payment.amount_refunded(), payment.amount);
    /// # Ok(())
    /// # }
    /// ```
    pub fn refund_part<K>(
        self,
        id: &PaymentId,
        amount: Amount,
        reason: Option<&str>,
        key: K,
    ) -> IdempotentRequest<Payment>
    where
        K: TryInto<IdempotencyKey>,
        Error: From<K::Error>,
    {
        let part = CreateRefund::part(amount);
        self.refund_with(id, &reason.map_or(part.clone(), |reason| part.reason(reason))).idempotency_key(key)
    }

    /// Lets something happen to a paid test payment: what a bank, a customer or a person in a gateway's dashboard does to a live
    /// one. Its events are sent.
    ///
    /// ```no_run
    /// # use payments_client::{Client, PaymentId, SimulatePayment, SimulatedEvent};
    /// # async fn lose_a_dispute(client: Client, id: PaymentId) -> Result<(), payments_client::Error> {
    /// for event in [SimulatedEvent::Disputed, SimulatedEvent::DisputeLost] {
    ///     client.payments().simulate(&id, &SimulatePayment::event(event)).await?;
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn simulate(self, id: &PaymentId, params: &SimulatePayment) -> IdempotentRequest<Payment> {
        let call = Call::new(Method::POST, "/payments/{}/simulate", Some(id.as_str()));
        IdempotentRequest::new(self.client, call.body(params))
    }

    fn refund_with(self, id: &PaymentId, params: &CreateRefund) -> IdempotentRequest<Payment> {
        let call = Call::new(Method::POST, "/payments/{}/refund", Some(id.as_str()));
        IdempotentRequest::new(self.client, call.body(params))
    }

    /// Lists a page of payments, newest first.
    ///
    /// ```no_run
    /// # use payments_client::{Client, Status};
    /// # async fn list(client: Client) -> Result<(), payments_client::Error> {
    /// let page = client.payments().list().status(Status::Completed).limit(50).await?;
    /// println!("{} of {:?}", page.items.len(), page.total);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// With any filter but the status, the page has no `total`. One request examines at most 1,000 payments, so read on while
    /// [`goes_on`](PaymentPage::goes_on), or use [`stream`](Request::stream), which does that:
    ///
    /// ```no_run
    /// use futures_util::TryStreamExt;
    /// # use payments_client::{Client, Payment};
    /// # async fn find(client: Client) -> Result<(), payments_client::Error> {
    /// let of_order = client.payments().list().merchant_transaction_id("order-1017");
    /// let of_customer = client.payments().list().customer_phone("+880 1712-345678");
    /// let order: Vec<Payment> = of_order.stream().try_collect().await?;
    /// let customer: Vec<Payment> = of_customer.stream().try_collect().await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn list(self) -> Request<PaymentPage<Payment>> {
        Request::new(self.client, Call::new(Method::GET, "/payments", None))
    }
}

impl Request<PaymentPage<Payment>> {
    /// Filters by public status.
    pub fn status(self, status: Status) -> Self {
        self.query("status", status.to_string())
    }

    /// Only payments in a currency.
    pub fn currency(self, currency: Currency) -> Self {
        self.query("currency", currency.to_string())
    }

    /// Only payments that were created at this time or later.
    pub fn created_after(self, time: Timestamp) -> Self {
        self.query("createdAfter", time.to_string())
    }

    /// Only payments that were created before this time.
    pub fn created_before(self, time: Timestamp) -> Self {
        self.query("createdBefore", time.to_string())
    }

    /// Only payments with this reference, such as an order number.
    pub fn merchant_transaction_id(self, reference: impl Into<String>) -> Self {
        self.query("merchantTransactionId", reference.into())
    }

    /// Only payments whose customer has this e-mail address, in any case.
    pub fn customer_email(self, address: impl Into<String>) -> Self {
        self.query("customerEmail", address.into())
    }

    /// Only payments whose customer has this phone number. A Bangladeshi number may have any of its forms; of other numbers,
    /// spaces and separators are ignored.
    pub fn customer_phone(self, number: impl Into<String>) -> Self {
        self.query("customerPhone", number.into())
    }

    /// Only payments with this text, whole, as their id, the gateway's transaction id, the merchant's reference, or the
    /// customer's e-mail address or phone number. The first of these that any payment has counts alone.
    pub fn search(self, text: impl Into<String>) -> Self {
        self.query("search", text.into())
    }

    /// Only payments after this one in the list, which are older. Pass the `next` of an earlier part.
    pub fn after(self, payment: &PaymentId) -> Self {
        self.query("after", payment.to_string())
    }

    /// Sets the page number, from 1. Do not combine it with [`after`](Self::after) or with any filter but the status.
    pub fn page(self, page: u32) -> Self {
        self.query("page", page.to_string())
    }

    /// Sets the number of items per page, 1 to 100. Default: 20.
    pub fn limit(self, limit: u32) -> Self {
        self.query("limit", limit.to_string())
    }
}

impl<T: serde::de::DeserializeOwned + Send + 'static> Request<Page<T>> {
    /// Sets the page number, from 1.
    pub fn page(self, page: u32) -> Self {
        self.query("page", page.to_string())
    }

    /// Sets the number of items per page, 1 to 100. Default: 20.
    pub fn limit(self, limit: u32) -> Self {
        self.query("limit", limit.to_string())
    }
}
