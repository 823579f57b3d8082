//! The administrative commands, such as `keys create`. A running server executes them; without one, this process opens
//! the store and executes them itself.

use std::{fs, io, path::absolute, sync::Arc};

use payments_core::Timestamp;
use serde_json::json;

use crate::{
    ambient::{Ambient, OperatingSystem},
    cli::{
        Admin, AdminArgs, AdminCommand, AppsCommand, CommandError, CoverageArgs, DeliveriesCommand, DisputeMoveArgs,
        DisputesCommand, GatewaysCommand, KeysCommand, RefundsCommand, ReviewsCommand, WorkspacesCommand,
    },
    commands::{admin_socket, books, no_store::no_store_in},
    domain::Brand,
    gateway::Gateways,
    log::{
        self,
        terminal::{self, Output, cell},
    },
    service::{
        AdminReply, AdminRequest, AppRow, BooksRow, Directory, DisputeRequest, DisputeRow, GatewayReply,
        GatewayRequest, GatewayRow, KeyRow, RefundRow, ReviewRow, WorkspaceRow,
    },
    store::{
        BackedUp, Location, Store,
        embedded::{self, EmbeddedStore},
        postgres::{self, PostgresStore},
    },
};

pub async fn administer(command: AdminCommand) -> Result<(), CommandError> {
    let AdminArgs { data, json } = command.args();
    let (location, json) = (data.location()?, *json);
    let request = request(command)?;
    if request.shows_key() && terminal::is_discarded() {
        return Err("the standard output is closed or /dev/null, so nobody would see the key; none was created".into());
    }
    let reply = reply_to(request, location.clone()).await?;
    let AdminReply::Key { key } = &reply else { return print(reply, json) };
    let key = key.clone();
    let Err(error) = print(reply, json) else { return Ok(()) };
    // Nobody has seen the key, so revoke it.
    let revoked = match reply_to(AdminRequest::RevokeKey { id: key }, location).await {
        Ok(AdminReply::Revoked { .. }) => "it is revoked; create another",
        _ => "it could not be revoked either; find it with keys list, revoke it, and create another",
    };
    Err(format!("the new key could not be shown ({error}); {revoked}").into())
}

/// Sends a request to the running server, or executes it in this process if there is none.
async fn reply_to(request: AdminRequest, location: Location) -> Result<AdminReply, CommandError> {
    let mut connection = Connection::new(location);
    let reply = connection.ask(request).await;
    connection.close().await?;
    reply
}

/// Who executes requests: the running server, or this process with the store open.
pub(super) struct Connection {
    location: Location,
    opened: Option<(Arc<Store>, Closing)>,
}

enum Closing {
    Database(postgres::Closing),
    Directory(embedded::Closing),
}

impl Connection {
    pub(super) fn new(location: Location) -> Self {
        Self { location, opened: None }
    }

    pub(super) async fn ask(&mut self, request: AdminRequest) -> Result<AdminReply, CommandError> {
        if self.opened.is_none()
            && let Location::Directory(directory) = &self.location
            && let Some(reply) = admin_socket::ask(directory, &request).await?
        {
            return Ok(reply);
        }
        let ambient: Arc<dyn Ambient> = Arc::new(OperatingSystem);
        let store = match &self.opened {
            Some((store, _)) => Arc::clone(store),
            None => {
                let (store, closing) = open(&self.location, &ambient, &request).await?;
                self.opened = Some((Arc::clone(&store), closing));
                store
            }
        };
        // This process has no gateways.
        Ok(Directory { store, ambient }.administer(&Gateways::none(), request).await)
    }

    /// The answer to a request that succeeds.
    pub(super) async fn need(&mut self, request: AdminRequest) -> Result<AdminReply, CommandError> {
        match self.ask(request).await? {
            AdminReply::Error { error } => Err(error.into()),
            reply => Ok(reply),
        }
    }

    pub(super) async fn close(self) -> Result<(), CommandError> {
        let Some((store, closing)) = self.opened else { return Ok(()) };
        drop(store);
        match closing {
            Closing::Database(closing) => closing.wait().await,
            Closing::Directory(closing) => tokio::task::spawn_blocking(|| closing.wait()).await?,
        }
        Ok(())
    }
}

/// The answer is not one to the request.
pub(super) fn unexpected() -> CommandError {
    "the running server has another version; use the command line of that version".into()
}

