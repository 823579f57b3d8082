//! `payments-server check`: checks every invariant of a store.

use std::io::{self, Write};

use super::{Failure, open::with_store, progress};
use crate::{
    cli::AdminArgs,
    store::{Checked, Maintenance, embedded},
};

/// What stands in for this command on a database.
const NOT_YET: &str = "a database is not checked by this version";

/// Checks every record of a store.
pub(super) fn check_records(store: &dyn Maintenance) -> Result<Checked, Failure> {
    let bar = progress::bar("checking", || store.records());
    let checked = store.check(&mut |done| bar.set_position(done))?;
    bar.finish_and_clear();
    Ok(checked)
}

/// Checks the whole store and its journal files, and prints one violation per line.
pub(crate) async fn check(args: &AdminArgs) -> Result<(), Failure> {
    let mut checked = with_store(args.data.directory(NOT_YET)?, check_records).await?;
    let directory = args.data.data_dir.clone();
    let in_records = checked.findings.len();
    checked.findings.extend(tokio::task::spawn_blocking(move || embedded::check_journal(&directory)).await??);
    let mut out = io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string(&checked)?)?;
    } else {
        for finding in &checked.findings {
            writeln!(out, "{}: {}", finding.record, finding.what)?;
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
        0 => Ok(writeln!(out, "{records} records, {payments} of them payments: no violations")?),
        found => Err(format!(
            "{found} of {records} records are invalid; stop the server, keep a copy of the data directory, and restore \
             the last backup"
        )
        .into()),
    }
}
