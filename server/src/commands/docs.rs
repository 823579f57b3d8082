//! `payments-server completions` and `payments-server man`: the command line for shells and as manual pages.

use std::{fs, path::Path};

use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;

use crate::{
    cli::{Cli, CommandError},
    log::terminal::Output,
    process::file_modes,
};

/// Prints the script that completes commands and flags in a shell.
pub fn completions(shell: Shell) -> Result<(), CommandError> {
    let (mut command, mut script) = (Cli::command(), Vec::new());
    let name = command.get_name().to_owned();
    clap_complete::generate(shell, &mut command, name, &mut script);
    // clap_complete 4.6 writes two names for a program with a hyphen into bash's script, which then completes no subcommand.
    let script = String::from_utf8(script)?.replace("payments__subcmd__server", "payments__server");
    Ok(Output::new().text(script.as_bytes())?)
}

/// Prints the manual page of the whole command line, or writes a page for each command to a directory.
pub fn man(directory: Option<&Path>) -> Result<(), CommandError> {
    let Some(directory) = directory else {
        let mut page = Vec::new();
        Man::new(Cli::command()).render(&mut page)?;
        return Ok(Output::new().text(&page)?);
    };
    // Every user of the machine may read manuals.
    file_modes::share_with_others();
    let written = fs::create_dir_all(directory).and_then(|()| clap_mangen::generate_to(Cli::command(), directory));
    let name = directory.display();
    written.map_err(|error| format!("the manual cannot be written to {name}: {error}; name another directory").into())
}
