//! The reference payments server.
//!
//! A request goes from the socket to the disk through `http::listener`, its resource's handlers (`http::payments` and
//! its siblings), the use case in `service`, the records' layout in `store::embedded`, and the engine. `http::gate`
//! authenticates the caller and `payments_core` decides which transitions are allowed. `delivery` sends the outbox's
//! webhooks to the merchants' endpoints, independently of requests.
#![forbid(unsafe_code)]

mod admin;
mod admin_socket;
mod ambient;
mod cli;
mod config;
mod config_file;
mod delivery;
mod descriptors;
mod developer;
mod domain;
mod failure;
mod file_modes;
mod gateway;
mod greeting;
mod http;
mod metrics;
mod no_store;
mod operations;
mod reach;
mod serve;
mod service;
mod store;

use std::{
    io::{IsTerminal, Write},
    process::ExitCode,
};

use cli::{Command, LogFormat};
use config::Config;
use failure::Failure;
use tracing_subscriber::{
    EnvFilter,
    fmt::format::{JsonFields, format},
};

/// Store threads free memory that request threads allocated, and vice versa, for which glibc's allocator takes locks.
/// mimalloc reduces the CPU time of creating a payment by a fifth.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    file_modes::keep_to_owner();
    let Err(error) = start() else { return ExitCode::SUCCESS };
    match error.downcast::<clap::Error>() {
        // clap prints the message and picks the exit code: 0 for `--help`.
        Ok(error) => error.exit(),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "payments-server: {error}");
            ExitCode::FAILURE
        }
    }
}

fn start() -> Result<(), Failure> {
    let config = Config::read(std::env::args_os())?;
    log(config.command.serve_args().map(|serve| serve.log_format).unwrap_or_default());
    let runtime = tokio::runtime::Runtime::new()?;
    let outcome = runtime.block_on(run(config));
    // Abandon tasks that still wait for others.
    runtime.shutdown_background();
    outcome
}

async fn run(Config { command, credentials }: Config) -> Result<(), Failure> {
    match command {
        Command::Serve(args) => serve::serve(args, credentials).await,
        Command::Admin(command) => admin::administer(command).await,
        Command::Listen(args) => developer::listen(args).await,
        Command::Trigger(args) => developer::trigger(args).await,
        Command::Reset(args) => developer::reset(args).await,
        Command::Check(args) => operations::check(&args).await,
        Command::Export(args) => operations::export(args).await,
        Command::Restore(args) => operations::restore(args).await,
        Command::Migrate(args) => operations::migrate(args).await,
    }
}

/// Logs to the standard error stream, filtered by `PAYMENTS_LOG`; `info` by default.
fn log(style: LogFormat) {
    let filter = EnvFilter::try_from_env("PAYMENTS_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // The subscriber would report a failed write on the same stream, and panic if that fails too. The server must
    // survive a full disk or a closed pipe, so drop the line instead.
    let log = log.log_internal_errors(false);
    match style {
        LogFormat::Text => {
            log.event_format(http::WithRequest::text(format().with_ansi(std::io::stderr().is_terminal()))).init();
        }
        LogFormat::Json => {
            let line = http::WithRequest::json(format().json().flatten_event(true));
            log.fmt_fields(JsonFields::new()).event_format(line).init();
        }
    }
}
