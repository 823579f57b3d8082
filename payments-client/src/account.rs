//! The account methods.

use payments_core::{
    Account, Activity, ApiKey, AuditId, AuditPage, Balances, Currency, DeveloperApp, Notice, Timestamp, Transaction,
    TransactionId, TransactionPage,
};
use reqwest::Method;

use crate::{
    Client, Result,
    call::Call,
    parts::{Part, stream_parts},
    platform::BoxStream,
    request::Request,
};

/// The account of the key's developer, with totals of the key's environment.
#[derive(Debug, Clone, Copy)]
pub struct AccountResource<'c> {
    client: &'c Client,
}

impl Client {
    /// The account methods: workspace, balances, volume, transactions, apps and keys.
    #[must_use]
    pub fn account(&self) -> AccountResource<'_> {
        AccountResource { client: self }
    }
}

impl AccountResource<'_> {
    /// Retrieves the workspace, the balances and the lifetime volume.
    ///
    /// ```no_run
    /// # async fn read(client: payments_client::Client) -> Result<(), payments_client::Error> {
    /// let account = client.account().retrieve().await?;
    /// println!("{}: {} payments", account.workspace.name, account.volume.total_payments);
    /// # Ok(())
    /// # }
    /// ```
    pub fn retrieve(self) -> Request<Account> {
        Request::new(self.client, Call::new(Method::GET, "/account", None))
    }

    /// Retrieves the balances.
    ///
    /// ```no_run
    /// # async fn read(client: payments_client::Client) -> Result<(), payments_client::Error> {
    /// println!("৳{}", client.account().balance().await?.bdt_balance);
    /// # Ok(())
    /// # }
    /// ```
    pub fn balance(self) -> Request<Balances> {
        Request::new(self.client, Call::new(Method::GET, "/account/balance", None))
    }

    /// Retrieves how many payments were created on each of the last 30 days, how many of these were paid, and their volume.
    ///
    /// ```no_run
    /// # async fn read(client: payments_client::Client) -> Result<(), payments_client::Error> {
    /// for day in client.account().activity().days(7).await?.days {
    ///     println!("{}: {} of {} paid, ৳{}", day.date, day.bdt.paid, day.bdt.created, day.bdt.volume);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn activity(self) -> Request<Activity> {
        Request::new(self.client, Call::new(Method::GET, "/account/activity", None))
    }

    /// Lists transactions, newest first: each payment, fee, refund and returned fee with the balance after it.
    ///
    /// ```no_run
    /// # use payments_client::{Client, Currency};
    /// # async fn read(client: Client) -> Result<(), payments_client::Error> {
    /// let from = "2026-03-01T00:00:00Z".parse().expect("a valid time");
    /// let page = client.account().transactions().currency(Currency::Bdt).created_after(from).limit(100).await?;
    /// for it in page.items {
    ///     println!("{} {} ৳{} -> ৳{}", it.created_at, it.kind, it.amount, it.balance);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn transactions(self) -> Request<TransactionPage> {
        Request::new(self.client, Call::new(Method::GET, "/account/transactions", None))
    }

    /// Streams all transactions, newest first, or all that were posted before one. Transactions posted meanwhile do not
    /// matter: no transaction comes twice, and none is left out. The stream sends requests only as transactions are polled,
    /// and ends after an error.
    ///
    /// ```no_run
    /// use futures_util::TryStreamExt;
    /// # use payments_client::{Client, TransactionKind};
    /// # async fn fees(client: Client) -> Result<(), payments_client::Error> {
    /// let mut transactions = client.account().stream_transactions(None);
    /// let mut fees_minor = 0;
    /// while let Some(transaction) = transactions.try_next().await? {
    ///     if transaction.kind == TransactionKind::Fee {
    ///         fees_minor -= transaction.amount.as_minor();
    ///     }
    /// }
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn stream_transactions(self, after: Option<TransactionId>) -> BoxStream<'static, Result<Transaction>> {
        let client = self.client.clone();
        stream_parts(after, move |after| {
            let request = client.account().transactions().limit(100);
            let request = if let Some(after) = after { request.after(after) } else { request };
            Box::pin(async move {
                let TransactionPage { items, has_more, next, .. } = request.await?;
                Ok(Part { items, has_more, next })
            })
        })
    }

    /// Lists all developer apps.
    ///
    /// ```no_run
    /// # async fn read(client: payments_client::Client) -> Result<(), payments_client::Error> {
    /// for app in client.account().apps().await? {
    ///     println!("{}", app.name);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn apps(self) -> Request<Vec<DeveloperApp>> {
        Request::new(self.client, Call::new(Method::GET, "/account/apps", None))
    }

    /// Lists the open notices: what the merchant must look at, such as a disabled webhook endpoint.
    ///
    /// ```no_run
    /// # async fn read(client: payments_client::Client) -> Result<(), payments_client::Error> {
    /// for notice in client.account().notices().await? {
    ///     println!("{} {} since {}", notice.kind, notice.subject, notice.since);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn notices(self) -> Request<Vec<Notice>> {
        Request::new(self.client, Call::new(Method::GET, "/account/notices", None))
    }

    /// Lists the newest 100 API keys of the workspace in the key's environment, newest first, with their last use.
    ///
    /// ```no_run
    /// # async fn read(client: payments_client::Client) -> Result<(), payments_client::Error> {
    /// for key in client.account().keys().await? {
    ///     println!("…{} was last used {:?}", key.last4, key.last_used_at);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn keys(self) -> Request<Vec<ApiKey>> {
        Request::new(self.client, Call::new(Method::GET, "/account/keys", None))
    }

    /// Lists the changes of the workspace's records, newest first: who made them, from where, and what they changed.
    ///
    /// ```no_run
    /// # async fn read(client: payments_client::Client) -> Result<(), payments_client::Error> {
    /// for entry in client.account().audit().limit(100).await?.items {
    ///     println!("{} {} by {}", entry.created_at, entry.action, entry.actor.id);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn audit(self) -> Request<AuditPage> {
        Request::new(self.client, Call::new(Method::GET, "/account/audit", None))
    }
}

impl Request<AuditPage> {
    /// Only entries that are older than this one. Pass the `next` of an earlier part.
    pub fn after(self, entry: &AuditId) -> Self {
        self.query("after", entry.to_string())
    }

    /// The maximum number of items: 1 to 100, default 20.
    pub fn limit(self, limit: u8) -> Self {
        self.query("limit", limit.to_string())
    }
}

impl Request<Activity> {
    /// How many days, including today: 1 to 366.
    pub fn days(self, days: u16) -> Self {
        self.query("days", days.to_string())
    }
}

impl Request<TransactionPage> {
    /// Only transactions posted before this one. Pass the `next` of an earlier part.
    pub fn after(self, transaction: &TransactionId) -> Self {
        self.query("after", transaction.to_string())
    }

    /// Only transactions in a currency.
    pub fn currency(self, currency: Currency) -> Self {
        self.query("currency", currency.code().to_owned())
    }

    /// Only transactions posted at this time or later.
    pub fn created_after(self, time: Timestamp) -> Self {
        self.query("createdAfter", time.to_string())
    }

    /// Only transactions posted before this time.
    pub fn created_before(self, time: Timestamp) -> Self {
        self.query("createdBefore", time.to_string())
    }

    /// At most `limit` transactions, 1 to 100. Default: 20.
    pub fn limit(self, limit: u8) -> Self {
        self.query("limit", limit.to_string())
    }
}
