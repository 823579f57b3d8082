//! Keeps others off a database while a migration reads or fills it.
//!
//! Every connection of a server commits something to `schema_version` before it does anything else, and every batch locks a row
//! of `cell`. So a lock on these tables keeps servers from connecting and from committing, and the connections that were there
//! before the lock show in the database's list of its sessions.

use std::time::{Duration, Instant};

use tokio::time::sleep;

use super::{
    OpenError, schema,
    session::Session,
    target::{SERVER, Target},
};
use crate::StoreError;

/// How long others may take to leave: the last process may have been stopped a moment ago.
const PATIENCE: Duration = Duration::from_secs(3);
const LOCK: &str = "BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0; SET LOCAL lock_timeout = '3s'; \
                    LOCK TABLE schema_version, cell IN EXCLUSIVE MODE";
const OTHERS: &str = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
                      AND pid <> pg_backend_pid() AND application_name = ANY($1)";

/// The name under which a migration connects.
const MIGRATION: &str = "payments-server migrate";

#[derive(Debug, thiserror::Error)]
#[error(
    "{0} connections of payments-server to this database are open; stop its servers and commands, and run it again \
     (pg_stat_activity lists them as {SERVER})"
)]
pub struct InUse(i64);

/// Keeps servers off a database, for as long as this lives.
pub struct SourceLock(Session);

impl SourceLock {
    /// Locks a database that has a store. Refuses it while a server is connected.
    pub async fn take(target: &Target) -> Result<Self, OpenError> {
        let session = target.connect().await?;
        schema::expect(&session, &target.schema).await?;
        // Look for servers first: a connected one may hold up the lock.
        refuse(&session, &[SERVER]).await?;
        session.client().batch_execute(LOCK).await.map_err(StoreError::from)?;
        // A server may have connected just before the lock.
        refuse(&session, &[SERVER]).await?;
        Ok(Self(session))
    }

    /// Whether the lock was held until now.
    pub async fn is_held(&self) -> bool {
        self.0.client().batch_execute("SELECT 1").await.is_ok()
    }
}

impl Target {
    /// The same database, for a migration.
    pub fn for_migration(mut self) -> Self {
        self.config.application_name(MIGRATION);
        self
    }

    /// Refuses a database that anybody uses: servers, commands, or a migration.
    pub async fn refuse_if_used(&self) -> Result<(), OpenError> {
        let session = self.connect().await?;
        refuse(&session, &[SERVER, MIGRATION]).await
    }

    /// Refuses a database that servers or commands use. Migrations may.
    pub async fn refuse_if_served(&self) -> Result<(), OpenError> {
        let session = self.connect().await?;
        refuse(&session, &[SERVER]).await
    }
}

/// Waits for sessions with these names to end, and refuses the database if they do not.
async fn refuse(session: &Session, names: &[&str]) -> Result<(), OpenError> {
    let begun = Instant::now();
    loop {
        let rows = session.query(OTHERS, &[&names]).await.map_err(StoreError::from)?;
        let others: i64 = rows.first().map_or(Ok(0), |row| row.try_get(0)).map_err(StoreError::from)?;
        if others == 0 {
            return Ok(());
        }
        if begun.elapsed() > PATIENCE {
            return Err(InUse(others).into());
        }
        sleep(Duration::from_millis(50)).await;
    }
}
