//! `reset`: empties the sandbox.

use std::io;

use payments_client::Environment;

use super::said_by;
use crate::{
    cli::{CommandError, ResetArgs},
    log::terminal::Output,
};

/// Empties the sandbox of the key's workspace, if the user confirms it.
pub async fn reset(args: ResetArgs) -> Result<(), CommandError> {
    let client = super::client(&args.api)?;
    let server = &args.api.api;
    if client.environment() != Environment::Test {
        return Err(
            "only a sandbox can be emptied, and this is a live key; put a test key into PAYMENTS_API_KEY".into()
        );
    }
    let workspace = client.account().retrieve().await.map_err(said_by(server))?.workspace;
    let mut out = Output::new();
    if !args.yes {
        out.line(format_args!(
            "This removes all payments, events and webhook endpoints of the test keys of {:?} at {server}.",
            workspace.name
        ))?;
        out.text(b"Type yes to go on: ")?;
        let mut answer = String::new();
        io::stdin().read_line(&mut answer)?;
        if answer.trim() != "yes" {
            return Err("nothing was changed".into());
        }
    }
    client.sandbox().reset().await.map_err(said_by(server))?;
    Ok(out.line(format_args!("the sandbox of {:?} is empty", workspace.name))?)
}
