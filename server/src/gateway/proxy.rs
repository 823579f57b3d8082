//! The way to the gateways where they cannot be reached directly.

use reqwest::{ClientBuilder, Proxy};
use secrecy::{ExposeSecret, SecretString};
use url::Url;

/// A proxy that the operator has named. It may hold a password, so no error and no log shows it.
#[derive(Debug, Clone)]
pub(crate) struct GatewayProxy(SecretString);

/// An address that no proxy can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("--gateway-proxy is not an address such as http://proxy.internal:3128")]
pub(crate) struct ProxyAddressError;

impl GatewayProxy {
    pub(crate) fn new(address: SecretString) -> Result<Self, ProxyAddressError> {
        let url = Url::parse(address.expose_secret()).map_err(|_| ProxyAddressError)?;
        let is_proxy = matches!(url.scheme(), "http" | "https") && url.has_host();
        if is_proxy { Ok(Self(address)) } else { Err(ProxyAddressError) }
    }
}

/// Has a client go by the named proxy, or directly. What the environment says of proxies counts for neither: a variable
/// that was set for another program must not decide which way customers' payments go.
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
    fn a_proxy_has_an_http_address_and_its_password_is_never_shown() {
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
            if let Ok(proxy) = proxy {
                assert!(by(reqwest::Client::builder(), Some(&proxy)).is_ok(), "{address}");
            }
        }
    }
}