/// Opens the store for a request.
async fn open(
    location: &Location,
    ambient: &Arc<dyn Ambient>,
    request: &AdminRequest,
) -> Result<(Arc<Store>, Closing), CommandError> {
    match location {
        Location::Database(target) => {
            if !target.has_tables().await? {
                let missing = format!("there is no store in {target}; name the right one with --database-url");
                begin(request, &target.to_string(), missing)?;
            }
            let (store, closing) = PostgresStore::open((**target).clone(), &**ambient).await?;
            Ok((store.into_store(), Closing::Database(closing)))
        }
        Location::Directory(directory) => {
            if !embedded::is_there(directory) {
                let missing = no_store_in(directory, "--data-dir");
                if fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some()) {
                    return Err(missing.into());
                }
                begin(request, &absolute(directory)?.display().to_string(), missing)?;
            }
            let (store, closing) = EmbeddedStore::open(directory, Arc::clone(ambient), |_, _| ())?;
            Ok((store.into_store(), Closing::Directory(closing)))
        }
    }
}

/// Only a new workspace may create a store. All other requests are about records of an existing store.
fn begin(request: &AdminRequest, place: &str, missing: String) -> Result<(), CommandError> {
    if !matches!(request, AdminRequest::CreateWorkspace { .. }) {
        return Err(missing.into());
    }
    log::say(format_args!("beginning a new store in {place}"));
    Ok(())
}

fn request(command: AdminCommand) -> io::Result<AdminRequest> {
    Ok(match command {
        AdminCommand::Workspaces(Admin { command, .. }) => match command {
            WorkspacesCommand::Create { name } => AdminRequest::CreateWorkspace { name },
            WorkspacesCommand::List => AdminRequest::ListWorkspaces,
            WorkspacesCommand::Ways { workspace, ways } => AdminRequest::SetWays { workspace, ways },
        },
        AdminCommand::Keys(Admin { command, .. }) => match command {
            KeysCommand::Create { workspace, environment, app, app_only, name, scopes, expires_at } => {
                AdminRequest::CreateKey {
                    workspace,
                    environment,
                    app,
                    only_its_app: app_only,
                    name,
                    scopes,
                    expires_at,
                }
            }
            KeysCommand::List => AdminRequest::ListKeys,
            KeysCommand::Revoke { id } => AdminRequest::RevokeKey { id },
            KeysCommand::Rotate { id, overlap } => {
                AdminRequest::RotateKey { id, overlap_seconds: overlap.unwrap_or(0) }
            }
        },
        AdminCommand::Apps(Admin { command, .. }) => match command {
            AppsCommand::Create { workspace, name, redirect_uris, webhook_url, logo_url, colour } => {
                let (webhook_url, brand) = (webhook_url.map(String::from), Brand { logo_url, colour });
                AdminRequest::CreateApp { workspace, name, redirect_uris, webhook_url, brand }
            }
            AppsCommand::Update { id, logo_url, colour } => AdminRequest::UpdateApp { id, logo_url, colour },
            AppsCommand::List => AdminRequest::ListApps,
        },
        AdminCommand::Refunds(Admin { command, .. }) => match command {
            RefundsCommand::List => AdminRequest::ListRefunds,
            RefundsCommand::Settle { refund, reference } => AdminRequest::SettleRefund { refund, reference },
        },
        AdminCommand::Disputes(Admin { command, .. }) => AdminRequest::Disputes(match command {
            DisputesCommand::List => DisputeRequest::List,
            DisputesCommand::Open { payment, amount, reference, reason, evidence_due_by, returns_fee } => {
                DisputeRequest::Open { payment, amount, reference, reason, evidence_due_by, returns_fee }
            }
            DisputesCommand::Withdraw(DisputeMoveArgs { dispute, amount, reference }) => {
                DisputeRequest::Move { dispute, amount, reference, is_reinstated: false }
            }
            DisputesCommand::Reinstate(DisputeMoveArgs { dispute, amount, reference }) => {
                DisputeRequest::Move { dispute, amount, reference, is_reinstated: true }
            }
            DisputesCommand::Close { dispute, outcome } => DisputeRequest::Close { dispute, outcome },
        }),
        AdminCommand::Deliveries(Admin { command, .. }) => match command {
            DeliveriesCommand::Resend { delivery } => AdminRequest::ResendDelivery { delivery },
            DeliveriesCommand::Recover { webhook, since, until } => {
                AdminRequest::RecoverWebhook { webhook, since, until }
            }
        },
        AdminCommand::Reviews(Admin { command, .. }) => match command {
            ReviewsCommand::List => AdminRequest::ListReviews,
            ReviewsCommand::Resolve { payment, note, outcome, transaction } => {
                AdminRequest::ResolveReview { payment, note, outcome, transaction }
            }
        },
        AdminCommand::Books(Admin { command, .. }) => AdminRequest::Books(books::request(command)),
        AdminCommand::Gateways(Admin { command, .. }) => AdminRequest::Gateways(match command {
            GatewaysCommand::List => GatewayRequest::List,
            GatewaysCommand::Disable { gateway, until } => GatewayRequest::Pause { gateway, until: Some(until) },
            GatewaysCommand::Enable { gateway } => GatewayRequest::Pause { gateway, until: None },
        }),
        AdminCommand::Coverage(CoverageArgs { date, .. }) => AdminRequest::Coverage { day: date },
        AdminCommand::Backup { directory, .. } => AdminRequest::BackUp { directory: absolute(directory)? },
    })
}

