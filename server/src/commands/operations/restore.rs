//! `payments-server restore`: restores a store from a backup, a journal, or both.

use payments_core::Timestamp;
use serde_json::json;

use super::{check::check_records, open::with_snapshot};
use crate::{
    cli::{CommandError, RestoreArgs},
    log::{self, terminal::Output},
    process::owner,
    store::{
        Location,
        embedded::{self, BackupError, LeftOut, Restored, Sources, Until},
    },
};

/// Restores a store and checks it before it is used.
pub async fn restore(args: RestoreArgs) -> Result<(), CommandError> {
    let RestoreArgs { backup, journal, until, until_entry, admin } = args;
    let (wanted, has_journal) = (until_entry, journal.is_some());
    let until = until.map(|time| Until::Time(time.as_millis())).or(until_entry.map(Until::Entry));
    let directory = std::path::absolute(admin.data.directory("restore it with the database's own tools")?)?;
    let (target, give_to_owner) = (directory.clone(), owner::keep_owner(&directory));
    let making = tokio::task::spawn_blocking(move || {
        embedded::restore(&Sources { backup: backup.as_deref(), journal: journal.as_deref(), until }, &target)
    });
    let Restored { last, replayed, left_out } = making.await?.map_err(with_advice)?;
    let time = |millis: Option<i64>| Timestamp::from_millis(millis?).ok();
    if let Some(LeftOut { first, last, since, until }) = left_out {
        let text = |at| time(at).map_or_else(|| "an unknown time".to_owned(), |time| time.to_string());
        let (since, until) = (text(since), text(until));
        log::say(format_args!(
            "left out: changes {first} to {last}, committed from {since} to {until}; --until-entry N restores up to any of \
             them"
        ));
    }
    if let Some(wanted) = wanted.filter(|wanted| *wanted > last) {
        log::say(format_args!("change {wanted} does not exist; the last change is {last}"));
    }
    let checked = with_snapshot(Location::Directory(directory.clone()), check_records).await;
    give_to_owner(&directory)?;
    let checked = checked?;
    let mut out = Output::new();
    if admin.json {
        let left_out = left_out.map(|LeftOut { first, last, since, until }| {
            json!({"first": first, "last": last, "since": time(since), "until": time(until)})
        });
        let line = json!({
            "directory": directory, "to": last, "replayed": replayed, "leftOut": left_out, "check": checked
        });
        out.json(&line)?;
    } else {
        let (records, payments) = (checked.records, checked.payments);
        let of_journal = if has_journal { format!("; {replayed} changes from the journal") } else { String::new() };
        out.line(format_args!("{records} records, {payments} of them payments, up to change {last}{of_journal}"))?;
    }
    match checked.findings.len() {
        0 => Ok(()),
        found => Err(format!("{found} records are invalid; run payments-server check to list them").into()),
    }
}

/// Adds the flag that restores the changes before those that are missing.
fn with_advice(error: BackupError) -> CommandError {
    let left = if let BackupError::Journal(error) = &error { error.left_until() } else { None };
    match left {
        Some(last) => format!("{error}; to restore only the changes up to {last}, add --until-entry {last}").into(),
        None => error.into(),
    }
}
