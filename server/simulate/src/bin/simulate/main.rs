//! `simulate`: plays worlds of payments servers, one from each seed.
//!
//! ```sh
//! cargo run --profile simulate -p simulate -- --seeds 1000 --jobs 2
//! cargo run --profile simulate -p simulate -- --seed 42 --trace
//! cargo run --profile simulate -p simulate -- --planted
//! ```
#![forbid(unsafe_code)]

mod arguments;
mod planted;
mod play;
mod smaller;

use std::process::ExitCode;

use clap::Parser as _;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let arguments = arguments::Arguments::parse();
    if arguments.log {
        tracing_subscriber::fmt().with_writer(std::io::stderr).without_time().with_ansi(false).init();
    }
    let is_sound = match &arguments.planted {
        Some(words) => planted::find_all(&arguments, words.as_deref().unwrap_or_default()),
        None => play::play(&arguments),
    };
    match is_sound {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    }
}
