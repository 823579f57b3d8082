//! The settings of `serve` for people who sign in, and the commands about their sessions.

use std::{fs, path::PathBuf};

use clap::{Args, Subcommand};
use payments_core::{Amount, Currency};
use url::Url;

use super::{
    CommandError,
    payouts::{amount, each_once},
    values::is_this_machine,
};
use crate::{
    domain::Grant,
    http::{GroupGrant, PeopleSettings},
};

#[derive(Debug, Args)]
pub struct PeopleArgs {
    /// OpenID Connect provider at which people sign in to the console, by its issuer's URL. Register BASE-URL/dashboard/callback
    /// there as the redirect URI.
    #[arg(long, env = "PAYMENTS_OIDC_ISSUER", value_name = "URL", value_parser = issuer)]
    pub oidc_issuer: Option<String>,
    /// This server's client id at the provider.
    #[arg(long, env = "PAYMENTS_OIDC_CLIENT_ID", value_name = "ID")]
    pub oidc_client_id: Option<String>,
    /// File that holds the client's secret at the provider.
    #[arg(long, env = "PAYMENTS_OIDC_CLIENT_SECRET_FILE", value_name = "FILE")]
    pub oidc_client_secret_file: Option<PathBuf>,
    /// Claim of the ID token that lists a person's groups.
    #[arg(long, env = "PAYMENTS_OIDC_GROUP_CLAIM", default_value = "groups", value_name = "CLAIM")]
    pub oidc_group_claim: String,
    /// Role of a group, such as helpdesk=support, for all workspaces, or helpdesk=support@ws_1 for one; repeatable. The roles are
    /// viewer, support, finance and admin. Nobody else can sign in.
    #[arg(long, env = "PAYMENTS_OIDC_ROLES", value_delimiter = ',', value_name = "GROUP=ROLE[@WORKSPACE]",
        value_parser = group)]
    pub oidc_roles: Vec<GroupGrant>,
    /// How much of a payment the role support may refund, such as BDT=2000; repeatable. Default: nothing.
    #[arg(long = "support-refund-cap", env = "PAYMENTS_SUPPORT_REFUND_CAP", value_delimiter = ',',
        value_name = "CURRENCY=AMOUNT", value_parser = amount)]
    pub support_refund_caps: Vec<(Currency, Amount)>,
}

impl PeopleArgs {
    /// The settings; `None` if people do not sign in. `base_url` is the server's own.
    pub fn settings(&self, base_url: &str) -> Result<Option<PeopleSettings>, CommandError> {
        let Some(issuer) = &self.oidc_issuer else {
            return match self.oidc_client_id.is_some() || !self.oidc_roles.is_empty() {
                true => Err("--oidc-client-id and --oidc-roles need --oidc-issuer".into()),
                false => Ok(None),
            };
        };
        let (Some(client_id), Some(file)) = (&self.oidc_client_id, &self.oidc_client_secret_file) else {
            return Err("--oidc-issuer needs --oidc-client-id and --oidc-client-secret-file".into());
        };
        if self.oidc_roles.is_empty() {
            return Err("--oidc-issuer needs --oidc-roles; without a role nobody can sign in".into());
        }
        if !Url::parse(base_url).is_ok_and(|url| url.scheme() == "https" || is_this_machine(&url)) {
            return Err("people sign in over https alone; set --base-url to the server's https address".into());
        }
        let name = file.display();
        let secret = fs::read_to_string(file)
            .map_err(|error| format!("the file {name} (--oidc-client-secret-file) cannot be read: {error}"))?;
        let secret = secret.trim();
        if secret.is_empty() {
            return Err(format!("the file {name} (--oidc-client-secret-file) is empty").into());
        }
        Ok(Some(PeopleSettings {
            issuer: issuer.clone(),
            client_id: client_id.clone(),
            client_secret: secret.into(),
            group_claim: self.oidc_group_claim.clone(),
            groups: self.oidc_roles.clone(),
            refund_caps: each_once("--support-refund-cap", &self.support_refund_caps)?,
            base_url: base_url.to_owned(),
        }))
    }
}

fn issuer(text: &str) -> Result<String, &'static str> {
    let url = Url::parse(text).ok().filter(|url| url.query().is_none() && url.fragment().is_none());
    // The provider writes exactly this text into its tokens.
    url.filter(|url| url.scheme() == "https" || (url.scheme() == "http" && is_this_machine(url)))
        .map(|_| text.to_owned())
        .ok_or("must be an absolute https URL without a query; http is allowed only for this machine's own addresses")
}

fn group(text: &str) -> Result<GroupGrant, &'static str> {
    let parsed = || {
        let (group, role) = text.rsplit_once('=').filter(|(group, _)| !group.is_empty())?;
        let (role, workspace) = match role.split_once('@') {
            Some((role, workspace)) => (role, Some(workspace.parse().ok()?)),
            None => (role, None),
        };
        Some(GroupGrant { group: group.to_owned(), grant: Grant { role: role.parse().ok()?, workspace } })
    };
    parsed().ok_or(
        "must be a group and viewer, support, finance or admin, such as helpdesk=support or helpdesk=support@ws_1",
    )
}

#[derive(Debug, Subcommand)]
pub enum SessionsCommand {
    /// List the sessions that have not expired: session, person, roles, created, last seen (to the minute), expires, revoked,
    /// name.
    List,
    /// Revoke a session, or all sessions of a person. Requests with it get 401 from then on. Prints the revoked sessions.
    Revoke {
        /// The session's id, as `sessions list` prints it.
        #[arg(required_unless_present = "person", conflicts_with = "person")]
        id: Option<String>,
        /// The person's e-mail address.
        #[arg(long, env = "PAYMENTS_PERSON", value_name = "EMAIL")]
        person: Option<String>,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_of_a_group_is_for_one_workspace_or_for_all() {
        for (text, shown) in [
            ("helpdesk=support", Some("helpdesk support -")),
            ("a=b=viewer@ws_1", Some("a=b viewer ws_1")),
            ("helpdesk=owner", None),
            ("=viewer", None),
            ("helpdesk", None),
            ("helpdesk=viewer@", None),
            ("helpdesk=viewer@dev_1", None),
        ] {
            let shown_as = |it: GroupGrant| {
                let workspace = it.grant.workspace.map_or("-".to_owned(), |id| id.to_string());
                format!("{} {} {workspace}", it.group, it.grant.role)
            };
            assert_eq!(group(text).ok().map(shown_as).as_deref(), shown, "{text}");
        }
    }

    #[test]
    fn an_issuer_is_reached_by_https_unless_it_is_on_this_machine() {
        for (text, is_valid) in [
            ("https://id.example/realms/shop", true),
            ("http://127.0.0.1:9", true),
            ("http://id.example", false),
            ("https://id.example?x=1", false),
            ("id.example", false),
        ] {
            assert_eq!(issuer(text).is_ok(), is_valid, "{text}");
        }
    }
}
