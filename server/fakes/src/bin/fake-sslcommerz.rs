//! Runs the SSLCommerz fake: `fake-sslcommerz [ADDRESS]`, by default on a free port.
#![forbid(unsafe_code)]

#[tokio::main]
async fn main() -> std::process::ExitCode {
    gateway_fakes::run(gateway_fakes::sslcommerz::SslCommerz::new()).await
}
