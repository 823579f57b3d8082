//! Runs the bKash fake: `fake-bkash [ADDRESS]`, by default on a free port.
#![forbid(unsafe_code)]

#[tokio::main]
async fn main() -> std::process::ExitCode {
    gateway_fakes::run(gateway_fakes::bkash::Bkash::new()).await
}
