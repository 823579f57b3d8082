//! Whether a gateway grants the token that its calls need, which shows that the credentials are right.

use std::{sync::Arc, time::Duration};

use tokio_util::task::TaskTracker;

use super::diagnosis::{Diagnosis, failed, in_order, warning};
use crate::{
    administration,
    ambient::{Ambient, OperatingSystem},
    cli::{CommandError, ServeArgs},
    gateway::{Credentials, Declaration, Gateways},
    metrics::Metrics,
    service::{AdminReply, AdminRequest, Directory, GatewayReply, GatewayRequest},
    store::{
        Location,
        postgres::{PostgresStore, Target},
    },
};

/// Requests a token only where it is stored for the servers: a gateway grants few, and the doctor must not waste one.
pub(super) async fn check(
    args: &ServeArgs,
    credentials: &Credentials,
    location: &Location,
    gateway: &Declaration,
) -> Diagnosis {
    let title = gateway.title;
    let not_asked = |why: &str| {
        warning(format!("{title} was not asked for a token, which would show that its credentials are right: {why}"))
    };
    let wrong = |error: String| failed(format!("{error}; check the credentials of {title} and the server's log"));
    let request = AdminRequest::Gateways(GatewayRequest::Token { gateway: gateway.name });
    let reply = match location {
        Location::Directory(directory) => match administration::ask_socket(directory, &request).await {
            Ok(Some(reply)) => reply,
            Ok(None) => return not_asked("no server runs on the store; start it, and run this again"),
            Err(error) => return wrong(format!("cannot reach the running server: {error}")),
        },
        Location::Database(target) => match target.has_tables().await {
            Ok(true) => match at_database(args, credentials, (**target).clone(), request).await {
                Ok(reply) => reply,
                Err(error) => return wrong(error.to_string()),
            },
            _ => return not_asked("there is no store to keep it in; start the server, and run this again"),
        },
    };
    match reply {
        AdminReply::Gateways { gateways: GatewayReply::Token { token_until: until } } => {
            in_order(format!("{title} granted a token, valid until {until}"))
        }
        AdminReply::Error { error, .. } => wrong(error),
        _ => not_asked("the running server has another version"),
    }
}

async fn at_database(
    args: &ServeArgs,
    credentials: &Credentials,
    target: Target,
    request: AdminRequest,
) -> Result<AdminReply, CommandError> {
    let (ambient, metrics): (Arc<dyn Ambient>, _) = (Arc::new(OperatingSystem), Metrics::new());
    let (store, closing) = PostgresStore::open(target, &*ambient).await?;
    let store = store.into_store();
    let (timeout, proxy) = (Duration::from_secs(args.gateway_timeout.into()), args.gateway_proxy.clone());
    let (calls, tasks) = (&metrics.gateways, TaskTracker::new());
    let gateways = Gateways::new(credentials, &store, &ambient, timeout, proxy, calls, &tasks)?;
    let reply = Directory { store, ambient }.administer(&gateways, request).await;
    tasks.close();
    tasks.wait().await;
    drop(gateways);
    closing.wait().await;
    Ok(reply)
}
