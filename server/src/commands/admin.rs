//! The administrative commands, such as `keys create`. A running server executes them; without one, this process opens
//! the store and executes them itself.

use std::{io, path::absolute};

use payments_core::Timestamp;
use serde_json::json;

use super::connection::{Connection, Place};
use crate::{
    cli::{
        Admin, AdminCommand, AppsCommand, CommandError, CoverageArgs, DeliveriesCommand, DisputeMoveArgs,
        DisputesCommand, GatewaysCommand, KeysCommand, NoticesCommand, RefundsCommand, ReviewsCommand,
        WorkspacesCommand,
    },
    commands::{books, operators, sessions},
    domain::Brand,
    log::terminal::{self, Output, cell},
    service::{
        AdminReply, AdminRequest, AppRow, BooksRow, DisputeRequest, DisputeRow, GatewayReply, GatewayRequest,
        GatewayRow, KeyRow, LimitsRow, NoticeRequest, NoticeRow, PlatformKeyReply, PlatformKeyRequest, RefundRow,
        ReviewRow, WorkspaceRow,
    },
    store::{BackedUp, embedded},
};

pub async fn administer(command: AdminCommand) -> Result<(), CommandError> {
    let (at, json) = (Place::of(command.args())?, command.args().json);
    let request = request(command)?;
    if let (Place::Remote(_), AdminRequest::BackUp { .. }) = (&at, &request) {
        return Err("backup writes to the machine of the server; run it there".into());
    }
    if request.shows_key() && terminal::is_discarded() {
        return Err("the standard output is closed or /dev/null, so nobody would see the key; none was created".into());
    }
    let reply = reply_to(request, at.clone()).await?;
    let revocation = match &reply {
        AdminReply::Key { key } => AdminRequest::RevokeKey { id: key.clone() },
        AdminReply::PlatformKeys { platform_keys: PlatformKeyReply::Created { id, .. } } => {
            AdminRequest::PlatformKeys(PlatformKeyRequest::Revoke { id: id.to_string() })
        }
        _ => return print(reply, json),
    };
    let Err(error) = print(reply, json) else { return Ok(()) };
    // Nobody has seen the key, so revoke it.
    let revoked = match reply_to(revocation, at).await {
        Ok(AdminReply::Revoked { .. } | AdminReply::PlatformKeys { .. }) => "it is revoked; create another",
        _ => "it could not be revoked either; find it with keys list, revoke it, and create another",
    };
    Err(format!("the new key could not be shown ({error}); {revoked}").into())
}

/// Sends a request to the running server, or executes it in this process if there is none.
async fn reply_to(request: AdminRequest, at: Place) -> Result<AdminReply, CommandError> {
    let mut connection = Connection::new(at);
    let reply = connection.ask(request).await;
    connection.close().await?;
    reply
}

