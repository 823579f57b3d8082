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

use std::{
    fmt, fs, io,
    ops::Range,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use clap::{
    Arg, ArgAction, Command, Id,
    error::{ContextKind, ContextValue},
};
use secrecy::SecretString;
use toml::{
    Spanned,
    de::{DeString, DeTable, DeValue},
};

use crate::gateway::CREDENTIALS;

/// The configuration file cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum FileError {
    #[error("{}: {source}", file.display())]
    Read { file: PathBuf, source: io::Error },
    #[error("{position}: {problem}")]
    Content { position: Position, problem: String },
}

type Key<'k> = Spanned<DeString<'k>>;
type Value<'v> = Spanned<DeValue<'v>>;

/// A position in the file.
#[derive(Debug, Clone)]
pub(crate) struct Position {
    file: PathBuf,
    line: usize,
    column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, line {}, column {}", self.file.display(), self.line, self.column)
    }
}

/// The contents of a configuration file.
#[derive(Debug, Default)]
pub(crate) struct ConfigFile {
    flags: Vec<Flag>,
    /// Each with the name of its environment variable.
    credentials: Vec<(String, SecretString)>,
}

#[derive(Debug)]
struct Flag {
    id: Id,
    name: String,
    values: Vec<String>,
    position: Position,
}

impl ConfigFile {
    /// Reads a file whose flags are those of `command`.
    pub(crate) fn read(file: &Path, command: &Command) -> Result<Self, FileError> {
        let unreadable = |source| FileError::Read { file: file.to_owned(), source };
        let text = fs::read_to_string(file).map_err(unreadable)?;
        let read = Self::parse(file, &text, command)?;
        let mode = fs::metadata(file).map_err(unreadable)?.permissions().mode();
        if mode & 0o077 != 0 && !read.credentials.is_empty() {
            // The log starts after the file is read, because the file sets its format.
            eprintln!(
                "payments-server: other users can read the credentials in {}; run chmod 600 on it",
                file.display()
            );
        }
        Ok(read)
    }

    fn parse(file: &Path, text: &str, command: &Command) -> Result<Self, FileError> {
        let source = Source { file, text };
        // The parser's own message quotes the line, which may contain a secret.
        let table =
            DeTable::parse(text).map_err(|error| source.error(error.span().unwrap_or_default(), "invalid TOML"))?;
        let mut read = Self::default();
        for (key, value) in table.into_inner() {
            match CREDENTIALS.iter().find(|(section, _)| key.get_ref() == section) {
                Some((section, keys)) => read.credentials.extend(source.section(section, keys, &value)?),
                None => read.flags.push(source.flag(&key, &value, command)?),
            }
        }
        Ok(read)
    }

    /// Returns the command with the file's flags as its defaults.
    pub(crate) fn as_defaults(&self, command: Command) -> Command {
        let put = |command| {
            let given = self.flags.iter().filter(|flag| !flag.values.is_empty());
            given.fold(command, |command: Command, flag| {
                command.mut_arg(&flag.id, |arg| arg.default_values(flag.values.clone()))
            })
        };
        put(command).mut_subcommand("serve", put)
    }

    /// Locates the flag that clap rejected. `None` if it is not from the file.
    pub(crate) fn locate(&self, error: &clap::Error) -> Option<FileError> {
        let Some(ContextValue::String(arg)) = error.get(ContextKind::InvalidArg) else { return None };
        let name = arg.trim_start_matches("--").split(' ').next();
        let flag = self.flags.iter().find(|flag| Some(flag.name.as_str()) == name)?;
        let wants = match (std::error::Error::source(error), error.get(ContextKind::ValidValue)) {
            (Some(source), _) => source.to_string(),
            (None, Some(ContextValue::Strings(known))) => format!("must be one of {}", known.join(", ")),
            _ => "invalid value".to_owned(),
        };
        Some(FileError::Content { position: flag.position.clone(), problem: format!("{}: {wants}", flag.name) })
    }

    /// Returns a credential by the name of its environment variable.
    pub(crate) fn credential(&self, variable: &str) -> Option<SecretString> {
        self.credentials.iter().find(|(name, _)| name == variable).map(|(_, value)| value.clone())
    }
}

/// The file's text, to locate errors in it.
struct Source<'s> {
    file: &'s Path,
    text: &'s str,
}

impl Source<'_> {
    fn position(&self, span: Range<usize>) -> Position {
        let before = self.text.get(..span.start).unwrap_or_default();
        let line = before.rsplit('\n').next().unwrap_or_default();
        let (line, column) = (before.matches('\n').count() + 1, line.chars().count() + 1);
        Position { file: self.file.to_owned(), line, column }
    }

    fn error(&self, span: Range<usize>, problem: impl Into<String>) -> FileError {
        FileError::Content { position: self.position(span), problem: problem.into() }
    }

    fn flag(&self, key: &Key<'_>, value: &Value<'_>, command: &Command) -> Result<Flag, FileError> {
        let name = key.get_ref().to_string();
        let arg = command.get_arguments().find(|arg| arg.get_long() == Some(&name) && name != "config");
        let arg = arg.ok_or_else(|| {
            self.error(key.span(), format!("{name} is not a flag of `payments-server serve`; see its --help"))
        })?;
        let values =
            values(arg, value.get_ref()).map_err(|wants| self.error(value.span(), format!("{name} {wants}")))?;
        Ok(Flag { id: arg.get_id().clone(), name, values, position: self.position(value.span()) })
    }

    /// Reads a section's credentials, each with the name of its environment variable.
    fn section(
        &self,
        section: &str,
        keys: &[&str],
        value: &Value<'_>,
    ) -> Result<Vec<(String, SecretString)>, FileError> {
        let DeValue::Table(table) = value.get_ref() else {
            return Err(self.error(value.span(), format!("{section} must be a section, [{section}]")));
        };
        let credential = |(key, value): (&Key<'_>, &Value<'_>)| {
            let name = key.get_ref().as_ref();
            if !keys.contains(&name) {
                let keys = keys.join(", ");
                return Err(self.error(key.span(), format!("[{section}] has no such key; its keys are {keys}")));
            }
            let DeValue::String(text) = value.get_ref() else {
                return Err(self.error(value.span(), format!("{name} of [{section}] must be a string")));
            };
            Ok((format!("PAYMENTS_{section}_{name}").to_ascii_uppercase(), text.as_ref().into()))
        };
        table.iter().map(credential).collect()
    }
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
