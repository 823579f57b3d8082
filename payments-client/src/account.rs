//! The account methods.

use payments_core::{Account, Balances, DeveloperApp};
use reqwest::Method;

use crate::{Client, call::Call, request::Request};

/// The account of the key's developer. Its totals are those of the key's environment.
#[derive(Debug, Clone, Copy)]
pub struct AccountResource<'c> {
    client: &'c Client,
}

impl Client {
    /// The account methods: workspace, balances, volume and apps.
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
}
