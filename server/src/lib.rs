//! The reference payments server, as a library of one function: the program calls [`run_command`].
//!
//! A request goes from the socket to the disk through `http::listener`, its resource's handlers (`http::payments` and
//! its siblings), the use case in `service`, the records' layout in `store::layout`, and the engine. `http::gate`
//! authenticates the caller and `payments_core` decides which transitions are allowed. `delivery` sends the outbox's
//! webhooks to the merchants' endpoints, independently of requests.
#![forbid(unsafe_code)]
// A program: what is `pub` is there for the other modules, and for `parts`.
#![allow(unreachable_pub)]
#![cfg_attr(feature = "simulation", allow(missing_docs, clippy::new_without_default))]
// They panic if the stream cannot be written, and wait if nobody reads it: use `log` or a result.
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod administration;
mod cli;
mod commands;
mod config;
mod delivery;
mod gateway;
mod http;
mod log;
mod metrics;
mod nearest;
mod process;
mod sealed;
mod serve;
mod service;
mod trace;

/// The parts of which the tool `simulate` makes servers.
#[cfg(feature = "simulation")]
#[doc(hidden)]
pub mod parts {
    pub use crate::{
        delivery::{Dispatcher, Endpoints, RequestBuilder, SendError, Sender, TargetPolicy},
        gateway::{Credentials, Gateways, NoResponse, Response, Transport},
        http::{ConnectionsByAddress, Edge, Hosts, Parts, RateLimits, Readiness, Reference, Server, TrustedProxies},
        metrics::Metrics,
        serve::workers,
        service::{
            AdminReply, AdminRequest, DisputeOutcome, DisputeRequest, KeyRow, ManualOutcome, PayoutOutcome,
            PayoutReply, PayoutRequest, PayoutRow, PayoutSettings, Retention, Service, Services, Settings,
            SettlementReply, SettlementRequest,
        },
    };
}

use std::process::ExitCode;

use cli::{Command, CommandError};
use commands::{admin, customers, developer, docs, health, operations, operators, payouts, settlements};
use config::Config;
use payments_store::{self as store, ambient, domain, planted};
use process::{file_modes, owner};

/// Carries out the command that this process was started with.
#[must_use]
pub fn run_command() -> ExitCode {
    file_modes::keep_to_owner();
    ambient::set_last_words(log::flush);
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
        Command::Audit(command) => operators::audit(command).await,
        Command::Settlements(args) => settlements::run(args).await,
        Command::Payouts(args) => payouts::run(args).await,
        Command::Customers(args) => customers::run(args).await,
        Command::Listen(args) => developer::listen(args).await,
        Command::Trigger(args) => developer::trigger(args).await,
        Command::Reset(args) => developer::reset(args).await,
        Command::Health(args) => health::health(&args).await,
        Command::Check(args) => operations::check(&args).await,
        Command::Export(args) => operations::export(args).await,
        Command::Restore(args) => operations::restore(args).await,
        Command::Migrate(args) => operations::migrate(args).await,
        Command::Doctor(args) => operations::doctor(&args, credentials).await,
        Command::Completions { shell } => docs::completions(shell),
        Command::Man { directory } => docs::man(directory.as_deref()),
    }
}