fn print_gateway(row: &GatewayRow, out: &mut Output) -> Result<(), CommandError> {
    let ways = row.ways.join(",");
    let health = match &row.health {
        None => "not configured here".to_owned(),
        Some(it) => {
            let held_back = if it.is_held_back { ", held back" } else { "" };
            format!("{} of {} calls answered in the last hour{held_back}", it.answered, it.answered + it.unanswered)
        }
    };
    let paused = row.paused_until.map(|until| format!("; paused until {until}")).unwrap_or_default();
    out.line(format_args!("{} {ways} {health}{paused}", row.gateway))?;
    Ok(())
}

/// Prints a reply. If nobody reads it, that is a failure only for a key, which cannot be shown again.
fn print(reply: AdminReply, json: bool) -> Result<(), CommandError> {
    let is_key = matches!(reply, AdminReply::Key { .. });
    let mut out = Output::new();
    match reply {
        AdminReply::Error { error } => return Err(error.into()),
        AdminReply::BackedUp(made) => print_backup(&made, json, &mut out)?,
        AdminReply::Coverage { coverage } => books::print_coverage(&coverage, json, &mut out)?,
        reply if json => out.json(&reply)?,
        AdminReply::Workspace { id, .. } => out.line(format_args!("{id}"))?,
        AdminReply::Ways { ways } if ways.is_empty() => out.line(format_args!("all"))?,
        AdminReply::Ways { ways } => out.line(format_args!("{}", ways.join(" ")))?,
        AdminReply::Workspaces { workspaces } => {
            let row = |WorkspaceRow { id, developer_id, name, created_at }| {
                format!("{id} {developer_id} {created_at} {name}")
            };
            out.table("WORKSPACE DEVELOPER CREATED NAME", workspaces.into_iter().map(row))?;
        }
        AdminReply::Apps { apps } => {
            let row = |AppRow { id, workspace, name, webhook_url, created_at, .. }| {
                let webhook_url = cell(webhook_url.as_deref().unwrap_or("-"));
                format!("{id} {workspace} {created_at} {webhook_url} {name}")
            };
            out.table("APP WORKSPACE CREATED WEBHOOK-URL NAME", apps.into_iter().map(row))?;
        }
        AdminReply::Key { key } => out.line(format_args!("{key}"))?,
        AdminReply::App { app_id, .. } => out.line(format_args!("{app_id}"))?,
        AdminReply::Revoked { id, revoked_at } => out.line(format_args!("{id} revoked at {revoked_at}"))?,
        AdminReply::Refunds { refunds } => {
            let row = |RefundRow { payment, refund, amount, currency, transaction, customer_phone, created_at }| {
                let [transaction, phone] =
                    [&transaction, &customer_phone].map(|text| cell(text.as_deref().unwrap_or("-")));
                format!("{payment} {amount} {currency} {transaction} {phone} {created_at} {refund}")
            };
            out.table("PAYMENT AMOUNT CURRENCY TRANSACTION PHONE CREATED REFUND", refunds.into_iter().map(row))?;
        }
        AdminReply::Settled { payment, reference, settled_at, .. } => {
            out.line(format_args!("{payment} settled at {settled_at} as {reference}"))?;
        }
        AdminReply::Disputes { disputes } => {
            let columns = "DUE DISPUTE PAYMENT STATUS AMOUNT CURRENCY WITHDRAWN REINSTATED OPENED REFERENCE REASON";
            out.table(columns, disputes.iter().map(dispute_row))?;
        }
        AdminReply::Dispute { dispute } => {
            let DisputeRow { dispute, payment, status, amount, currency, withdrawn, reinstated, .. } = *dispute;
            out.line(format_args!(
                "{dispute} of {payment}: {amount} {currency}, {status}, {withdrawn} withdrawn, {reinstated} reinstated"
            ))?;
        }
        AdminReply::Gateways { gateways } => match gateways {
            GatewayReply::Rows { rows } => rows.iter().try_for_each(|row| print_gateway(row, &mut out))?,
            GatewayReply::Paused { gateway, paused_until } => out.line(format_args!("{gateway} {paused_until}"))?,
            GatewayReply::Token { token_until } => out.line(format_args!("{token_until}"))?,
        },
        AdminReply::Booked { booked } => {
            let BooksRow { change, amount, currency, reference, recorded_at, .. } = booked;
            let (change, reference) = (change.as_str(), cell(&reference));
            out.line(format_args!("{change} {amount} {currency} as {reference}, recorded at {recorded_at}"))?;
        }
        AdminReply::Settlements { settlements } => out.json(&settlements)?,
        AdminReply::Payouts { payouts } => out.json(&payouts)?,
        AdminReply::Resent { delivery, .. } => out.line(format_args!("{delivery}"))?,
        AdminReply::Recovered { recovered } => out.line(format_args!("{recovered}"))?,
        AdminReply::Reviews { reviews } => {
            let row = |ReviewRow { payment, raw_status, amount, currency, what, found_at }| {
                format!("{payment} {raw_status} {amount} {currency} {found_at} {what}")
            };
            out.table("PAYMENT STATUS AMOUNT CURRENCY FOUND WHAT", reviews.into_iter().map(row))?;
        }
        AdminReply::Resolved { resolved, raw_status } => out.line(format_args!("{resolved} resolved, {raw_status}"))?,
        AdminReply::Keys { keys } => {
            let columns = "KEY WORKSPACE ENVIRONMENT LAST4 CREATED REVOKED APP SCOPES EXPIRES LAST-USED NAME";
            out.table(columns, keys.iter().map(key_row))?;
        }
    }
    match is_key && out.is_closed() {
        true => Err("its reader has gone".into()),
        false => Ok(()),
    }
}

