//! Runs the fake of an OpenID Connect provider: `fake-oidc [ADDRESS]`, by default on a free port.
#![forbid(unsafe_code)]

#[tokio::main]
async fn main() -> std::process::ExitCode {
    gateway_fakes::run(gateway_fakes::oidc::Oidc::new()).await
}
