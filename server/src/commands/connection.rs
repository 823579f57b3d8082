//! Where the administrative commands are executed: by a running server, or by this process with the store open.

use std::{fs, path::absolute, sync::Arc};

use crate::{
    administration::{self, Remote, Who},
    ambient::{Ambient, OperatingSystem},
    cli::{AdminArgs, CommandError, secret_from},
    commands::no_store::no_store_in,
    gateway::Gateways,
    log,
    service::{AdminReply, AdminRequest, Directory},
    store::{
        Location, Store,
        embedded::{self, EmbeddedStore},
        postgres::{self, PostgresStore},
    },
};

/// Where requests go.
#[derive(Clone)]
pub(super) enum Place {
    /// To the server that runs on this store, or else to the store.
    Store(Location),
    /// To a server elsewhere.
    Remote(Remote),
}

impl Place {
    pub(super) fn of(args: &AdminArgs) -> Result<Self, CommandError> {
        let Some(server) = &args.server else { return Ok(Self::Store(args.data.location()?)) };
        let key = secret_from(args.admin_key_file.as_deref(), "PAYMENTS_ADMIN_KEY")?;
        let key = key.ok_or("name the platform key's file with --admin-key-file, or set PAYMENTS_ADMIN_KEY")?;
        Ok(Self::Remote(Remote { server: server.clone(), key }))
    }
}

/// Who executes requests: a running server, or this process with the store open.
pub(super) struct Connection {
    at: Place,
    opened: Option<(Arc<Store>, Closing)>,
}

enum Closing {
    Database(postgres::Closing),
    Directory(embedded::Closing),
}

impl Connection {
    pub(super) fn new(at: Place) -> Self {
        Self { at, opened: None }
    }

    pub(super) async fn ask(&mut self, request: AdminRequest) -> Result<AdminReply, CommandError> {
        let location = match &self.at {
            Place::Remote(remote) => return administration::ask(remote, &request).await,
            Place::Store(location) => location,
        };
        if self.opened.is_none()
            && let Location::Directory(directory) = location
            && let Some(reply) = administration::ask_socket(directory, &request).await?
        {
            return Ok(reply);
        }
        let ambient: Arc<dyn Ambient> = Arc::new(OperatingSystem);
        let store = match &self.opened {
            Some((store, _)) => Arc::clone(store),
            None => {
                let (store, closing) = open(location, &ambient, &request).await?;
                self.opened = Some((Arc::clone(&store), closing));
                store
            }
        };
        // This process has no gateways.
        let directory = Directory { store, ambient };
        Ok(Who::command().acting(&request).scope(directory.administer(&Gateways::none(), request)).await)
    }

    /// The answer to a request that succeeds.
    pub(super) async fn need(&mut self, request: AdminRequest) -> Result<AdminReply, CommandError> {
        match self.ask(request).await? {
            AdminReply::Error { error, .. } => Err(error.into()),
            reply => Ok(reply),
        }
    }

    pub(super) async fn close(self) -> Result<(), CommandError> {
        let Some((store, closing)) = self.opened else { return Ok(()) };
        drop(store);
        match closing {
            Closing::Database(closing) => closing.wait().await,
            Closing::Directory(closing) => tokio::task::spawn_blocking(|| closing.wait()).await?,
        }
        Ok(())
    }
}

/// The answer is not one to the request.
pub(super) fn unexpected() -> CommandError {
    "the running server has another version; use the command line of that version".into()
}

/// Opens the store for a request.
async fn open(
    location: &Location,
    ambient: &Arc<dyn Ambient>,
    request: &AdminRequest,
) -> Result<(Arc<Store>, Closing), CommandError> {
    match location {
        Location::Database(target) => {
            if !target.has_tables().await? {
                let missing = format!("there is no store in {target}; name the right one with --database-url");
                begin(request, &target.to_string(), missing)?;
            }
            let (store, closing) = PostgresStore::open((**target).clone(), &**ambient).await?;
            Ok((store.into_store(), Closing::Database(closing)))
        }
        Location::Directory(directory) => {
            if !embedded::is_there(directory) {
                let missing = no_store_in(directory, "--data-dir");
                if fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some()) {
                    return Err(missing.into());
                }
                begin(request, &absolute(directory)?.display().to_string(), missing)?;
            }
            let (store, closing) = EmbeddedStore::open(directory, Arc::clone(ambient), |_, _| ())?;
            Ok((store.into_store(), Closing::Directory(closing)))
        }
    }
}

/// Only a new workspace may create a store. All other requests are about records of an existing store.
fn begin(request: &AdminRequest, place: &str, missing: String) -> Result<(), CommandError> {
    if !matches!(request, AdminRequest::CreateWorkspace { .. }) {
        return Err(missing.into());
    }
    log::say(format_args!("beginning a new store in {place}"));
    Ok(())
}
