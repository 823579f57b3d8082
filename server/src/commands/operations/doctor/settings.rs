//! Settings that are valid but may not be what the operator intends.

use std::{collections::BTreeSet, env};

use clap::{Arg, Command, CommandFactory};

use super::diagnosis::{Diagnosis, failed, in_order, warning};
use crate::{
    cli::{Cli, ServeArgs},
    gateway::{self, Credentials, Declaration, registry},
    nearest::did_you_mean,
    process::reach::Reach,
};

/// Variables that are neither flags nor credentials.
const OTHER_VARIABLES: [&str; 3] = ["PAYMENTS_LOG", "PAYMENTS_API_KEY", "PAYMENTS_WEBHOOK_SECRET"];

/// Checks the settings. An invalid setting has already stopped the command.
pub(super) fn check(args: &ServeArgs, credentials: &Credentials) -> Vec<Diagnosis> {
    let gateways = credentials.modes();
    let base_url = args.base_url.clone().unwrap_or_else(|| format!("http://{}", args.listen));
    let is_public = Reach::of(&base_url, args.listen) == Reach::Public;
    let of_gateways = if gateways.is_empty() { "no gateways, so no live payments".into() } else { gateways.join("; ") };
    let mut diagnoses = vec![in_order(format!("valid; {base_url}; {of_gateways}"))];
    let mut warn = |text: String| diagnoses.push(warning(text));
    if is_public && base_url.starts_with("http://") {
        warn(format!(
            "customers and API keys reach {base_url} unencrypted; put a TLS proxy in front of the server, and set --base-url to \
             its https address"
        ));
    }
    if is_public && args.sandbox {
        warn("--sandbox lets everyone who reaches the server create test payments".into());
    }
    if let Some(mode) = gateways.iter().find(|mode| is_public && !mode.ends_with(": live")) {
        warn(format!("live payments move no real money: {mode}; set the credentials of the live account"));
    }
    if let Some(error) = args.sandbox_directory().err().filter(|_| is_public && args.sandbox) {
        diagnoses.push(failed(error.to_string()));
    }
    let mut warn = |text: String| diagnoses.push(warning(text));
    let known = variables();
    for (name, _) in env::vars_os() {
        let Some(name) = name.to_str().filter(|name| name.starts_with("PAYMENTS_") && !known.contains(*name)) else {
            continue;
        };
        let meant = did_you_mean(name, known.iter().map(String::as_str));
        warn(format!("the variable {name} is set, and payments-server knows no such variable{meant}"));
    }
    diagnoses
}

fn variables() -> BTreeSet<String> {
    fn of(command: &Command, known: &mut BTreeSet<String>) {
        known.extend(command.get_arguments().filter_map(Arg::get_env).map(|name| name.to_string_lossy().into_owned()));
        command.get_subcommands().for_each(|command| of(command, known));
    }
    let of_gateway = |it: &Declaration| {
        it.settings.iter().map(|setting| gateway::variable(it.name.as_str(), setting.key)).collect::<Vec<_>>()
    };
    let mut known: BTreeSet<_> = registry().flat_map(of_gateway).collect();
    known.extend(OTHER_VARIABLES.map(str::to_owned));
    of(&Cli::command(), &mut known);
    known
}
