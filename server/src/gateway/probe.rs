//! Whether the gateways can be reached: one request to each, without credentials.

use std::time::{Duration, Instant, SystemTime};

use reqwest::{Client, redirect};
use secrecy::SecretString;

use super::{
    Credentials,
    call::innermost,
    error::GatewaySetupError,
    proxy::{self, GatewayProxy},
};

const PATIENCE: Duration = Duration::from_secs(10);

/// The outcome of a request to a gateway.
pub struct Probe {
    pub gateway: &'static str,
    pub url: String,
    /// The answer, or why there is none.
    pub answer: Result<Answer, String>,
}

/// Any response, whatever its status.
pub struct Answer {
    pub took: Duration,
    /// The gateway's clock, in whole seconds.
    pub date: Option<SystemTime>,
}

/// Sends a request to each configured gateway, through the proxy that payments use.
pub async fn probe(credentials: &Credentials, proxy: Option<SecretString>) -> Result<Vec<Probe>, GatewaySetupError> {
    let proxy = proxy.map(GatewayProxy::new).transpose()?;
    let client = Client::builder().redirect(redirect::Policy::none()).timeout(PATIENCE);
    let client = proxy::by(client, proxy.as_ref())?.build()?;
    let mut probes = Vec::new();
    for (declared, settings) in credentials.configured() {
        let url = settings.text("base_url").to_owned();
        probes.push(Probe { gateway: declared.title, answer: ask(&client, &url).await, url });
    }
    Ok(probes)
}

async fn ask(client: &Client, url: &str) -> Result<Answer, String> {
    let begun = Instant::now();
    let response = client.get(url).send().await.map_err(|error| innermost(&error.without_url()))?;
    let date = response.headers().get("date").and_then(|date| date.to_str().ok());
    Ok(Answer { took: begun.elapsed(), date: date.and_then(|date| httpdate::parse_http_date(date).ok()) })
}
