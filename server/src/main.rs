//! The reference payments server.
//!
//! A request goes from the socket to the disk through `http::listener`, its resource's routes (`http::payments` and its
//! neighbours), the use case in `service`, the records' layout in `store::embedded`, and the engine below it. On the way the gate
//! (`http::gate`) says who is calling and `payments_core` what may happen. `delivery` reads the outbox and calls the
//! merchants' endpoints, apart from any request.
#![forbid(unsafe_code)]

mod admin;
mod admin_socket;
mod ambient;
mod books;
mod cli;
mod config;
mod config_file;
mod delivery;
mod descriptors;
mod domain;
mod failure;
mod file_modes;
mod gateway;
mod greeting;
mod http;
mod metrics;
mod reach;
mod serve;
mod service;
mod store;

use std::{
    io::{IsTerminal, Write},
    process::ExitCode,
};

use cli::{Command, LogFormat};
use config::{Config, ConfigError};
use failure::Failure;
use tracing_subscriber::EnvFilter;

/// The store's threads free what requests have allocated and the other way about, for which the C library's allocator
/// takes locks: with this one a create takes a fifth less of the processor.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    file_modes::keep_to_owner();
    let outcome = match Config::read(std::env::args_os()) {
        Ok(config) => {
            log(config.command.serve_args().map(|serve| serve.log_format).unwrap_or_default());
            tokio::runtime::Runtime::new().map_err(Into::into).and_then(|runtime| {
                let outcome = runtime.block_on(run(config));
                // Whatever is still waiting for somebody outside waits in vain.
                runtime.shutdown_background();
                outcome
            })
        }
        // In clap's own form and with its exit code; `--help` is no failure.
        Err(ConfigError::CommandLine(error)) => error.exit(),
        Err(error) => Err(error.into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "payments-server: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(Config { command, credentials }: Config) -> Result<(), Failure> {
    match command {
        Command::Serve(args) => serve::serve(args, credentials).await,
        Command::Admin(command) => admin::administer(command).await,
        Command::Check(args) => books::check(&args).await,
        Command::Export(args) => books::export(args).await,
        Command::Restore(args) => books::restore(args).await,
    }
}

/// Logs to the standard error stream: what `PAYMENTS_LOG` asks for, `info` unless it does.
fn log(format: LogFormat) {
    let filter = EnvFilter::try_from_env("PAYMENTS_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A line that cannot be written, because the disk is full or nobody reads, would be said so on the same stream, with
    // a panic where that fails too. Payments are worth more than a line.
    let log = log.log_internal_errors(false);
    match format {
        LogFormat::Text => log.with_ansi(std::io::stderr().is_terminal()).init(),
        LogFormat::Json => log.json().flatten_event(true).init(),
    }
}