fn request(command: AdminCommand) -> io::Result<AdminRequest> {
    Ok(match command {
        AdminCommand::Workspaces(Admin { command, .. }) => match command {
            WorkspacesCommand::Create { name } => AdminRequest::CreateWorkspace { name },
            WorkspacesCommand::List => AdminRequest::ListWorkspaces,
            WorkspacesCommand::Ways { workspace, ways } => AdminRequest::SetWays { workspace, ways },
            WorkspacesCommand::Limits(args) => AdminRequest::Limits(args.request()),
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
            RefundsCommand::List { due_days } => AdminRequest::ListRefunds { due_days },
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
        AdminCommand::Notices(Admin { command: NoticesCommand::List, .. }) => {
            AdminRequest::Notices(NoticeRequest::List)
        }
        AdminCommand::Gateways(Admin { command, .. }) => AdminRequest::Gateways(match command {
            GatewaysCommand::List => GatewayRequest::List,
            GatewaysCommand::Disable { gateway, until } => GatewayRequest::Pause { gateway, until: Some(until) },
            GatewaysCommand::Enable { gateway } => GatewayRequest::Pause { gateway, until: None },
        }),
        AdminCommand::PlatformKeys(Admin { command, .. }) => AdminRequest::PlatformKeys(operators::request(command)),
        AdminCommand::Sessions(Admin { command, .. }) => AdminRequest::Sessions(sessions::request(command)),
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
    let is_key = matches!(
        reply,
        AdminReply::Key { .. } | AdminReply::PlatformKeys { platform_keys: PlatformKeyReply::Created { .. } }
    );
    let mut out = Output::new();
    match reply {
        AdminReply::Error { error, .. } => return Err(error.into()),
        AdminReply::BackedUp(made) => print_backup(&made, json, &mut out)?,
        AdminReply::Coverage { coverage } => books::print_coverage(&coverage, json, &mut out)?,
        reply if json => out.json(&reply)?,
        AdminReply::Workspace { id, .. } => out.line(format_args!("{id}"))?,
        AdminReply::Ways { ways } if ways.is_empty() => out.line(format_args!("all"))?,
        AdminReply::Ways { ways } => out.line(format_args!("{}", ways.join(" ")))?,
        AdminReply::Limits { limits } => {
            let LimitsRow { payment_at_most, day_at_most, payments_a_minute, keys, endpoints } = limits;
            for (name, amounts) in [("payment-at-most", payment_at_most), ("day-at-most", day_at_most)] {
                amounts.iter().try_for_each(|(currency, it)| out.line(format_args!("{name} {currency}={it}")))?;
            }
            for (name, count) in [("payments-a-minute", payments_a_minute), ("keys", keys), ("endpoints", endpoints)] {
                count.iter().try_for_each(|count| out.line(format_args!("{name} {count}")))?;
            }
        }
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
        AdminReply::PlatformKeys { platform_keys } => operators::print_platform_keys(platform_keys, &mut out)?,
        AdminReply::Audit { audit, .. } => operators::print_audit(&audit, &mut out)?,
        AdminReply::Key { key } => out.line(format_args!("{key}"))?,
        AdminReply::App { app_id, .. } => out.line(format_args!("{app_id}"))?,
        AdminReply::Revoked { id, revoked_at } => out.line(format_args!("{id} revoked at {revoked_at}"))?,
        AdminReply::Refunds { refunds } => {
            let row = |row: RefundRow| {
                let RefundRow { payment, refund, amount, currency, created_at, due_at, .. } = &row;
                let [transaction, phone] =
                    [&row.transaction, &row.customer_phone].map(|text| cell(text.as_deref().unwrap_or("-")));
                let overdue = if row.is_overdue { "overdue" } else { "-" };
                format!("{payment} {amount} {currency} {transaction} {phone} {created_at} {due_at} {overdue} {refund}")
            };
            let columns = "PAYMENT AMOUNT CURRENCY TRANSACTION PHONE CREATED DUE OVERDUE REFUND";
            out.table(columns, refunds.into_iter().map(row))?;
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
        AdminReply::Notices { notices } => {
            let row = |it: NoticeRow| {
                let owner = it.developer_id.map_or("-".to_owned(), |id| id.to_string());
                format!("{} {owner} {} {}", it.notice.kind, it.notice.since, it.text)
            };
            out.table("KIND DEVELOPER SINCE WHAT", notices.into_iter().map(row))?;
        }
        AdminReply::Gateways { gateways } => match gateways {
            GatewayReply::Rows { rows } => rows.iter().try_for_each(|row| print_gateway(row, &mut out))?,
            GatewayReply::Paused { gateway, paused_until } => out.line(format_args!("{gateway} {paused_until}"))?,
            GatewayReply::Token { token_until } => out.line(format_args!("{token_until}"))?,
        },
        AdminReply::Sessions { sessions } => sessions::print(sessions, &mut out)?,
        AdminReply::Booked { booked } => {
            let BooksRow { change, amount, currency, reference, recorded_at, .. } = booked;
            let (change, reference) = (change.as_str(), cell(&reference));
            out.line(format_args!("{change} {amount} {currency} as {reference}, recorded at {recorded_at}"))?;
        }
        AdminReply::Settlements { settlements } => out.json(&settlements)?,
        AdminReply::Payouts { payouts } => out.json(&payouts)?,
        AdminReply::Customers { customers } => out.json(&customers)?,
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
