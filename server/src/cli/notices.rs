//! The settings of `serve` for notices, and the commands about them.

use std::time::Duration;

use clap::{Args, Subcommand};
use secrecy::SecretString;

use super::CommandError;
use crate::{
    delivery::TargetPolicy,
    service::{NoticeSettings, NoticesWebhook},
};

#[derive(Debug, Args)]
pub struct NoticeArgs {
    /// URL that gets an event when a notice opens or closes, such as a failing endpoint or a late backup. The rules for the
    /// addresses of webhooks apply.
    #[arg(long, env = "PAYMENTS_NOTICES_WEBHOOK", value_name = "URL")]
    pub notices_webhook: Option<String>,
    /// Secret that signs these events, as an endpoint's secret does. It belongs in the variable or the file.
    #[arg(long, env = "PAYMENTS_NOTICES_SECRET", hide_env_values = true, value_name = "SECRET")]
    pub notices_secret: Option<SecretString>,
    /// Interval, in seconds, at which the server looks for notices.
    #[arg(long, env = "PAYMENTS_NOTICES_EVERY", default_value_t = 30, value_name = "SECONDS",
        value_parser = clap::value_parser!(u32).range(1..))]
    pub notices_every: u32,
}

impl NoticeArgs {
    pub fn settings(&self, targets: &TargetPolicy) -> Result<NoticeSettings, CommandError> {
        let webhook = match (&self.notices_webhook, &self.notices_secret) {
            (Some(url), Some(secret)) => Some(NoticesWebhook::new(url, secret, targets)?),
            (None, None) => None,
            _ => return Err("--notices-webhook and PAYMENTS_NOTICES_SECRET (notices-secret) need each other".into()),
        };
        Ok(NoticeSettings { every: Duration::from_secs(self.notices_every.into()), webhook, backups: None })
    }
}

#[derive(Debug, Subcommand)]
pub enum NoticesCommand {
    /// List the open notices: what somebody must look at.
    List,
}
