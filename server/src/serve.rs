//! `payments-server serve`: puts the parts together, runs them, and takes them apart again.

use std::{
    io::{self, Write},
    sync::Arc,
    time::Duration,
};

use payments_core::FeeRate;
use tokio::{
    signal::unix::{SignalKind, signal},
    sync::watch,
    time::timeout,
};

use crate::{
    admin_socket,
    ambient::{Ambient, OperatingSystem},
    books,
    cli::ServeArgs,
    delivery::{Bell, Dispatcher, FanOut, Sender, TargetPolicy},
    descriptors,
    failure::Failure,
    file_modes,
    gateway::{Credentials, Gateways},
    greeting::greeting,
    http::{self, ConnectionsByAddress, Edge, Limits, Listener, MetricsAt, RateLimits, Reference, TrustedProxies},
    metrics::Metrics,
    reach::Reach,
    service::{Claims, Service, Settings},
    store::{Disposable, Sandboxed, ServerId, Store, sled::SledStore},
};

/// Serves until it is told to stop.
pub(crate) async fn serve(args: ServeArgs, credentials: Credentials) -> Result<(), Failure> {
    let ambient: Arc<dyn Ambient> = Arc::new(OperatingSystem);
    let server = ServerId::new(ambient.random());
    let metrics = Metrics::new();
    let shares = descriptors::divide(descriptors::raise_limit(), args.max_connections)?;
    let bounds =
        Limits { connections: shares.connections, drain: Duration::from_secs(args.drain.into()), ..Limits::default() };
    let listener = Listener::bind(args.listen, bounds)
        .await
        .map_err(|error| format!("cannot listen on {}: {error}; choose another with --listen", args.listen))?;
    let address = listener.address()?;
    let base_url = match args.base_url {
        Some(text) => base_url(&text)?,
        None => format!("http://{address}"),
    };
    let reach = Reach::of(&base_url, address);
    let metrics_at = MetricsAt::of(args.metrics_listen, reach, bounds).await?;
    let targets = TargetPolicy { allow_local: args.allow_local_targets || reach == Reach::Local };

    books::remove_left_copies(&args.data.data_dir)?;
    let (store, closing) = SledStore::open(&args.data.data_dir, Arc::clone(&ambient), metrics.commits.clone())?;
    file_modes::warn_of_readable(&args.data.data_dir);
    let store: Arc<dyn Store> = Arc::new(store);
    let sender = Arc::new(Sender::new(Arc::clone(&ambient), targets, &args.header_word, shares)?);
    let patience = Duration::from_secs(args.gateway_timeout.into());
    let gateways = Gateways::new(credentials, &store, &ambient, patience, args.gateway_proxy, &metrics.gateways)?;
    let mut service = Service {
        gateways,
        store: Arc::clone(&store),
        ambient: Arc::clone(&ambient),
        sender: Arc::clone(&sender),
        claims: Claims::new(metrics.outside_effects.clone()),
        fan_out: Bell::new(),
        server,
        settings: Settings {
            base_url,
            session_ttl_seconds: args.session_ttl,
            delivery_body_days: Some(args.delivery_body_days).filter(|days| *days > 0),
            fee_rate: FeeRate::from_basis_points(args.fee_bps)?,
            gateway_timeout: patience,
            targets,
            has_sandbox: args.sandbox || reach == Reach::Local,
            max_webhook_endpoints: args.max_webhook_endpoints.into(),
        },
    };
    // Where others reach it, the sandbox is everybody's: a store of its own, which they cannot fill for good.
    let directory = args.data.data_dir.join("sandbox");
    let sandbox = match service.prepare_sandbox().await?.filter(|_| reach == Reach::Public) {
        None => {
            Disposable::remove_left(&directory)?;
            None
        }
        Some(workspace) => {
            let max_bytes = u64::from(args.sandbox_mib) * 1024 * 1024;
            let (ambient, gauges) = (Arc::clone(&ambient), metrics.sandbox.clone());
            Some(Arc::new(Disposable::open(directory, max_bytes, workspace, ambient, gauges).await?))
        }
    };
    let store: Arc<dyn Store> = match &sandbox {
        None => store,
        Some(sandbox) => Arc::new(Sandboxed::new(store, Arc::clone(sandbox))),
    };
    service.store = Arc::clone(&store);
    let service = Arc::new(service);
    let renewing = sandbox.clone().map(|sandbox| tokio::spawn(sandbox.renew()));
    let (deliveries, at_once) = (metrics.deliveries.clone(), shares.deliveries);
    let dispatcher = Dispatcher::new(Arc::clone(&store), Arc::clone(&ambient), server, sender, deliveries, at_once);
    let fan_out = FanOut::new(
        Arc::clone(&store),
        Arc::clone(&ambient),
        Arc::clone(&dispatcher),
        server,
        Arc::clone(&service.fan_out),
    );
    let admin = admin_socket::bind(&args.data.data_dir)
        .map_err(|error| format!("cannot make admin.sock in {}: {error}", args.data.data_dir.display()))?;

    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let (stopping, is_stopping) = watch::channel(false);
    let stop = async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        stopping.send_replace(true);
        tracing::info!("shutting down: no new connections, requests under way may end");
    };
    let administering = tokio::spawn(admin_socket::serve(admin, Arc::clone(&service)));
    let expiring = tokio::spawn(Arc::clone(&service).expire_sessions());
    let tidying = tokio::spawn(Arc::clone(&service).tidy());
    let reconciling = tokio::spawn(Arc::clone(&service).reconcile());
    let backing_up = args.backup_dir.map(|directory| {
        let every = Duration::from_secs(args.backup_every.into());
        let schedule = books::Schedule { directory, every, keep: args.backup_keep.into() };
        tokio::spawn(books::back_up_regularly(Arc::clone(&store), Arc::clone(&ambient), schedule))
    });
    let dispatching = tokio::spawn(Arc::clone(&dispatcher).run());
    let fanning_out = tokio::spawn(fan_out.run());
    let greeting = greeting(&service.settings.base_url, address, service.offered_key().await);
    let mut out = io::stdout();
    if let Err(error) = out.write_all(greeting.as_bytes()).and_then(|()| out.flush()) {
        // Whoever started the server may have closed its output; that is no reason not to serve.
        tracing::debug!(%error, "nobody reads the standard output");
    }
    let proxies = TrustedProxies::new(args.trusted_proxies);
    let per_address = descriptors::per_address(shares.connections, args.max_connections_per_address);
    metrics.requests.connections_at_most.set(i64::try_from(shares.connections)?);
    let addresses = ConnectionsByAddress::new(per_address, proxies.clone());
    let evicted = &metrics.requests.rate_windows_evicted;
    let limits = Arc::new(RateLimits::new(args.rate_limit, args.keyless_rate_limit, proxies, evicted));
    let server = Arc::new(http::Server {
        service: Arc::clone(&service),
        limits: Arc::clone(&limits),
        metrics: metrics.clone(),
        metrics_from: args.metrics_from.into(),
        reference: Reference::new(&service.settings.base_url),
        is_stopping: is_stopping.clone(),
    });
    let edge = Edge {
        routes: http::routes(&server, metrics_at.parts()),
        ambient: Arc::clone(&ambient),
        limits: Arc::clone(&limits),
        addresses,
        metrics: metrics.requests.clone(),
    };
    let watching = metrics_at.serve(&server, ambient, limits, is_stopping.clone());
    let mut stopped = is_stopping;
    // Deliveries under way end while requests do.
    let delivering = async {
        let _ = stopped.wait_for(|is_stopping| *is_stopping).await;
        dispatcher.close(bounds.drain).await;
    };
    tokio::join!(listener.serve(edge, stop), watching, delivering);
    drop(server);

    administering.abort();
    expiring.abort();
    reconciling.abort();
    tidying.abort();
    dispatching.abort();
    fanning_out.abort();
    if let Some(backing_up) = backing_up {
        backing_up.abort();
        let _ = backing_up.await;
    }
    if let Some(renewing) = renewing {
        renewing.abort();
        let _ = renewing.await;
    }
    // The committer ends when the last way to it is gone, after everything that was queued.
    let _ = (administering.await, expiring.await, tidying.await, reconciling.await);
    let _ = (dispatching.await, fanning_out.await);
    drop((service, dispatcher, store));
    let close = move || {
        if let Some(sandbox) = sandbox.and_then(Arc::into_inner) {
            sandbox.close();
        }
        closing.wait();
    };
    match timeout(CLOSING, tokio::task::spawn_blocking(close)).await {
        Ok(closed) => {
            closed?;
            tracing::info!("shut down");
        }
        // What was cut off may still hold on to the store; all that was answered is in the journal.
        Err(_) => tracing::warn!("shut down before everything had let go of the store"),
    }
    Ok(())
}

/// How long the store may take to close when nothing asks anything of it any more.
const CLOSING: Duration = Duration::from_secs(5);

/// An absolute http(s) address, without the slash at its end.
fn base_url(text: &str) -> Result<String, Failure> {
    let url = url::Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    match url {
        Some(_) => Ok(text.trim_end_matches('/').to_owned()),
        None => Err(format!("--base-url {text} is not an absolute http or https address").into()),
    }
}
