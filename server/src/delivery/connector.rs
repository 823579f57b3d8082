//! Connects to endpoints by TCP, and by TLS for https.

use std::{
    error::Error,
    io,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use futures_util::future::BoxFuture;
use hyper::Uri;
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder, MaybeHttpsStream};
use hyper_util::{client::legacy::connect::HttpConnector, rt::TokioIo};
use tokio::{net::TcpStream, sync::Semaphore};
use tower_service::Service;

use super::{
    TargetPolicy,
    connection::Watched,
    fault::{Fault, causes},
    lookups::Lookups,
    resolver::Resolver,
};

/// Connects. A connection that opens while the permits for reusable ones are taken serves a single request.
#[derive(Clone)]
pub(super) struct Connector {
    https: HttpsConnector<HttpConnector<Resolver>>,
    reusable: Arc<Semaphore>,
}

impl Connector {
    pub(super) fn new(
        targets: TargetPolicy,
        lookups: Lookups,
        max_reusable: usize,
    ) -> Result<Self, Box<dyn Error + Send + Sync>> {
        let mut tcp = HttpConnector::new_with_resolver(Resolver { targets, lookups });
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_keepalive(Some(Duration::from_secs(15)));
        let https = HttpsConnectorBuilder::new().try_with_platform_verifier()?.https_or_http().enable_http1();
        Ok(Self { https: https.wrap_connector(tcp), reusable: Arc::new(Semaphore::new(max_reusable)) })
    }
}

impl Service<Uri> for Connector {
    type Response = TokioIo<Watched<TokioIo<MaybeHttpsStream<TokioIo<TcpStream>>>>>;
    type Error = Fault;
    type Future = BoxFuture<'static, Result<Self::Response, Fault>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Fault>> {
        self.https.poll_ready(cx).map_err(|error| fault(&*error, false))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let is_ipv6_literal = uri.host().is_some_and(|host| host.starts_with('['));
        let (connecting, reusable) = (self.https.call(uri), Arc::clone(&self.reusable).try_acquire_owned().ok());
        Box::pin(async move {
            let stream = connecting.await.map_err(|error| fault(&*error, is_ipv6_literal))?;
            Ok(TokioIo::new(Watched::new(TokioIo::new(stream), reusable)))
        })
    }
}

/// Classifies a connection error. The TCP layer wraps its errors and those of the resolver, the TLS layer does not.
fn fault(error: &(dyn Error + 'static), is_ipv6_literal: bool) -> Fault {
    let below_tls = causes(error).skip(1).find_map(|cause| {
        let of_tcp = || Some(Fault::of_tcp(cause.downcast_ref()?, is_ipv6_literal));
        cause.downcast_ref().cloned().or_else(of_tcp)
    });
    below_tls.filter(|_| !error.is::<io::Error>()).unwrap_or_else(|| Fault::of_tls(error))
}
