//! The arguments that say where a store is, or the server that has it.

use std::path::{Path, PathBuf};

use clap::Args;
use secrecy::SecretString;
use url::Url;

use super::{CommandError, values::safe_url};
use crate::store::{
    Location,
    postgres::{Target, TargetError},
};

#[derive(Debug, Args)]
pub struct DataArgs {
    /// TOML file with the flags of `serve`, and with a section of credentials for each gateway. `serve` and
    /// `doctor` use all of it, other commands only the location of the store.
    #[arg(long, global = true, env = "PAYMENTS_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Directory of the store.
    #[arg(long, global = true, env = "PAYMENTS_DATA_DIR", default_value = "./payments-data", value_name = "DIR")]
    pub data_dir: PathBuf,
    /// PostgreSQL database instead of a directory: postgres://USER@HOST/DATABASE. A URL with a password belongs in the
    /// environment variable, because other users can read command lines.
    #[arg(
        long,
        global = true,
        env = "PAYMENTS_DATABASE_URL",
        hide_env_values = true,
        value_name = "URL",
        conflicts_with = "data_dir"
    )]
    pub database_url: Option<SecretString>,
    /// File that holds the database's password.
    #[arg(
        long,
        global = true,
        env = "PAYMENTS_DATABASE_PASSWORD_FILE",
        value_name = "FILE",
        requires = "database_url"
    )]
    pub database_password_file: Option<PathBuf>,
}

impl DataArgs {
    /// The place of the store.
    pub fn location(&self) -> Result<Location, TargetError> {
        let Some(url) = &self.database_url else { return Ok(Location::Directory(self.data_dir.clone())) };
        let target = Target::new(url, self.database_password_file.as_deref())?;
        Ok(Location::Database(Box::new(target)))
    }

    /// The directory of a store, for a command that works only on directories. `instead` says how to do the same on a
    /// database.
    pub fn directory(&self, instead: &str) -> Result<&Path, CommandError> {
        match &self.database_url {
            None => Ok(&self.data_dir),
            Some(_) => Err(format!("this command works on a directory, not on a database; {instead}").into()),
        }
    }
}

/// Where a command reads a store.
#[derive(Debug, Args)]
pub struct StoreArgs {
    #[command(flatten)]
    pub data: DataArgs,
    /// Print JSON.
    #[arg(long, global = true, env = "PAYMENTS_JSON")]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct AdminArgs {
    #[command(flatten)]
    pub data: DataArgs,
    /// A server elsewhere that does it, instead of the store here: the address of its administration API, https except on this
    /// machine.
    #[arg(long, global = true, env = "PAYMENTS_SERVER", value_name = "URL", value_parser = safe_url,
        conflicts_with_all = ["data_dir", "database_url"])]
    pub server: Option<Url>,
    /// File that holds the platform key for --server. Without it, PAYMENTS_ADMIN_KEY has the key.
    #[arg(long, global = true, env = "PAYMENTS_ADMIN_KEY_FILE", value_name = "FILE")]
    pub admin_key_file: Option<PathBuf>,
    /// Print JSON.
    #[arg(long, global = true, env = "PAYMENTS_JSON")]
    pub json: bool,
}
