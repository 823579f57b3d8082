//! The commands about workspaces, their keys and their apps.

use clap::{ArgGroup, Args, Subcommand, builder::PossibleValuesParser};
use payments_core::{Amount, Currency, Environment, Timestamp};
use url::Url;

use super::values::{http_url, one_of, overlap, time};
use crate::{
    domain::{Colour, Edit, LogoUrl, Permission},
    gateway::registry,
    service::LimitsRequest,
};

#[derive(Debug, Subcommand)]
pub enum WorkspacesCommand {
    /// Create a workspace and print its id.
    Create {
        /// The merchant's name on the checkout page.
        #[arg(long, env = "PAYMENTS_NAME")]
        name: String,
    },
    /// List all workspaces: id, developer, created, name.
    List,
    /// Choose the ways to pay that a workspace's customers see, in this order. Prints them.
    Ways {
        /// The workspace's id or name.
        #[arg(long, env = "PAYMENTS_WORKSPACE", value_name = "W")]
        workspace: String,
        /// The ways. Without any, all that the server has.
        #[arg(value_parser = PossibleValuesParser::new(ways()))]
        ways: Vec<String>,
    },
    /// Set limits of a workspace, and print all. `none` removes one. Test and live payments count by themselves.
    Limits(LimitsArgs),
}

#[derive(Debug, Args)]
pub struct LimitsArgs {
    /// The workspace's id or name.
    workspace: String,
    /// Maximum amount of a payment, such as BDT=50000 or BDT=none; repeatable.
    #[arg(long, value_name = "CURRENCY=AMOUNT", value_parser = amount_edit)]
    payment_at_most: Vec<(Currency, String)>,
    /// Maximum amount of the payments that are created on a day in Dhaka and do not fail; repeatable. Payments from before the
    /// limit do not count.
    #[arg(long, value_name = "CURRENCY=AMOUNT", value_parser = amount_edit)]
    day_at_most: Vec<(Currency, String)>,
    /// How many payments may be created within a minute.
    #[arg(long, value_name = "N")]
    payments_a_minute: Option<Edit<u32>>,
    /// How many API keys may work.
    #[arg(long, value_name = "N")]
    keys: Option<Edit<u32>>,
    /// How many webhook endpoints each environment may have, if the server allows more.
    #[arg(long, value_name = "N")]
    endpoints: Option<Edit<u32>>,
}

impl LimitsArgs {
    pub(crate) fn request(self) -> LimitsRequest {
        let Self { workspace, payment_at_most, day_at_most, payments_a_minute, keys, endpoints } = self;
        let [payment_at_most, day_at_most] = [payment_at_most, day_at_most].map(|edits| edits.into_iter().collect());
        LimitsRequest { workspace, payment_at_most, day_at_most, payments_a_minute, keys, endpoints }
    }
}

/// Parses the change of a currency's amount.
fn amount_edit(text: &str) -> Result<(Currency, String), &'static str> {
    let parsed = || {
        let (currency, amount) = text.split_once('=')?;
        amount.parse::<Edit<Amount>>().ok()?;
        Some((currency.parse().ok()?, amount.to_owned()))
    };
    parsed().ok_or("must be a currency and an amount or none, such as BDT=50000")
}

/// The names of all ways to pay.
fn ways() -> impl Iterator<Item = &'static str> {
    registry().flat_map(|gateway| gateway.ways.iter().map(|way| way.name))
}

