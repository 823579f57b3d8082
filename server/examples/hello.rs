//! The least that warp can do, to measure the server against: one route, six bytes, warp's own accept loop.
//!
//! `cargo run --release -p payments-server --example hello -- 127.0.0.1:8081`, and see BENCHMARKS.md.

use std::{net::SocketAddr, process::ExitCode};

use warp::Filter;

#[tokio::main]
async fn main() -> ExitCode {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8081".into());
    let Ok(address) = address.parse::<SocketAddr>() else {
        eprintln!("{address:?} is no address such as 127.0.0.1:8081");
        return ExitCode::FAILURE;
    };
    let hello = warp::path("hello").and(warp::get()).map(|| "hello\n");
    warp::serve(hello).run(address).await;
    ExitCode::SUCCESS
}