/// Reads a new backup again, and prints what it contains.
fn print_backup(made: &BackedUp, json: bool, out: &mut Output) -> Result<(), CommandError> {
    let BackedUp { directory, from, to } = made;
    let (records, payments) = embedded::count_backup(directory).map_err(|error| {
        format!(
            "the backup was made, but this command cannot read it: {error}; a server that runs as a service may have a /tmp of \
             its own"
        )
    })?;
    if json {
        let line = json!({"directory": directory, "records": records, "payments": payments, "from": from, "to": to});
        return Ok(out.json(&line)?);
    }
    let directory = directory.display();
    Ok(out.line(format_args!("{directory} holds {records} records, {payments} of them payments, up to change {to}"))?)
}

fn dispute_row(row: &DisputeRow) -> String {
    let DisputeRow { dispute, payment, status, amount, currency, withdrawn, reinstated, opened_at, .. } = row;
    let due = row.evidence_due_by.map_or("-".to_owned(), |at| at.to_string());
    let reference = cell(row.reference.as_deref().unwrap_or("-"));
    let reason = row.reason.as_deref().unwrap_or("-");
    format!(
        "{due} {dispute} {payment} {status} {amount} {currency} {withdrawn} {reinstated} {opened_at} {reference} {reason}"
    )
}

fn key_row(row: &KeyRow) -> String {
    let KeyRow { id, workspace, environment, last4, created_at, .. } = row;
    let time = |at: Option<Timestamp>| at.map_or("-".to_owned(), |at| at.to_string());
    let [revoked, expires, used] = [row.revoked_at, row.expires_at, row.last_used_at].map(time);
    let only = if row.only_its_app { ",only" } else { "" };
    let app = row.app.as_ref().map_or("-".to_owned(), |app| format!("{app}{only}"));
    let name = row.name.as_deref().unwrap_or("-");
    let scopes = row
        .scopes
        .as_ref()
        .map_or("-".to_owned(), |scopes| scopes.iter().map(ToString::to_string).collect::<Vec<_>>().join(","));
    // The name comes last, because it may contain spaces.
    format!("{id} {workspace} {environment} ...{last4} {created_at} {revoked} {app} {scopes} {expires} {used} {name}")
}
