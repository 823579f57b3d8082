//! Says which flag, variable or line of a file an invalid value came from.

use std::{
    env,
    error::Error,
    ffi::{OsStr, OsString},
};

use clap::{
    Arg, Command,
    error::{ContextKind, ContextValue},
};

/// The flag that an error is about, without its dashes.
pub fn flag_of(error: &clap::Error) -> Option<&str> {
    let Some(ContextValue::String(arg)) = error.get(ContextKind::InvalidArg) else { return None };
    arg.strip_prefix("--")?.split(' ').next()
}

/// What is wrong with the flag's value. Does not quote it, because it may be a misplaced secret.
pub fn reason_of(error: &clap::Error) -> String {
    match (error.source(), error.get(ContextKind::ValidValue)) {
        (Some(source), _) => source.to_string(),
        (None, Some(ContextValue::Strings(known))) => format!("must be one of {}", known.join(", ")),
        _ => "invalid value".to_owned(),
    }
}

/// Describes an error by the environment variable of the value. `None` if the value came from elsewhere.
pub fn in_variable(error: &clap::Error, command: &Command, args: &[OsString]) -> Option<String> {
    let flag = flag_of(error)?;
    let is_given = |arg: &OsString| {
        let rest = arg.to_str().and_then(|arg| arg.strip_prefix("--")?.strip_prefix(flag));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    };
    if args.iter().any(is_given) {
        return None;
    }
    let variable = variable_of(command, flag)?.to_str()?;
    Some(format!("{variable}: {}", reason_of(error)))
}

/// The variable of a flag, if the variable has a value.
fn variable_of<'c>(command: &'c Command, flag: &str) -> Option<&'c OsStr> {
    let arg = command.get_arguments().find(|arg| arg.get_long() == Some(flag));
    let variable = arg.and_then(Arg::get_env).filter(|variable| env::var_os(variable).is_some());
    variable.or_else(|| command.get_subcommands().find_map(|command| variable_of(command, flag)))
}
