//! What `payments-server backup` prints.

use serde_json::json;

use super::Failure;
use crate::{
    store::{BackedUp, embedded},
    terminal::Output,
};

/// Reads back a backup that was made, and prints what it holds.
pub(crate) fn print_backup(made: &BackedUp, is_json: bool, out: &mut Output) -> Result<(), Failure> {
    let BackedUp { directory, from, to } = made;
    let (records, payments) = embedded::count_backup(directory).map_err(|error| {
        format!(
            "the backup was made, but this command cannot read it: {error}; a server that runs as a service may have a /tmp of \
             its own"
        )
    })?;
    if is_json {
        let line = json!({"directory": directory, "records": records, "payments": payments, "from": from, "to": to});
        return Ok(out.json(&line)?);
    }
    let directory = directory.display();
    Ok(out.line(format_args!("{directory} holds {records} records, {payments} of them payments, up to change {to}"))?)
}
