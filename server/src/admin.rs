//! The administrative commands, such as `keys create`. A running server executes them; without one, this process opens
//! the store and executes them itself.

use std::{
    io::{self, Write},
    path::{Path, absolute},
    sync::Arc,
    time::Duration,
};

use payments_core::{AppId, FeeRate};
use tokio_util::task::TaskTracker;

use crate::{
    admin_socket,
    ambient::{Ambient, OperatingSystem},
    cli::{
        AdminArgs, AdminCommand, AppsCommand, KeysCommand, ReconcileCommand, RefundsCommand, ResolveAs,
        WorkspacesCommand,
    },
    delivery::{Bell, Sender, TargetPolicy},
    descriptors::Shares,
    failure::Failure,
    gateway::Gateways,
    metrics::Metrics,
    service::{AdminReply, AdminRequest, Claims, Ending, Service, Settings},
    store::{ServerId, embedded::EmbeddedStore},
};

/// Executes a command and prints its result.
pub(crate) async fn administer(command: AdminCommand) -> Result<(), Failure> {
    let (request, AdminArgs { data, json }) = request(command)?;
    let directory = &data.data_dir;
    let reply = match admin_socket::ask(directory, &request).await {
        Ok(Some(reply)) => reply,
        Ok(None) => administer_offline(directory, request).await?,
        Err(error) => return Err(format!("cannot reach the running server on {}: {error}", directory.display()).into()),
    };
    print(reply, json)
}

/// Converts a command to the service's request.
fn request(command: AdminCommand) -> io::Result<(AdminRequest, AdminArgs)> {
    Ok(match command {
        AdminCommand::Workspaces(WorkspacesCommand::Create { name, admin }) => {
            (AdminRequest::CreateWorkspace { name }, admin)
        }
        AdminCommand::Keys(KeysCommand::Create { workspace, environment, app, admin }) => {
            (AdminRequest::CreateKey { workspace, environment: environment.into(), app }, admin)
        }
        AdminCommand::Keys(KeysCommand::List { admin }) => (AdminRequest::ListKeys, admin),
        AdminCommand::Keys(KeysCommand::Revoke { id, admin }) => (AdminRequest::RevokeKey { id }, admin),
        AdminCommand::Keys(KeysCommand::Rotate { id, admin }) => (AdminRequest::RotateKey { id }, admin),
        AdminCommand::Apps(AppsCommand::Create { workspace, name, redirect_uris, webhook_url, admin }) => {
            (AdminRequest::CreateApp { workspace, name, redirect_uris, webhook_url }, admin)
        }
        AdminCommand::Refunds(RefundsCommand::List { admin }) => (AdminRequest::ListRefunds, admin),
        AdminCommand::Refunds(RefundsCommand::Settle { payment, reference, admin }) => {
            (AdminRequest::SettleRefund { payment, reference }, admin)
        }
        AdminCommand::Reconcile(ReconcileCommand::List { admin }) => (AdminRequest::ListReviews, admin),
        AdminCommand::Reconcile(ReconcileCommand::Resolve { payment, note, ending, admin }) => {
            let ending = ending.map(|ending| match ending {
                ResolveAs::Paid => Ending::Paid,
                ResolveAs::Failed => Ending::Failed,
            });
            (AdminRequest::ResolveReview { payment, note, ending }, admin)
        }
        AdminCommand::Backup { directory, admin } => (AdminRequest::BackUp { directory: absolute(directory)? }, admin),
    })
}

async fn administer_offline(directory: &Path, request: AdminRequest) -> Result<AdminReply, Failure> {
    let ambient: Arc<dyn Ambient> = Arc::new(OperatingSystem);
    let (store, closing) = EmbeddedStore::open(directory, Arc::clone(&ambient), Metrics::new().commits)?;
    let targets = TargetPolicy { allow_local: false };
    let server = ServerId(ambient.random());
    let service = Service {
        gateways: Gateways::none(),
        store: Arc::new(store),
        sender: Arc::new(Sender::new(Arc::clone(&ambient), targets, "Service", Shares::default())?),
        ambient,
        claims: Claims::new(Metrics::new().outside_effects),
        fan_out: Bell::new(),
        server,
        tasks: TaskTracker::new(),
        settings: Settings {
            base_url: String::new(),
            session_ttl_seconds: 0,
            delivery_body_days: None,
            fee_rate: FeeRate::from_basis_points(0)?,
            gateway_timeout: Duration::ZERO,
            targets,
            has_sandbox: false,
            max_webhook_endpoints: 0,
        },
    };
    let reply = service.administer(request).await;
    drop(service);
    tokio::task::spawn_blocking(|| closing.wait()).await?;
    Ok(reply)
}

fn print(reply: AdminReply, json: bool) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    match reply {
        AdminReply::Error { error } => return Err(error.into()),
        reply if json => writeln!(out, "{}", serde_json::to_string(&reply)?)?,
        AdminReply::Workspace { id, .. } => writeln!(out, "{id}")?,
        AdminReply::Key { key } => writeln!(out, "{key}")?,
        AdminReply::App { app_id, .. } => writeln!(out, "{app_id}")?,
        AdminReply::Revoked { id, revoked_at } => writeln!(out, "{id} revoked at {revoked_at}")?,
        AdminReply::Refunds { refunds } => {
            for row in refunds {
                let transaction = row.transaction.as_deref().unwrap_or("-");
                let phone = row.customer_phone.as_deref().unwrap_or("-");
                let (amount, currency) = (&row.amount, row.currency.code());
                writeln!(out, "{} {amount} {currency} {transaction} {phone} {}", row.payment, row.created_at)?;
            }
        }
        AdminReply::Settled { payment, reference, settled_at } => {
            writeln!(out, "{payment} settled at {settled_at} as {reference}")?;
        }
        AdminReply::Reviews { reviews } => {
            for row in reviews {
                let (amount, currency) = (&row.amount, row.currency.code());
                writeln!(out, "{} {} {amount} {currency} {} {}", row.payment, row.raw_status, row.found_at, row.what)?;
            }
        }
        AdminReply::Resolved { resolved, raw_status } => writeln!(out, "{resolved} resolved, {raw_status}")?,
        AdminReply::BackedUp(made) => {
            writeln!(out, "{} holds {} records, up to change {}", made.directory.display(), made.records, made.to)?;
        }
        AdminReply::Keys { keys } => {
            for key in keys {
                let revoked = key.revoked_at.map_or("-".to_owned(), |at| at.to_string());
                writeln!(
                    out,
                    "{} {} {} ...{} {} {revoked} {}",
                    key.id,
                    key.workspace,
                    key.environment,
                    key.last4,
                    key.created_at,
                    key.app.as_ref().map_or("-", AppId::as_str)
                )?;
            }
        }
    }
    Ok(())
}
