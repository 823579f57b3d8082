//! `payments-server check`: checks every invariant of a store.

use super::{open::with_snapshot, progress};
use crate::{
    cli::{CommandError, StoreArgs},
    log::terminal::Output,
    store::{Checked, Location, Snapshot, embedded},
};

pub(super) fn check_records(store: &dyn Snapshot) -> Result<Checked, CommandError> {
    let bar = progress::bar("checking", || store.records())?;
    let checked = store.check(&mut |done| bar.set_position(done))?;
    bar.finish_and_clear();
    Ok(checked)
}

/// Checks the whole store and the journal files of a directory, and prints one violation per line.
pub async fn check(args: &StoreArgs) -> Result<(), CommandError> {
    let location = args.data.location()?;
    let mut checked = with_snapshot(location.clone(), check_records).await?;
    let in_records = checked.findings.len();
    let what_to_do = match location {
        Location::Directory(directory) => {
            checked.findings.extend(tokio::task::spawn_blocking(move || embedded::check_journal(&directory)).await??);
            "stop the server, keep a copy of the data directory, and restore the last backup"
        }
        Location::Database(_) => "stop the servers, keep a copy of the database, and restore its last backup",
    };
    let mut out = Output::new();
    if args.json {
        out.json(&checked)?;
    } else {
        for finding in &checked.findings {
            out.line(format_args!("{}: {}", finding.record, finding.what))?;
        }
    }
    let (records, payments) = (checked.records, checked.payments);
    match checked.findings.len() {
        0 if args.json => Ok(()),
        files if files > 0 && in_records == 0 => Err(format!(
            "all {records} records are valid, but {files} journal files are not; put them back, or take a new backup, \
             which needs none of them"
        )
        .into()),
        0 => Ok(out.line(format_args!("{records} records, {payments} of them payments: no violations"))?),
        found => Err(format!("{found} of {records} records are invalid; {what_to_do}").into()),
    }
}
