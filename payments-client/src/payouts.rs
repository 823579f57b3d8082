//! The payout methods.

use payments_core::{
    CreatePayout, Payout, PayoutAccount, PayoutId, PayoutPage, SetDestination, SetPayoutSchedule, TransactionPage,
};
use reqwest::Method;

use crate::{
    Client, IdempotentRequest, Result,
    call::Call,
    parts::{Part, stream_parts},
    platform::BoxStream,
    request::Request,
};

/// The payouts of the key's developer and environment.
#[derive(Debug, Clone, Copy)]
pub struct Payouts<'c> {
    client: &'c Client,
}

impl Client {
    /// The payout methods: request, retrieve, list and cancel, and where and when payouts go.
    #[must_use]
    pub fn payouts(&self) -> Payouts<'_> {
        Payouts { client: self }
    }
}

impl Payouts<'_> {
    /// Requests a payout of an amount, or of all that is available. It goes to the destination that is set for its currency.
    ///
    /// The request has an idempotency key, yours or a generated one.
    ///
    /// ```no_run
    /// # use payments_client::{Client, CreatePayout, Currency};
    /// # async fn pay_out(client: Client) -> Result<(), payments_client::Error> {
    /// let payout = client.payouts().create(CreatePayout::all(Currency::Bdt)).idempotency_key("payout-17").await?;
    /// println!("{} of {} {}", payout.id, payout.amount, payout.currency);
    /// # Ok(())
    /// # }
    /// ```
    pub fn create(self, params: CreatePayout) -> IdempotentRequest<Payout> {
        IdempotentRequest::new(self.client, Call::new(Method::POST, "/payouts", None).body(&params))
    }

    /// Retrieves a payout.
    ///
    /// ```no_run
    /// # use payments_client::{Client, PayoutId, PayoutStatus};
    /// # async fn retrieve(client: Client, id: PayoutId) -> Result<(), payments_client::Error> {
    /// let payout = client.payouts().retrieve(&id).await?;
    /// if payout.status == PayoutStatus::Paid {
    ///     println!("the bank's reference is {:?}", payout.reference);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn retrieve(self, id: &PayoutId) -> Request<Payout> {
        Request::new(self.client, Call::new(Method::GET, "/payouts/{}", Some(id.as_str())))
    }

    /// Lists payouts, newest first.
    ///
    /// ```no_run
    /// # async fn list(client: payments_client::Client) -> Result<(), payments_client::Error> {
    /// for payout in client.payouts().list().limit(100).await?.items {
    ///     println!("{} {} {}", payout.created_at, payout.amount, payout.status);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn list(self) -> Request<PayoutPage> {
        Request::new(self.client, Call::new(Method::GET, "/payouts", None))
    }

    /// Streams all payouts, newest first, or all that were requested before one. The stream sends requests only as payouts are
    /// polled, and ends after an error.
    #[must_use]
    pub fn stream(self, after: Option<PayoutId>) -> BoxStream<'static, Result<Payout>> {
        let client = self.client.clone();
        stream_parts(after, move |after| {
            let request = client.payouts().list().limit(100);
            let request = if let Some(after) = after { request.after(after) } else { request };
            Box::pin(async move {
                let PayoutPage { items, has_more, next, .. } = request.await?;
                Ok(Part { items, has_more, next })
            })
        })
    }

    /// Cancels a payout that is not sent yet.
    ///
    /// ```no_run
    /// # use payments_client::{Client, PayoutId};
    /// # async fn cancel(client: Client, id: PayoutId) -> Result<(), payments_client::Error> {
    /// client.payouts().cancel(&id).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn cancel(self, id: &PayoutId) -> Request<Payout> {
        let call = Call::new(Method::POST, "/payouts/{}/cancel", Some(id.as_str()));
        Request::new(self.client, call.repeatable())
    }

    /// Lists what a payout pays, newest first: its own transaction, and all in its currency since the last payout that was paid.
    ///
    /// ```no_run
    /// # use payments_client::{Client, PayoutId};
    /// # async fn list(client: Client, id: PayoutId) -> Result<(), payments_client::Error> {
    /// for it in client.payouts().transactions(&id).limit(100).await?.items {
    ///     println!("{} {} ৳{} -> ৳{}", it.created_at, it.kind, it.amount, it.balance);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn transactions(self, id: &PayoutId) -> Request<TransactionPage> {
        Request::new(self.client, Call::new(Method::GET, "/payouts/{}/transactions", Some(id.as_str())))
    }

    /// Lists where the payouts in each currency go, and when.
    ///
    /// ```no_run
    /// # async fn list(client: payments_client::Client) -> Result<(), payments_client::Error> {
    /// for it in client.payouts().destinations().await? {
    ///     println!("{}: {} …{}", it.currency, it.destination.holder, it.destination.last4);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn destinations(self) -> Request<Vec<PayoutAccount>> {
        Request::new(self.client, Call::new(Method::GET, "/payouts/destinations", None))
    }

    /// Sets where the payouts in a currency go. Money goes there from 24 hours later on.
    ///
    /// ```no_run
    /// # use payments_client::{BankAccount, Client, Currency, SetDestination};
    /// # async fn set(client: Client) -> Result<(), payments_client::Error> {
    /// let account = BankAccount {
    ///     holder: "Karim Stores".to_owned(),
    ///     bank: "010271234".to_owned(),
    ///     number: "1234567890123".to_owned(),
    /// };
    /// client.payouts().set_destination(&SetDestination::bank_account(Currency::Bdt, account)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_destination(self, params: &SetDestination) -> Request<PayoutAccount> {
        let call = Call::new(Method::POST, "/payouts/destinations", None).repeatable();
        Request::new(self.client, call.body(params))
    }

    /// Sets when payouts in a currency are requested by themselves.
    ///
    /// ```no_run
    /// # use payments_client::{Client, Currency, PayoutInterval, SetPayoutSchedule};
    /// # async fn set(client: Client) -> Result<(), payments_client::Error> {
    /// client.payouts().set_schedule(&SetPayoutSchedule::new(Currency::Bdt, PayoutInterval::Weekly)).await?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn set_schedule(self, params: &SetPayoutSchedule) -> Request<PayoutAccount> {
        let call = Call::new(Method::POST, "/payouts/schedules", None).repeatable();
        Request::new(self.client, call.body(params))
    }
}

impl Request<PayoutPage> {
    /// Only payouts that were requested before this one. Pass the `next` of an earlier part.
    pub fn after(self, payout: &PayoutId) -> Self {
        self.query("after", payout.to_string())
    }

    /// The maximum number of items: 1 to 100, default 20.
    pub fn limit(self, limit: u8) -> Self {
        self.query("limit", limit.to_string())
    }
}