#[derive(Debug, Subcommand)]
pub enum KeysCommand {
    /// Create an API key and print it. It cannot be shown again; if it cannot be printed, it is revoked.
    Create {
        /// The workspace's id or name.
        #[arg(long, env = "PAYMENTS_WORKSPACE", value_name = "W")]
        workspace: String,
        /// `live` keys move real money, `test` keys move none.
        #[arg(long, env = "PAYMENTS_ENVIRONMENT", value_parser = one_of::<Environment>(["live", "test"]))]
        environment: Environment,
        /// The id of a developer app of the workspace; payments created with the key carry it as appId. The key may still read the
        /// payments of the whole workspace, unless it is --app-only.
        #[arg(long, env = "PAYMENTS_APP", value_name = "APP")]
        app: Option<String>,
        /// Let the key see and refund only the payments of its --app. It may have the scopes payments:read, payments:write and
        /// refunds:write. Without --scope it has all three.
        #[arg(long, env = "PAYMENTS_APP_ONLY", requires = "app")]
        app_only: bool,
        /// What the key is for, shown by `keys list`.
        #[arg(long, env = "PAYMENTS_KEY_NAME", value_name = "TEXT")]
        name: Option<String>,
        /// What the key may do, separated by commas: payments:read, payments:write, refunds:write, account:read, webhooks:read,
        /// webhooks:write, deliveries:resend, payouts:read, payouts:write, sandbox:write. Writing includes reading and resending.
        /// Without it, the key may do everything.
        #[arg(long = "scope", env = "PAYMENTS_SCOPE", value_delimiter = ',', value_name = "S")]
        scopes: Vec<Permission>,
        /// When the key stops working, such as 2027-03-01.
        #[arg(long = "expires", env = "PAYMENTS_EXPIRES", value_name = "TIME", value_parser = time)]
        expires_at: Option<Timestamp>,
    },
    /// List the keys of all workspaces: id, workspace, environment, last 4 characters, created, revoked, app (with `,only` if it
    /// is --app-only), scopes, expires, last used (to the minute), name.
    List,
    /// Revoke a key. Requests with it get 401 from then on.
    Revoke {
        /// The key's id, as `keys list` prints it, or the key itself.
        id: String,
    },
    /// Replace a key: create a new one, end the old one, print the new one. It cannot be shown again.
    Rotate {
        /// The old key's id, as `keys list` prints it.
        id: String,
        /// How long the old key still works, such as 24h or 90m, at most 7d; `keys list` shows when it expires. Without it, the
        /// old key is revoked at once.
        #[arg(long, env = "PAYMENTS_OVERLAP", value_name = "TIME", value_parser = overlap)]
        overlap: Option<u32>,
    },
}

#[derive(Debug, Subcommand)]
pub enum AppsCommand {
    /// Create a developer app and print its id.
    Create {
        /// The workspace's id or name.
        #[arg(long, env = "PAYMENTS_WORKSPACE", value_name = "W")]
        workspace: String,
        /// The app's name.
        #[arg(long, env = "PAYMENTS_NAME")]
        name: String,
        /// URL to which customers may return; repeatable.
        #[arg(long = "redirect-uri", env = "PAYMENTS_REDIRECT_URI", value_delimiter = ',', value_name = "U")]
        redirect_uris: Vec<String>,
        /// URL that receives the app's webhooks.
        #[arg(long, env = "PAYMENTS_WEBHOOK_URL", value_name = "U", value_parser = http_url)]
        webhook_url: Option<Url>,
        /// URL of the logo on the checkout page, which customers' browsers load: https, or http for localhost.
        #[arg(long, env = "PAYMENTS_LOGO_URL", value_name = "U")]
        logo_url: Option<LogoUrl>,
        /// Colour of the checkout page's button, such as '#0a7d4f'. Its text is black or white, whichever is legible.
        #[arg(long, env = "PAYMENTS_COLOUR", value_name = "#RRGGBB")]
        colour: Option<Colour>,
    },
    /// Change how an app looks on the checkout page, and print its id. `none` removes a logo or a colour.
    #[command(group = ArgGroup::new("change").args(["logo_url", "colour"]).required(true).multiple(true))]
    Update {
        /// The app's id, as `apps list` prints it.
        id: String,
        /// URL of the logo, or `none`.
        #[arg(long, env = "PAYMENTS_LOGO_URL", value_name = "U")]
        logo_url: Option<Edit<LogoUrl>>,
        /// Colour of the button, such as '#0a7d4f', or `none`.
        #[arg(long, env = "PAYMENTS_COLOUR", value_name = "#RRGGBB")]
        colour: Option<Edit<Colour>>,
    },
    /// List the apps of all workspaces: id, workspace, created, webhook URL, name. With --json also logo and colour.
    List,
}
