//! Formats what the server logs, and filters it by `PAYMENTS_LOG`.

use std::{
    backtrace::{Backtrace, BacktraceStatus},
    env,
    ffi::OsString,
    io::{IsTerminal, stderr},
    panic, thread,
};

use tracing_subscriber::{
    EnvFilter,
    filter::LevelFilter,
    fmt::format::{JsonFields, format},
};

use super::{DROPPED, Lines, QUEUE, queue::Queue};
use crate::{
    cli::{CommandError, LogFormat},
    http::WithRequest,
    nearest::did_you_mean,
};

const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];

/// Starts the log of a server with its format, or of a command.
pub fn start(server: Option<LogFormat>) -> Result<(), CommandError> {
    let log = tracing_subscriber::fmt().with_env_filter(filter(env::var_os("PAYMENTS_LOG"))?).with_writer(|| Lines);
    // The subscriber would report a failed write on the same stream, and panic if that fails too. The server must
    // survive a full disk or a closed pipe, so drop the line instead.
    let log = log.log_internal_errors(false);
    if server.is_some() {
        let queue = QUEUE.get_or_init(|| Queue::new(DROPPED.clone()));
        thread::Builder::new().name("log".into()).spawn(|| queue.write_to(stderr(), say_dropped))?;
        panic::set_hook(Box::new(|panic| {
            let trace = Backtrace::capture();
            let trace = (trace.status() == BacktraceStatus::Captured).then(|| trace.to_string());
            tracing::error!(trace, "{panic}");
        }));
    }
    match server.unwrap_or_default() {
        LogFormat::Text => {
            log.event_format(WithRequest::text(format().with_ansi(stderr().is_terminal()))).init();
        }
        LogFormat::Json => {
            let line = WithRequest::json(format().json().flatten_event(true));
            log.fmt_fields(JsonFields::new()).event_format(line).init();
        }
    }
    Ok(())
}

/// An error, so that every filter but `off` lets it through: some of the lines may have been errors.
fn say_dropped(lines: u64) {
    tracing::error!("{lines} log lines were dropped, because nobody read the log or it could not be written");
}

/// Reads a filter; `info` by default. The subscriber would take a misspelt level for the name of a module, and log nothing.
fn filter(given: Option<OsString>) -> Result<EnvFilter, String> {
    let text = given.filter(|text| !text.is_empty()).unwrap_or_else(|| "info".into());
    let text = text.to_string_lossy();
    let wrong = |part: &str| {
        let meant = did_you_mean(part, LEVELS);
        format!(
            "PAYMENTS_LOG: {part} is not a log filter; write a level ({}), or levels of modules, such as \
             warn,payments_server::delivery=debug{meant}",
            LEVELS.join(", ")
        )
    };
    let words = text.split(',').filter(|part| !part.contains(['=', '[', '{', '}', ']']));
    if let Some(word) = words.into_iter().find(|word| word.trim().parse::<LevelFilter>().is_err()) {
        return Err(wrong(word));
    }
    EnvFilter::builder().parse(&text).map_err(|_| wrong(&text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_filter_names_levels_and_a_misspelt_one_is_refused() {
        for text in ["", "debug", "WARN", "off", "warn,payments_server::delivery=debug", "payments_server=trace"] {
            assert!(filter(Some(text.into())).is_ok(), "{text}");
        }
        assert!(filter(None).is_ok());
        for (text, says) in [
            ("verbose", "PAYMENTS_LOG: verbose is not a log filter; write a level (error, warn"),
            ("wanr", "; did you mean warn?"),
            ("warn,payments_server=loud", "PAYMENTS_LOG: warn,payments_server=loud is not a log filter"),
            ("payments_server", "PAYMENTS_LOG: payments_server is not"),
        ] {
            let error = filter(Some(text.into())).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
