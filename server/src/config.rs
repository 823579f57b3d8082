//! The configuration file: the flags of `serve` under their own names, and the gateways' credentials.
//!
//! ```toml
//! listen = "0.0.0.0:8080"
//! base-url = "https://pay.example"
//! trusted-proxy = ["10.0.0.0/8"]
//!
//! [stripe]
//! secret_key = "sk_live_…"
//! ```
//!
//! The command line wins over the environment, and both over the file.

use std::{
    ffi::OsString,
    fs, io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use clap::{ArgMatches, CommandFactory, FromArgMatches, parser::ValueSource};
use toml::{Table, Value};

use crate::{
    cli::{Cli, Command, LogFormat, ServeArgs},
    gateway::CredentialFile,
};

/// The sections that are not flags.
const SECTIONS: [&str; 2] = ["bkash", "stripe"];

/// A configuration file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigError {
    /// The command line itself, with what clap has to say of it, `--help` included.
    #[error(transparent)]
    CommandLine(#[from] clap::Error),
    #[error("{}: {source}", file.display())]
    Read { file: PathBuf, source: io::Error },
    /// What the library says quotes the line, which may hold a secret; so only where it is said.
    #[error("{}: line {line} cannot be read as TOML", file.display())]
    Syntax { file: PathBuf, line: usize },
    #[error("{}: [bkash] or [stripe] has a key that it does not know, or a value that is not text", file.display())]
    Section { file: PathBuf },
    #[error("{}: {key} is no flag of `payments-server serve`; see its --help", file.display())]
    UnknownKey { file: PathBuf, key: String },
    #[error("{}: {key} must be text, a whole number, true, false, or a list of texts", file.display())]
    Value { file: PathBuf, key: String },
}

/// What was asked for: on the command line, in the environment, in the file.
pub(crate) struct Asked {
    pub(crate) cli: Cli,
    pub(crate) credentials: CredentialFile,
}

impl Asked {
    pub(crate) fn log_format(&self) -> LogFormat {
        serve_args(&self.cli).map(|serve| serve.log_format).unwrap_or_default()
    }
}

/// Reads all three.
pub(crate) fn read(args: impl IntoIterator<Item = OsString>) -> Result<Asked, ConfigError> {
    let mut args: Vec<OsString> = args.into_iter().collect();
    let (matches, cli) = parse(&args)?;
    let Some(file) = serve_args(&cli).and_then(|serve| serve.config.clone()) else {
        return Ok(Asked { cli, credentials: CredentialFile::default() });
    };
    let mut table = table(&file)?;
    let sections: Table = SECTIONS.iter().filter_map(|name| table.remove_entry(*name)).collect();
    let credentials = sections.try_into().map_err(|_| ConfigError::Section { file: file.clone() })?;
    let given = matches.subcommand_matches("serve").unwrap_or(&matches);
    for (key, value) in table {
        args.extend(flag(&file, given, key, value)?);
    }
    let (_, cli) = parse(&args)?;
    Ok(Asked { cli, credentials })
}

fn parse(args: &[OsString]) -> Result<(ArgMatches, Cli), clap::Error> {
    let matches = Cli::command().try_get_matches_from(args)?;
    let cli = Cli::from_arg_matches(&matches)?;
    Ok((matches, cli))
}

fn serve_args(cli: &Cli) -> Option<&ServeArgs> {
    match &cli.command {
        None => Some(&cli.serve),
        Some(Command::Serve(serve)) => Some(serve),
        Some(_) => None,
    }
}

fn table(file: &Path) -> Result<Table, ConfigError> {
    let unreadable = |source| ConfigError::Read { file: file.to_owned(), source };
    let text = fs::read_to_string(file).map_err(unreadable)?;
    let mode = fs::metadata(file).map_err(unreadable)?.permissions().mode();
    if mode & 0o077 != 0 && SECTIONS.iter().any(|name| text.contains(&format!("[{name}]"))) {
        // The log is set up by what is being read here.
        eprintln!("payments-server: others can read the credentials in {}; chmod 600 it", file.display());
    }
    text.parse().map_err(|error: toml::de::Error| {
        let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or_default();
        ConfigError::Syntax { file: file.to_owned(), line: before.matches('\n').count() + 1 }
    })
}

/// A key of the file as arguments, unless the command line or the environment has said it.
fn flag(file: &Path, given: &ArgMatches, key: String, value: Value) -> Result<Vec<OsString>, ConfigError> {
    let command = Cli::command();
    let mut known = command.get_arguments();
    let arg = known.find(|arg| arg.get_long() == Some(&key) && key != "config");
    let Some(arg) = arg else { return Err(ConfigError::UnknownKey { file: file.to_owned(), key }) };
    let source = given.value_source(arg.get_id().as_str());
    if matches!(source, Some(ValueSource::CommandLine | ValueSource::EnvVariable)) {
        return Ok(Vec::new());
    }
    let one = |value: Value| match value {
        Value::String(text) => Some(text),
        Value::Integer(number) => Some(number.to_string()),
        _ => None,
    };
    let values = match value {
        Value::Boolean(false) => return Ok(Vec::new()),
        Value::Boolean(true) => return Ok(vec![format!("--{key}").into()]),
        Value::Array(items) => items.into_iter().map(one).collect(),
        value => one(value).map(|text| vec![text]),
    };
    let values: Vec<String> = values.ok_or_else(|| ConfigError::Value { file: file.to_owned(), key: key.clone() })?;
    Ok(values.into_iter().map(|value| format!("--{key}={value}").into()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_with(text: &str, args: &[&str]) -> Result<Asked, ConfigError> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("payments.toml");
        fs::write(&file, text).unwrap();
        let config = ["payments-server", "--config", file.to_str().unwrap()];
        read(config.iter().chain(args).map(OsString::from))
    }

    #[test]
    fn the_file_sets_flags_by_their_names_and_the_command_line_wins() {
        let text = "listen = '127.0.0.1:9'\nfee-bps = 250\nallow-local-targets = true\n\
                    trusted-proxy = ['10.0.0.0/8', '192.168.0.0/16']\n[stripe]\nsecret_key = 'sk_live_x'\n";
        let asked = read_with(text, &["--listen", "127.0.0.1:7"]).unwrap();
        let serve = serve_args(&asked.cli).unwrap();
        assert_eq!(serve.listen.port(), 7);
        assert_eq!(serve.fee_bps, 250);
        assert!(serve.allow_local_targets);
        assert_eq!(serve.trusted_proxies.len(), 2);
        assert!(!format!("{:?}", asked.credentials).contains("sk_live_x"));
    }

    #[test]
    fn what_the_file_gets_wrong_is_named_and_no_value_is_shown() {
        for (text, says) in [
            ("lisen = 'x'", "lisen is no flag"),
            ("config = 'other.toml'", "config is no flag"),
            ("fee-bps = 1.5", "fee-bps must be"),
            ("fee-bps = 10001", "10001"),
            ("\n\nlisten = ", "line 3"),
            ("[stripe]\nsecret = 'hush'", "[stripe] has a key"),
            ("[stripe]\nsecret_key = 5", "[stripe] has a key"),
            ("[stripe]\nsecret_key = 'hush", "line 2"),
        ] {
            let error = read_with(text, &[]).err().unwrap().to_string();
            assert!(error.contains(says) && !error.contains("hush"), "{text}: {error}");
        }
        let missing = read(["payments-server", "--config", "/nowhere.toml"].map(OsString::from)).err().unwrap();
        assert!(missing.to_string().contains("/nowhere.toml"));
    }
}
