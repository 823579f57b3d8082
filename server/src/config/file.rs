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
//! Errors name file, line and column but quote no value, because it may be a misplaced secret.

use std::{collections::HashMap, fs, io, ops::Range, os::unix::fs::PermissionsExt, path::Path};

use clap::{Arg, ArgAction, Command, Id};
use secrecy::SecretString;
use toml::{
    Spanned,
    de::{DeString, DeTable, DeValue},
};

use crate::{
    cli::CommandError,
    config::{
        SECRET_FLAGS,
        error::{flag_of, reason_of},
    },
    gateway::{Declaration, declared, registry, variable},
    nearest::did_you_mean,
};

type Key<'k> = Spanned<DeString<'k>>;
type Value<'v> = Spanned<DeValue<'v>>;

/// A problem and where it is in the file's text.
type Located = (Range<usize>, String);

#[derive(Debug, Default)]
pub struct ConfigFile {
    flags: Vec<Flag>,
    credentials: HashMap<String, Credential>,
}

#[derive(Debug)]
struct Credential {
    value: SecretString,
    /// File, line, column, key and section.
    position: String,
}

#[derive(Debug)]
struct Flag {
    id: Id,
    name: String,
    values: Vec<String>,
    position: String,
}

impl ConfigFile {
    /// Reads a file whose flags are those of `command`.
    pub fn read(file: &Path, command: &Command) -> Result<Self, CommandError> {
        let name = file.display();
        let unreadable =
            |error: io::Error| format!("the configuration file {name} cannot be read: {error}; name it with --config");
        let text = fs::read_to_string(file).map_err(unreadable)?;
        let position = |span: Range<usize>| {
            let before = text.get(..span.start).unwrap_or_default();
            let line = before.matches('\n').count() + 1;
            let column = before.chars().rev().take_while(|char| *char != '\n').count() + 1;
            format!("{name}, line {line}, column {column}")
        };
        let read = Self::parse(&text, command, position)
            .map_err(|(span, problem)| format!("{}: {problem}", position(span)))?;
        let mode = fs::metadata(file).map_err(unreadable)?.permissions().mode();
        let has_key = read.flags.iter().any(|flag| SECRET_FLAGS.iter().any(|(name, _)| flag.name == *name));
        if mode & 0o077 != 0 && (has_key || !read.credentials.is_empty()) {
            return Err(format!("other users can read the credentials in {name}; run chmod 600 on it").into());
        }
        Ok(read)
    }

    fn parse(text: &str, command: &Command, position: impl Fn(Range<usize>) -> String) -> Result<Self, Located> {
        // The error's `Display` quotes the line, which may contain a secret; its message does not.
        let invalid = |error: toml::de::Error| {
            (error.span().unwrap_or_default(), format!("invalid TOML: {}", error.message().replace('\n', ", ")))
        };
        let table = DeTable::parse(text).map_err(invalid)?;
        let mut read = Self::default();
        for (key, value) in table.get_ref() {
            match declared(key.get_ref()) {
                Some(gateway) => read.credentials.extend(credentials(gateway, value, &position)?),
                None => {
                    let (arg, values) = flag(key, value, command)?;
                    let (id, name) = (arg.get_id().clone(), key.get_ref().to_string());
                    read.flags.push(Flag { id, name, values, position: position(value.span()) });
                }
            }
        }
        Ok(read)
    }

    /// Returns the command with the file's flags as its defaults.
    pub fn as_defaults(&self, command: Command) -> Command {
        let put = |command: Command| {
            let has = |id: &Id| command.get_arguments().any(|arg| arg.get_id() == id);
            let given: Vec<_> = self.flags.iter().filter(|flag| !flag.values.is_empty() && has(&flag.id)).collect();
            given
                .into_iter()
                .fold(command, |command, flag| command.mut_arg(&flag.id, |arg| arg.default_values(flag.values.clone())))
        };
        // `serve` shares only the arguments for the store's place with other commands.
        put(command).mut_subcommands(put)
    }

