//! `payments-server restore`.

use std::{
    io::{self, Write},
    path::PathBuf,
};

use super::{Failure, open::with_store, progress};
use crate::{cli::AdminArgs, store::sled};

/// Makes a store of a backup and proves it before anybody serves from it.
pub(crate) async fn restore(backup: PathBuf, journal: Option<PathBuf>, args: AdminArgs) -> Result<(), Failure> {
    let directory = std::path::absolute(&args.data.data_dir)?;
    let target = directory.clone();
    let last = tokio::task::spawn_blocking(move || sled::restore(&backup, journal.as_deref(), &target)).await??;
    let checked = with_store(&directory, |store| {
        let bar = progress::bar("checking", || store.records());
        Ok(store.check(|done| progress::step(&bar, done))?)
    })
    .await?;
    let mut out = io::stdout().lock();
    if args.json {
        let line = serde_json::json!({"directory": directory, "to": last, "check": checked});
        writeln!(out, "{line}")?;
    } else {
        let (records, payments) = (checked.records, checked.payments);
        writeln!(out, "{records} records, {payments} of them payments, up to change {last}")?;
    }
    match checked.findings.len() {
        0 => Ok(()),
        found => Err(format!("{found} records do not hold: payments-server check names them").into()),
    }
}
