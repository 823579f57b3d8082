//! The reference payments server.
//!
//! A request goes from the socket to the disk through `http::listener`, its resource's routes (`http::payments` and its
//! neighbours), the use case in `service`, and the store's committer and journal in `store::sled`. On the way the gate
//! (`http::gate`) says who is calling and `payments_core` what may happen. `delivery` reads the outbox and calls the
//! merchants' endpoints, apart from any request.
#![forbid(unsafe_code)]

mod admin_socket;
mod ambient;
mod books;
mod cli;
mod config;
mod delivery;
mod gateway;
mod http;
mod run;
mod service;
mod store;

use std::{io::IsTerminal, process::ExitCode};

use config::ConfigError;

fn main() -> ExitCode {
    let filter = tracing_subscriber::EnvFilter::try_from_env("PAYMENTS_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
    let outcome = match tokio::runtime::Runtime::new() {
        Ok(runtime) => match config::read(std::env::args_os()) {
            Ok(asked) => runtime.block_on(run::run(asked)),
            // In clap's own form and with its exit code; `--help` is no failure.
            Err(ConfigError::CommandLine(error)) => error.exit(),
            Err(error) => Err(error.into()),
        },
        Err(error) => Err(error.into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("payments-server: {error}");
            ExitCode::FAILURE
        }
    }
}