    pub fn forget_database(&mut self) {
        self.flags.retain(|flag| !flag.name.starts_with("database-"));
    }

    /// Describes clap's error by the flag's position in the file. `None` if the flag is not in the file.
    pub fn locate(&self, error: &clap::Error) -> Option<String> {
        let name = flag_of(error)?;
        let Flag { position, .. } = self.flags.iter().find(|flag| flag.name == name)?;
        Some(format!("{position}: {name}: {}", reason_of(error)))
    }

    /// Returns a credential by the name of its environment variable.
    pub fn credential(&self, variable: &str) -> Option<SecretString> {
        self.credentials.get(variable).map(|credential| credential.value.clone())
    }

    pub fn position_of(&self, variable: &str) -> Option<&str> {
        self.credentials.get(variable).map(|credential| &*credential.position)
    }
}

/// Reads a flag: its argument and clap's input for it.
fn flag<'c>(key: &Key<'_>, value: &Value<'_>, command: &'c Command) -> Result<(&'c Arg, Vec<String>), Located> {
    let name = key.get_ref().as_ref();
    let arg = command.get_arguments().find(|arg| arg.get_long() == Some(name) && name != "config");
    let unknown = || {
        let flags = command.get_arguments().filter_map(Arg::get_long);
        let meant = did_you_mean(name, flags.chain(registry().map(|gateway| gateway.name.as_str())));
        (key.span(), format!("{name} is not a flag of `payments-server serve`{meant}"))
    };
    let arg = arg.ok_or_else(unknown)?;
    let values = values(arg, value.get_ref()).map_err(|wants| (value.span(), format!("{name} {wants}")))?;
    Ok((arg, values))
}

/// Converts a flag's value to clap's input. `false` counts as unset.
fn values(arg: &Arg, value: &DeValue<'_>) -> Result<Vec<String>, &'static str> {
    let one = |value: &DeValue<'_>| match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) => Some(i64::from_str_radix(number.as_str(), number.radix()).ok()?.to_string()),
        _ => None,
    };
    match (arg.get_action(), value) {
        (_, DeValue::Boolean(false)) => Ok(Vec::new()),
        (ArgAction::SetTrue, DeValue::Boolean(true)) => Ok(vec![true.to_string()]),
        (ArgAction::SetTrue, _) => Err("must be true or false"),
        (action, DeValue::Array(items)) if items.len() == 1 || matches!(action, ArgAction::Append) => {
            let texts = items.iter().map(|item| one(item.get_ref())).collect::<Option<_>>();
            texts.ok_or("must be an array of strings")
        }
        (_, value) => one(value).map(|text| vec![text]).ok_or("must be a string or an integer"),
    }
}

/// Reads a gateway's section by the names of its environment variables.
fn credentials(
    gateway: &Declaration,
    value: &Value<'_>,
    position: impl Fn(Range<usize>) -> String,
) -> Result<HashMap<String, Credential>, Located> {
    let section = gateway.name.as_str();
    let keys: Vec<_> = gateway.settings.iter().map(|setting| setting.key).collect();
    let DeValue::Table(table) = value.get_ref() else {
        return Err((value.span(), format!("{section} must be a section, [{section}]")));
    };
    let credential = |(key, given): (&Key<'_>, &Value<'_>)| match (key.get_ref().as_ref(), given.get_ref()) {
        (name, _) if !keys.contains(&name) => {
            let (meant, keys) = (did_you_mean(name, keys.iter().copied()), keys.join(", "));
            Err((key.span(), format!("{name} is not a key of [{section}], whose keys are {keys}{meant}")))
        }
        (name, DeValue::String(text)) => {
            let position = format!("{}: {name} of [{section}]", position(given.span()));
            let credential = Credential { value: text.as_ref().into(), position };
            Ok((variable(section, name), credential))
        }
        (name, _) => Err((given.span(), format!("{name} of [{section}] must be a string"))),
    };
    table.iter().map(credential).collect()
}
