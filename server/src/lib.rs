//! The reference payments server, as a library of one function: the program calls [`run_command`].
//!
//! A request goes from the socket to the disk through `http::listener`, its resource's handlers (`http::payments` and
//! its siblings), the use case in `service`, the records' layout in `store::layout`, and the engine. `http::gate`
//! authenticates the caller and `payments_core` decides which transitions are allowed. `delivery` sends the outbox's
//! webhooks to the merchants' endpoints, independently of requests.
#![forbid(unsafe_code)]
// They panic if the stream cannot be written, and wait if nobody reads it: use `log` or a result.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

/// Whether a simulation has planted this fault in the server.
#[cfg(feature = "simulation")]
macro_rules! planted {
    ($fault:ident) => {
        crate::simulation::is_planted(crate::simulation::Planted::$fault)
    };
}
#[cfg(not(feature = "simulation"))]
macro_rules! planted {
    ($fault:ident) => {
        false
    };
}

mod admin;
mod admin_socket;
mod ambient;
mod budget;
mod cli;
mod command_docs;
mod command_error;
mod config;
mod config_error;
mod config_file;
mod delivery;
mod descriptors;
mod developer;
mod domain;
mod file_modes;
mod gateway;
mod greeting;
mod health;
mod http;
mod lock;
mod log;
mod metrics;
mod nearest;
mod no_store;
mod operations;
mod owner;
mod poll;
mod reach;
mod serve;
mod service;
#[cfg(feature = "simulation")]
pub mod simulation;
mod store;
mod terminal;
mod trace;

use std::process::ExitCode;

use cli::Command;
use command_error::CommandError;
use config::Config;

/// Carries out the command that this process was started with.
#[must_use]
pub fn run_command() -> ExitCode {
    file_modes::keep_to_owner();
    let code = match start().map_err(|error| error.downcast::<clap::Error>()) {
        Ok(()) => ExitCode::SUCCESS,
        // clap prints the message and picks the exit code: 0 for `--help`.
        Err(Ok(error)) => error.exit(),
        Err(Err(error)) => {
            log::say(format_args!("payments-server: {error}"));
            ExitCode::FAILURE
        }
    };
    log::flush();
    code
}

fn start() -> Result<(), CommandError> {
    let config = Config::read(std::env::args_os())?;
    owner::act_as_owner_of(&config.command.directories())?;
    log::subscriber::start(config.command.serve_args().map(|serve| serve.log_format))?;
    let runtime = tokio::runtime::Runtime::new()?;
    let outcome = runtime.block_on(run(config));
    // Abandon tasks that still wait for others.
    runtime.shutdown_background();
    outcome
}

async fn run(Config { command, credentials, .. }: Config) -> Result<(), CommandError> {
    match command {
        Command::Serve(args) => serve::serve(args, credentials).await,
        Command::Admin(command) => admin::administer(command).await,
        Command::Listen(args) => developer::listen(args).await,
        Command::Trigger(args) => developer::trigger(args).await,
        Command::Reset(args) => developer::reset(args).await,
        Command::Health(args) => health::health(&args).await,
        Command::Check(args) => operations::check(&args).await,
        Command::Export(args) => operations::export(args).await,
        Command::Restore(args) => operations::restore(args).await,
        Command::Migrate(args) => operations::migrate(args).await,
        Command::Doctor(args) => operations::doctor(&args, credentials).await,
        Command::Completions { shell } => command_docs::completions(shell),
        Command::Man { directory } => command_docs::man(directory.as_deref()),
    }
}
