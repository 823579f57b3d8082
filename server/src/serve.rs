//! `payments-server serve`: starts the server, runs it until SIGINT or SIGTERM, and shuts it down in order.

mod disposable;
mod front;
mod greeting;
mod lasting;
mod sandbox;
mod tasks;
pub mod workers;

use std::{
    pin::pin,
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use payments_core::FeeRate;
use tokio::{
    sync::{Notify, watch},
    time::{sleep, timeout},
};

use self::{
    disposable::Disposable, front::Front, greeting::Greeting, lasting::Lasting, sandbox::Sandbox, tasks::Tasks,
};
use crate::{
    administration::socket,
    ambient::{Ambient, OperatingSystem},
    cli::{CommandError, ServeArgs},
    commands::operations,
    delivery::{Dispatcher, LONGEST_ATTEMPT, Sender, TargetPolicy},
    gateway::{Credentials, Gateways},
    http::People,
    log::terminal::Output,
    metrics::Metrics,
    process::reach::Reach,
    service::{LastBackup, NoticeSettings, Service, Services, Settings},
    store::Series,
    trace,
};

/// How long tasks and stores may take to close after the last request.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long a start waits before it listens although the database is silent or its tables are being updated.
const SILENT_START: Duration = Duration::from_secs(5);

pub async fn serve(args: ServeArgs, credentials: Credentials) -> Result<(), CommandError> {
    trace::start()?;
    let ambient: Arc<dyn Ambient> = Arc::new(OperatingSystem);
    let (metrics, tasks) = (Metrics::new(), Tasks::default());
    if args.backup_dir.is_some() {
        args.data
            .directory("back up a database with its own tools, such as pg_basebackup, and leave --backup-dir out")?;
    }
    let front = Front::bind(&args).await?;
    let is_on_database = args.data.database_url.is_some();
    let own_sandbox = match front.own_sandbox {
        Some(shares) => Some((args.sandbox_directory()?, shares)),
        None => None,
    };
    let lasting = Lasting::open(args.data.location()?, Arc::clone(&ambient), &metrics)?;
    let ambient = lasting.ambient();
    let people = args.people.settings(&front.base_url)?.map(People::new).transpose()?;
    let gateways = credentials.modes();
    let service = Arc::new(service(&args, credentials, &front, &lasting, ambient, &metrics, &tasks)?);
    let notices = args.notices.settings(&service.settings.targets)?;
    let (present_sandbox, sandbox) = watch::channel(None);
    let services = Arc::new(Services::new(Arc::clone(&service), own_sandbox.as_ref().map(|_| sandbox)));
    let (ambient, sender) = (Arc::clone(&service.ambient), Arc::clone(&service.sender));
    let (deliveries, permits) = (metrics.deliveries.clone(), front.shares.deliveries);
    let dispatcher = Dispatcher::new(lasting.store(), ambient, sender, deliveries, permits);

    tasks.stop_on_signals()?;
    let address = front.address;
    let drain = Duration::from_secs(args.drain.into());
    let started = {
        let waits = Arc::new(Notify::new());
        let opened = lasting.database_opens(Arc::clone(&waits));
        let mut starting = pin!(tasks.stopping.clone().run_until_cancelled_owned(async {
            opened.await?;
            start_workers(&args, &lasting, &services, &dispatcher, &metrics, &tasks, notices)?;
            let workspace = match is_on_database {
                true => service.prepare_sandbox_in_time().await?,
                false => service.prepare_sandbox().await?,
            };
            match own_sandbox.zip(workspace) {
                Some(((directory, shares), workspace)) => {
                    let max_bytes = u64::from(args.sandbox_mib) * 1024 * 1024;
                    let (ambient, gauges) = (Arc::clone(&service.ambient), metrics.sandbox.clone());
                    let named = format!("cannot open the sandbox in {} (--sandbox-dir)", directory.display());
                    let opened = Disposable::open(directory, max_bytes, workspace, ambient, gauges).await;
                    let opened = opened.map_err(|error| format!("{named}: {error}"))?;
                    let lasting = Arc::clone(&service);
                    Sandbox::start(&args, shares, opened, lasting, &metrics, present_sandbox, &tasks)?;
                }
                // A directory that the operator named may contain other things.
                None if is_on_database || args.sandbox_dir.is_some() => {}
                None => Disposable::remove_left(&args.sandbox_directory()?)?,
            }
            Ok::<_, CommandError>(service.offered_key().await)
        }));
        // If the database keeps the server waiting, the server listens meanwhile and says so.
        let at_once = tokio::select! {
            biased;
            started = &mut starting => Some(started.unwrap_or(Ok(None))?),
            () = waits.notified() => None,
            () = sleep(SILENT_START) => None,
        };
        let printer = printer();
        let _ = printer.send(format!("listening on http://{address}\n"));
        let greet = |sandbox_key| -> Result<(), CommandError> {
            let (base_url, data) = (&*service.settings.base_url, args.data.location()?);
            let _ = printer.send(Greeting { base_url, data, gateways, sandbox_key }.to_string());
            Ok(())
        };
        let greeting = async {
            let started = match at_once {
                Some(sandbox_key) => Ok(sandbox_key),
                None => starting.await.unwrap_or(Ok(None)),
            };
            let started = started.and_then(greet);
            if started.is_err() {
                tasks.stopping.cancel();
            }
            started
        };
        // Deliveries drain together with requests.
        let delivering = async {
            tasks.stopping.cancelled().await;
            let _ = timeout(drain.min(LONGEST_ATTEMPT), dispatcher.close()).await;
        };
        let serving = front.serve(&args, Arc::clone(&services), metrics.clone(), people, tasks.stopping.clone());
        tokio::join!(greeting, serving, delivering).0
    };

    let closing = async {
        tokio::join!(tasks.end(), dispatcher.close());
        service.store_logged_requests().await;
        drop((service, services, dispatcher));
        lasting.close().await
    };
    let closed = timeout(CLOSE_TIMEOUT, closing).await;
    trace::end().await;
    if let Ok(closed) = closed {
        closed?;
        tracing::info!("shut down");
    } else {
        // The journal has every acknowledged change.
        tracing::warn!("shut down before all tasks ended and the store closed; no acknowledged change is lost");
    }
    started
}

/// Starts all workers on the lasting store.
fn start_workers(
    args: &ServeArgs,
    lasting: &Lasting,
    services: &Arc<Services>,
    dispatcher: &Arc<Dispatcher>,
    metrics: &Metrics,
    tasks: &Tasks,
    mut notices: NoticeSettings,
) -> Result<(), CommandError> {
    let service = &services.lasting;
    // With a database, the command line opens the store itself, besides the servers.
    if args.data.database_url.is_none() {
        let data_dir = &args.data.data_dir;
        let admin = socket::bind(data_dir)
            .map_err(|error| format!("cannot create admin.sock in {}: {error}", data_dir.display()))?;
        tasks.start_worker(socket::serve(admin, Arc::clone(services)));
    }
    for worker in workers::of(service, dispatcher, metrics) {
        tasks.start_worker(worker);
    }
    if let Some(directory) = args.backup_dir.clone() {
        let every = Duration::from_secs(args.backup_every.into());
        let series = Series { directory, every, keep: args.backup_keep.into() };
        let (store, ambient) = (Arc::clone(&service.store), Arc::clone(&service.ambient));
        let last = Arc::new(LastBackup::due_now(every, ambient.now()));
        notices.backups = Some(Arc::clone(&last));
        tasks.start_worker(operations::back_up_regularly(store, ambient, series, last));
    }
    tasks.start_worker(Arc::clone(service).keep_notices(notices));
    if let Some(workers) = lasting.of_database() {
        tasks.start_worker(workers);
    }
    Ok(())
}

fn service(
    args: &ServeArgs,
    credentials: Credentials,
    front: &Front,
    lasting: &Lasting,
    ambient: Arc<dyn Ambient>,
    metrics: &Metrics,
    tasks: &Tasks,
) -> Result<Service, CommandError> {
    let store = lasting.store();
    let gateway_timeout = Duration::from_secs(args.gateway_timeout.into());
    let proxy = args.gateway_proxy.clone();
    let targets = TargetPolicy::new(args.allow_local_targets || front.reach == Reach::Local);
    let targets = targets.except(&front.base_url, front.address);
    let (calls, tracker) = (&metrics.gateways, &tasks.tracker);
    let gateways = Gateways::new(&credentials, &store, &ambient, gateway_timeout, proxy, calls, tracker)?;
    let sender = Sender::new(Arc::clone(&ambient), targets.clone(), &args.header_word, front.shares)?;
    let settings = Settings {
        base_url: front.base_url.clone(),
        session_ttl_seconds: args.session_ttl,
        delivery_body_days: Some(args.delivery_body_days).filter(|days| *days > 0),
        audit_days: Some(args.audit_days).filter(|days| *days > 0),
        fee_rate: FeeRate::from_basis_points(args.fee_bps)?,
        gateway_timeout,
        targets,
        has_sandbox: args.sandbox || front.reach == Reach::Local,
        is_local: front.reach == Reach::Local,
        max_webhook_endpoints: args.max_webhook_endpoints.into(),
        merchants_bear_costs: args.merchants_bear_gateway_costs,
        disputes_return_fee: args.disputes_return_fee,
        payouts: args.payouts.settings()?,
        retention: args.retention.settings(),
    };
    Ok(Service::new(store, ambient, Arc::new(sender), gateways, settings, metrics, tracker.clone()))
}

/// Prints lines in a thread of its own, because the parent process may have closed our output, or may not read it.
fn printer() -> mpsc::Sender<String> {
    let (printer, texts) = mpsc::channel::<String>();
    let print = move || {
        for text in texts {
            if let Err(error) = Output::new().text(text.as_bytes()) {
                tracing::debug!(%error, "cannot write to the standard output");
            }
        }
    };
    if let Err(error) = thread::Builder::new().name("greeting".into()).spawn(print) {
        tracing::warn!(%error, "cannot print the server's address");
    }
    printer
}
