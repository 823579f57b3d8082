//! The configuration. In order of precedence: command line, environment, configuration file, defaults.
//!
//! clap implements this order except for the file, so the file's flags replace clap's defaults. Credentials are not flags,
//! because other users can read command lines.

mod error;
mod file;

use std::{env, ffi::OsString};

use clap::{ArgMatches, Command, CommandFactory, FromArgMatches, error::ErrorKind, parser::ValueSource};

use crate::{
    cli::{self, Cli, CommandError},
    config::{error::in_variable, file::ConfigFile},
    gateway::{Credentials, GatewayProxy},
    store::postgres::Target,
};

#[derive(Debug)]
pub struct Config {
    pub command: cli::Command,
    pub credentials: Credentials,
}

impl Config {
    /// Reads the arguments, the environment, and the file that `--config` names. An invalid flag and
    /// `--help` return clap's own error.
    pub fn read(args: impl IntoIterator<Item = OsString>) -> Result<Self, CommandError> {
        let args: Vec<OsString> = args.into_iter().collect();
        refuse_password_in(&args)?;
        let given = parse(Cli::command(), &args, &ConfigFile::default())?;
        let (mut command, mut file) = (command_of(&given)?, ConfigFile::default());
        if let Some(path) = command.data().and_then(|data| data.config.as_deref()) {
            file = ConfigFile::read(path, &Cli::command())?;
            if is_given(&given, "data_dir") {
                // Otherwise the file's database would take precedence over the operator's directory.
                file.forget_database();
            }
            command = command_of(&parse(file.as_defaults(Cli::command()), &args, &file)?)?;
        }
        if command.serve_args().is_none() {
            return Ok(Self { command, credentials: Credentials::default() });
        }
        let in_environment = |variable: &str| env::var(variable).ok().filter(|value| !value.is_empty());
        let credentials = Credentials::read(|variable| {
            in_environment(variable).map(Into::into).or_else(|| file.credential(variable))
        });
        let credentials = credentials.map_err(|error| match file.position_of(&error.variable) {
            Some(position) if in_environment(&error.variable).is_none() => format!("{position} {}", error.what),
            _ => error.to_string(),
        })?;
        Ok(Self { command, credentials })
    }
}

/// The flags that take a secret, and their variables.
const SECRET_FLAGS: [(&str, &str); 2] =
    [("payout-key", "PAYMENTS_PAYOUT_KEY"), ("notices-secret", "PAYMENTS_NOTICES_SECRET")];

/// The flags that take a database's URL, their variables, and the flags that name a file with its password.
const DATABASE_FLAGS: [[&str; 3]; 3] = [
    ["--database-url", "PAYMENTS_DATABASE_URL", "--database-password-file"],
    ["--from", "PAYMENTS_FROM", "--from-password-file"],
    ["--to", "PAYMENTS_TO", "--to-password-file"],
];

/// Refuses arguments that contain a URL with a password: other users can read it there.
fn refuse_password_in(args: &[OsString]) -> Result<(), CommandError> {
    let refuse = |name: &str, variable: &str, has_password: fn(&str) -> bool, or_else: &str| {
        let urls = args.iter().zip(args.iter().skip(1)).filter(|(arg, _)| *arg == name).map(|(_, url)| url);
        let joined = args.iter().filter_map(|arg| arg.to_str()?.strip_prefix(name)?.strip_prefix('='));
        match urls.filter_map(|url| url.to_str()).chain(joined).any(has_password) {
            false => Ok(()),
            true => Err(format!(
                "{name} holds a password, which other users of this machine can read; put the URL in {variable}, or {or_else}"
            )),
        }
    };
    for [name, variable, file] in DATABASE_FLAGS {
        let or_else = format!("the password in a file and name it with {file}");
        refuse(name, variable, Target::has_password, &or_else)?;
    }
    for (flag, variable) in SECRET_FLAGS {
        let is_given = |arg: &OsString| {
            let name = arg.to_str().and_then(|arg| arg.strip_prefix("--")).map(|arg| arg.split('=').next());
            name.flatten() == Some(flag)
        };
        if args.iter().any(is_given) {
            return Err(format!(
                "other users of this machine can read --{flag}; put the key in {variable}, or in the file that --config names"
            )
            .into());
        }
    }
    let or_else = "the URL in the file that --config names";
    Ok(refuse("--gateway-proxy", "PAYMENTS_GATEWAY_PROXY", GatewayProxy::has_password, or_else)?)
}

