//! `payments-server platform-keys` and `payments-server audit`.

use payments_core::AuditEntry;

use super::connection::{Connection, Place, unexpected};
use crate::{
    cli::{Admin, AuditCommand, CommandError, PlatformKeysCommand},
    log::terminal::{Output, cell},
    service::{AdminReply, AdminRequest, AuditFilter, PlatformKeyReply, PlatformKeyRequest, PlatformKeyRow},
};

pub(super) fn request(command: PlatformKeysCommand) -> PlatformKeyRequest {
    match command {
        PlatformKeysCommand::List => PlatformKeyRequest::List,
        PlatformKeysCommand::Create { name, scopes, expires } => {
            PlatformKeyRequest::Create { name, scopes, expires_at: expires }
        }
        PlatformKeysCommand::Revoke { id } => PlatformKeyRequest::Revoke { id },
    }
}

pub(super) fn print_platform_keys(reply: PlatformKeyReply, out: &mut Output) -> Result<(), CommandError> {
    match reply {
        PlatformKeyReply::Created { key, .. } => out.line(format_args!("{key}"))?,
        PlatformKeyReply::Revoked { id, revoked_at } => out.line(format_args!("{id} revoked at {revoked_at}"))?,
        PlatformKeyReply::Rows { rows } => {
            let row = |it: PlatformKeyRow| {
                let revoked = it.revoked_at.map_or_else(|| "-".to_owned(), |at| at.to_string());
                let scopes: Vec<_> = it.scopes.iter().map(ToString::to_string).collect();
                let PlatformKeyRow { id, last4, created_at, expires_at, name, .. } = it;
                format!("{id} ...{last4} {created_at} {expires_at} {revoked} {} {name}", scopes.join(","))
            };
            out.table("KEY LAST4 CREATED EXPIRES REVOKED SCOPES NAME", rows.into_iter().map(row))?;
        }
    }
    Ok(())
}

/// Prints all entries, a part after the other.
pub async fn audit(Admin { command, args }: Admin<AuditCommand>) -> Result<(), CommandError> {
    let AuditCommand::List { workspace, actor, request, since, until } = command;
    let mut connection = Connection::new(Place::of(&args)?);
    let (mut out, mut before) = (Output::new(), None);
    let outcome = loop {
        let (workspace, actor, request) = (workspace.clone(), actor.clone(), request.clone());
        let filter = AuditFilter { workspace, actor, request, since, until, before };
        let (audit, next) = match connection.need(AdminRequest::Audit(filter)).await {
            Ok(AdminReply::Audit { audit, next }) => (audit, next),
            Ok(_) => break Err(unexpected()),
            Err(error) => break Err(error),
        };
        match args.json {
            true => audit.iter().try_for_each(|entry| out.json(entry))?,
            false => print_audit(&audit, &mut out)?,
        }
        if next.is_none() || out.is_closed() {
            break Ok(());
        }
        before = next;
    };
    connection.close().await?;
    outcome
}

pub(super) fn print_audit(audit: &[AuditEntry], out: &mut Output) -> Result<(), CommandError> {
    for it in audit {
        let (address, subject) = (it.address.as_deref().unwrap_or("-"), it.subject.as_deref().unwrap_or("-"));
        let who = cell(&it.actor.id);
        out.line(format_args!("{} {who} {address} {} {}", it.created_at, it.action, cell(subject)))?;
        for change in &it.changes {
            let [before, after] = [&change.before, &change.after].map(|value| value.as_deref().unwrap_or("-"));
            out.line(format_args!("  {} {}: {before} -> {after}", change.record, change.field))?;
        }
    }
    Ok(())
}
