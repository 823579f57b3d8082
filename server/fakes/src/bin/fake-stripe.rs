//! Runs the Stripe fake: `fake-stripe [ADDRESS]`, by default on a free port.
#![forbid(unsafe_code)]

#[tokio::main]
async fn main() -> std::process::ExitCode {
    gateway_fakes::run(gateway_fakes::stripe::Stripe::new()).await
}