/// Parses the arguments. An error names the line of the file, or the variable, that the value came from.
fn parse(command: Command, args: &[OsString], file: &ConfigFile) -> Result<ArgMatches, clap::Error> {
    command.try_get_matches_from(args).map_err(|error| {
        let place = in_variable(&error, &Cli::command(), args).or_else(|| file.locate(&error));
        place.map_or(error, |error| Cli::command().error(ErrorKind::ValueValidation, error))
    })
}

fn command_of(matches: &ArgMatches) -> Result<cli::Command, clap::Error> {
    Cli::from_arg_matches(matches).map(Cli::into_command)
}

/// Whether the command line or the environment sets a flag.
fn is_given(matches: &ArgMatches, id: &str) -> bool {
    let source = matches.try_contains_id(id).ok().and_then(|_| matches.value_source(id));
    source.is_some_and(|source| source != ValueSource::DefaultValue)
        || matches.subcommand().is_some_and(|(_, matches)| is_given(matches, id))
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::PermissionsExt, path::Path};

    use super::*;

    fn read_with(text: &str, args: &[&str]) -> Result<Config, CommandError> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("payments.toml");
        fs::write(&file, text).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        let args = [&["payments-server"], args, &["--config", file.to_str().unwrap()]].concat();
        Config::read(args.into_iter().map(OsString::from))
    }

    #[test]
    fn the_file_sets_flags_and_the_command_line_overrides_it() {
        let text = "listen = '127.0.0.1:9'\nfee-bps = 0xfa\nallow-local-targets = true\nsandbox = false\n\
                    metrics-from = []\ngateway-proxy = 'http://hush@proxy'\nsession-ttl = [60]\n\
                    trusted-proxy = ['10.0.0.0/8', '192.168.0.0/16,172.16.0.0/12']\n[stripe]\n\
                    secret_key = 'sk_hush'\nwebhook_secret = 'whsec_hush'\n";
        for args in [&["--listen", "127.0.0.1:7"][..], &["serve", "--listen", "127.0.0.1:7"]] {
            let config = read_with(text, args).unwrap();
            let serve = config.command.serve_args().unwrap();
            assert_eq!((serve.listen.port(), serve.fee_bps, serve.session_ttl, serve.rate_limit), (7, 250, 60, 120));
            assert!(serve.allow_local_targets && !serve.sandbox);
            assert_eq!((serve.trusted_proxies.len(), serve.metrics_from.len()), (3, 2));
            assert!(config.credentials.configured().count() == 1 && !format!("{config:?}").contains("hush"));
        }
    }

    #[test]
    fn an_error_in_the_file_names_line_and_column_but_no_value() {
        for (text, says) in [
            ("lisen = 'hush'", "column 1: lisen is not a flag of `payments-server serve`; did you mean listen?"),
            (
                "[strip]\nsecret_key = 'hush'",
                "column 2: strip is not a flag of `payments-server serve`; did you mean stripe?",
            ),
            ("config = 'other.toml'", "line 1, column 1: config is not a flag"),
            ("fee-bps = 1.5", "line 1, column 11: fee-bps must be a string or an integer"),
            ("fee-bps = 10001", "line 1, column 11: fee-bps: 10001 is not in 0..=10000"),
            ("fee-bps = 1\nlisten = 'hush'", "line 2, column 10: listen: must be IP:PORT, such as 127.0.0.1:8080"),
            ("log-format = 'hush'", "line 1, column 14: log-format: must be one of text, json"),
            ("trusted-proxy = ['10.0.0.0/8', 5.5]", "column 17: trusted-proxy must be an array of strings"),
            ("trusted-proxy = ['hush']", "line 1, column 17: trusted-proxy: invalid IP address syntax"),
            ("listen = ['hush', 'hush']", "column 10: listen must be a string or an integer"),
            ("gateway-proxy = true", "column 17: gateway-proxy must be a string or an integer"),
            ("sandbox = 'hush'", "line 1, column 11: sandbox must be true or false"),
            ("base-url = 'https://pay.example?hush'", "column 12: base-url: must have no query"),
            ("\n\nlisten = ", "line 3, column 10: invalid TOML: "),
            ("listen = hush", "line 1, column 10: invalid TOML: string values must be quoted"),
            ("listen = ['hush'", "line 1, column 17: invalid TOML: unclosed array"),
            ("listen 'hush'", "invalid TOML: "),
            ("sandbox = true\nsandbox = true", "line 2, column 1: invalid TOML: duplicate key"),
            (
                "[stripe]\nsecret_ky = 'hush'",
                "line 2, column 1: secret_ky is not a key of [stripe], whose keys are base_url, secret_key, \
                webhook_secret; did you mean secret_key?",
            ),
            ("[stripe]\nsecret_key = 5", "line 2, column 14: secret_key of [stripe] must be a string"),
            ("[stripe]\nsecret_key = 'hush", "line 2"),
            ("stripe = 'hush'", "line 1, column 10: stripe must be a section, [stripe]"),
            ("[stripe]\nwebhook_secret = 'hush'", "PAYMENTS_STRIPE_SECRET_KEY is not set"),
            ("[stripe]\nsecret_key = 'sk_hush'", "PAYMENTS_STRIPE_WEBHOOK_SECRET is not set"),
            ("[stripe]\nsecret_key = 'hush hush'", "line 2, column 14: secret_key of [stripe] must be visible ASCII"),
            (
                "[stripe]\nwebhook_secret = 'whsec_hush'\nsecret_key = 'pk_live_hush'",
                "line 3, column 14: secret_key of [stripe] is a publishable key",
            ),
        ] {
            let error = read_with(text, &[]).unwrap_err();
            let shown = format!("{error} {error:?}");
            assert!(shown.contains(says) && !shown.contains("hush"), "{text}: {shown}");
        }
        let missing = Config::read(["payments-server", "--config", "/nowhere.toml"].map(OsString::from)).unwrap_err();
        assert!(missing.to_string().contains("/nowhere.toml"));
    }

    #[test]
    fn other_commands_find_the_place_of_the_store_in_the_file() {
        let text = "listen = '127.0.0.1:9'\ndata-dir = '/srv/shop'\nlog-format = 'json'\n";
        for args in [
            &["keys", "list"][..],
            &["workspaces", "create", "--name", "Shop"],
            &["check"],
            &["export", "payments"],
            &["restore", "backup"],
            &["backup", "backup"],
        ] {
            let config = read_with(text, args).unwrap();
            assert_eq!(config.command.data().unwrap().data_dir, Path::new("/srv/shop"), "{args:?}");
        }
        let text = "database-url = 'postgres://me@one/shop'\n[stripe]\nsecret_key = 'hush'\n";
        let is_on_database =
            |args: &[&str]| read_with(text, args).unwrap().command.data().unwrap().database_url.is_some();
        assert!(is_on_database(&["keys", "list"]));
        // The command line takes precedence.
        assert!(!is_on_database(&["keys", "list", "--data-dir", "/srv/shop"]));
        assert!(!is_on_database(&["check", "--data-dir", "/srv/shop"]));
    }

    #[test]
    fn a_file_with_credentials_that_others_may_read_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("payments.toml");
        let read = |text: &str, command: &str| {
            fs::write(&file, text).unwrap();
            fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
            Config::read(["payments-server", command, "--config", file.to_str().unwrap()].map(OsString::from))
        };
        let with_credentials = "[stripe]\nsecret_key = 'sk_hush'\nwebhook_secret = 'whsec_hush'\n";
        for command in ["serve", "check"] {
            let refused = read(with_credentials, command).unwrap_err().to_string();
            assert!(refused.starts_with("other users can read the credentials in "), "{refused}");
            assert!(read("listen = '127.0.0.1:9'", command).is_ok());
        }
    }

    #[test]
    fn an_invalid_value_in_the_file_ends_the_command_as_one_on_the_command_line_does() {
        for (text, args) in [("fee-bps = 10001", &[][..]), ("", &["--fee-bps", "10001"])] {
            let error = read_with(text, args).unwrap_err().downcast::<clap::Error>().unwrap();
            assert_eq!(error.exit_code(), 2);
        }
    }
}
