//! Whether bKash grants a token, which shows that the credentials are right.

use std::{sync::Arc, time::Duration};

use payments_core::Timestamp;
use tokio_util::task::TaskTracker;

use super::{super::Failure, Finding, failed, in_order, warning};
use crate::{
    admin_socket,
    ambient::{Ambient, OperatingSystem},
    cli::ServeArgs,
    gateway::{Credentials, Gateways},
    metrics::Metrics,
    service::{AdminReply, AdminRequest},
    store::{
        Location,
        postgres::{PostgresStore, Target},
    },
};

enum Asked {
    Granted(Timestamp),
    Refused(String),
    /// Nobody asked: why not.
    Not(&'static str),
}

/// Asks for a token where it is stored for the servers: bKash grants two an hour, and the doctor must not use one up.
pub(super) async fn check(args: &ServeArgs, credentials: Credentials, location: Location) -> Option<Finding> {
    credentials.bkash.as_ref()?;
    let asked = match location {
        Location::Directory(directory) => match admin_socket::ask(&directory, &AdminRequest::GatewayToken).await {
            Ok(Some(AdminReply::GatewayToken { gateway_token_until })) => Asked::Granted(gateway_token_until),
            Ok(Some(AdminReply::Error { error })) => Asked::Refused(error),
            Ok(Some(_)) => Asked::Not("the running server has another version"),
            Ok(None) => Asked::Not("no server runs on the store; start it, and run this again"),
            Err(error) => Asked::Refused(format!("cannot reach the running server: {error}")),
        },
        Location::Database(target) => match target.has_tables().await {
            Ok(true) => {
                at_database(args, credentials, *target).await.unwrap_or_else(|error| Asked::Refused(error.to_string()))
            }
            _ => Asked::Not("there is no store to keep it in; start the server, and run this again"),
        },
    };
    Some(match asked {
        Asked::Granted(until) => in_order(format!("bKash granted a token, valid until {until}")),
        Asked::Refused(error) => failed(format!("{error}; check the credentials of bKash and the server's log")),
        Asked::Not(why) => {
            warning(format!("bKash was not asked for a token, which would show that its credentials are right: {why}"))
        }
    })
}

async fn at_database(args: &ServeArgs, credentials: Credentials, target: Target) -> Result<Asked, Failure> {
    let (ambient, metrics): (Arc<dyn Ambient>, _) = (Arc::new(OperatingSystem), Metrics::new());
    let (store, closing) = PostgresStore::open(target, &*ambient, metrics.commits.clone()).await?;
    let store = store.into_store();
    let (timeout, proxy) = (Duration::from_secs(args.gateway_timeout.into()), args.gateway_proxy.clone());
    let (calls, tasks) = (&metrics.gateways, TaskTracker::new());
    let gateways = Gateways::new(credentials, &store, &ambient, timeout, proxy, calls, &tasks)?;
    let asked = match gateways.token_valid_until().await {
        Some(Ok(until)) => Asked::Granted(until),
        Some(Err(error)) => Asked::Refused(error.to_string()),
        None => Asked::Not("it has no credentials"),
    };
    tasks.close();
    tasks.wait().await;
    drop((gateways, store));
    closing.wait().await;
    Ok(asked)
}
