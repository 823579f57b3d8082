//! The commands about people's sessions: their requests, and what they print.

use std::io;

use crate::{
    cli::SessionsCommand,
    domain::Grant,
    log::terminal::{Output, cell},
    service::{SessionReply, SessionRequest, SessionRow},
};

pub(super) fn request(command: SessionsCommand) -> SessionRequest {
    match command {
        SessionsCommand::List => SessionRequest::List,
        SessionsCommand::Revoke { id: Some(id), .. } => SessionRequest::Revoke { id },
        SessionsCommand::Revoke { id: None, person } => {
            SessionRequest::RevokePerson { email: person.unwrap_or_default() }
        }
    }
}

pub(super) fn print(reply: SessionReply, out: &mut Output) -> io::Result<()> {
    match reply {
        SessionReply::Rows { rows } => {
            out.table("SESSION PERSON ROLES CREATED LAST-SEEN EXPIRES REVOKED NAME", rows.iter().map(row))
        }
        SessionReply::Revoked { revoked_sessions } => {
            revoked_sessions.iter().try_for_each(|id| out.line(format_args!("{id}")))
        }
    }
}

fn row(row: &SessionRow) -> String {
    let SessionRow { id, subject, email, name, created_at, last_seen_at, expires_at, revoked_at, .. } = row;
    let roles: Vec<_> = row.grants.iter().map(role).collect();
    let (person, roles) = (cell(email.as_deref().unwrap_or(subject)), roles.join(","));
    let revoked = revoked_at.map_or("-".to_owned(), |at| at.to_string());
    let name = name.as_deref().unwrap_or("-");
    format!("{id} {person} {roles} {created_at} {last_seen_at} {expires_at} {revoked} {name}")
}

fn role(Grant { role, workspace }: &Grant) -> String {
    workspace.as_ref().map_or_else(|| role.to_string(), |workspace| format!("{role}@{workspace}"))
}
