//! The proxy to the gateways, for networks that cannot reach them directly.

use reqwest::{ClientBuilder, Proxy};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

use super::error::GatewaySetupError;

/// A proxy's address. It may hold a password, so no error and no log shows it.
#[derive(Debug)]
pub struct GatewayProxy(SecretString);

impl GatewayProxy {
    pub(super) fn new(address: SecretString) -> Result<Self, GatewaySetupError> {
        match Url::parse(address.expose_secret()) {
            Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(Self(address)),
            _ => Err(GatewaySetupError::Proxy),
        }
    }

    pub fn has_password(address: &str) -> bool {
        Url::parse(address).is_ok_and(|url| url.password().is_some())
    }
}

/// Makes a client use the proxy, or no proxy at all. Ignores proxies from the environment: a variable set for another
/// program must not route customers' payments.
pub(super) fn by(client: ClientBuilder, proxy: Option<&GatewayProxy>) -> Result<ClientBuilder, reqwest::Error> {
    let client = client.no_proxy();
    match proxy {
        Some(GatewayProxy(address)) => {
            Proxy::all(address.expose_secret()).map(|proxy| client.proxy(proxy)).map_err(reqwest::Error::without_url)
        }
        None => Ok(client),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_has_an_http_address_and_its_password_is_not_shown() {
        for (address, fits) in [
            ("http://proxy.internal:3128", true),
            ("https://user:hush@proxy.internal", true),
            ("http://[::1]:3128/", true),
            ("proxy.internal:3128", false),
            ("socks5://proxy.internal", false),
            ("http://", false),
            ("hush", false),
        ] {
            let proxy = GatewayProxy::new(address.into());
            assert_eq!(proxy.is_ok(), fits, "{address}");
            assert!(!format!("{proxy:?}").contains("hush"));
            assert_eq!(GatewayProxy::has_password(address), address.contains(":hush@"), "{address}");
            if let Ok(proxy) = proxy {
                assert!(by(reqwest::Client::builder(), Some(&proxy)).is_ok(), "{address}");
            }
        }
    }
}
