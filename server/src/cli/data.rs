//! The argument for the data directory, shared by all commands.

use std::path::PathBuf;

use clap::Args;

#[derive(Debug, Args)]
pub(crate) struct DataArgs {
    /// Directory of the store.
    #[arg(long, env = "PAYMENTS_DATA_DIR", default_value = "./payments-data", value_name = "DIR")]
    pub(crate) data_dir: PathBuf,
}
