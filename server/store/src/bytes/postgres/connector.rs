//! Connects to the host that is the primary, or to any host.
//!
//! A host may accept connections and never answer, or wait for standbys that are gone. So the next host is tried while one is
//! slow, and the first that passes the barrier wins. Each step has a time limit.

use std::{
    collections::{BTreeMap, HashMap},
    convert::Infallible,
    fmt, io,
    sync::Arc,
    time::Duration,
};

use futures_util::{StreamExt as _, future::BoxFuture, stream::FuturesUnordered};
use parking_lot::Mutex;
use tokio::time::{sleep, timeout};
use tokio_postgres::{
    Config, Error,
    config::{LoadBalanceHosts, TargetSessionAttrs},
};

use super::{
    hosts::{self, Host},
    primary::Behind,
    session::{Backend, LookBeside, Purpose, Session},
    sqlstate::{advice, describe, is_lasting},
    target::{HOST_LOST, Target},
};

/// How long a host is tried before the next one is tried as well.
const HEAD_START: Duration = Duration::from_millis(250);
/// The pause between two tries of a host.
const AGAIN: Duration = Duration::from_millis(200);
/// How long a host may take for the barrier.
const BARRIER: Duration = Duration::from_secs(10);

/// Makes the connections of one purpose, one after another.
pub(super) struct Connector {
    pub(super) target: Target,
    pub(super) purpose: Purpose,
    /// The process of the last connection on each host. It may have a transaction under way.
    backends: Mutex<HashMap<usize, Backend>>,
}

#[derive(Debug, thiserror::Error)]
enum HostError {
    #[error("{}", describe(.0))]
    Database(#[from] Error),
    #[error("its name leads to no address: {0}")]
    Name(#[from] io::Error),
    #[error("it accepts connections and does not answer")]
    Silent,
    #[error("it answers, and a commit does not end; look for missing synchronous standbys")]
    NoCommit,
    #[error(transparent)]
    Behind(#[from] Behind),
}

#[derive(Debug)]
pub struct Unreachable(Vec<(String, HostError)>);

impl Unreachable {
    /// Whether every host refuses for a reason that lasts, such as a wrong password.
    pub fn is_lasting(&self) -> bool {
        self.0.iter().all(|(_, error)| matches!(error, HostError::Database(error) if is_lasting(error)))
    }

    pub fn advice(&self) -> &'static str {
        let of_database = self.0.iter().find_map(|(_, error)| match error {
            HostError::Database(error) => advice(error),
            _ => None,
        });
        of_database.unwrap_or("check the URL, and that the database runs and accepts this user")
    }
}

impl std::error::Error for Unreachable {}

impl fmt::Display for Unreachable {
    /// Names the hosts if there are several.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [(_, error)] = &*self.0 {
            return error.fmt(f);
        }
        for (nth, (host, error)) in self.0.iter().enumerate() {
            write!(f, "{}{host}: {error}", if nth == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

impl Connector {
    pub(super) fn new(target: Target, purpose: Purpose) -> Arc<Self> {
        Arc::new(Self { target, purpose, backends: Mutex::default() })
    }

    /// Connects. Tries the hosts until one passes, or until each has failed.
    pub(super) async fn connect(self: &Arc<Self>) -> Result<Session, Unreachable> {
        let mut hosts = hosts::of(&self.target.config);
        if self.target.config.get_load_balance_hosts() == LoadBalanceHosts::Random {
            fastrand::shuffle(&mut hosts);
        }
        // Try the last primary first.
        let last = self.target.primary.host();
        hosts.sort_by_key(|host| Some(host.nth) != last);
        self.first_of(&hosts).await
    }

    /// Looks for another primary while one is silent. When it finds one, every connection to the silent one ends.
    fn look_beside(self: Arc<Self>, silent: usize) -> BoxFuture<'static, Infallible> {
        let mut others = hosts::of(&self.target.config);
        others.retain(|host| host.nth != silent);
        if others.is_empty() || self.purpose == Purpose::Reading {
            return Box::pin(std::future::pending());
        }
        Box::pin(async move {
            let _one_at_a_time = self.target.lookout.lock().await;
            loop {
                drop(self.first_of(&others).await);
                sleep(AGAIN).await;
            }
        })
    }

    async fn first_of(self: &Arc<Self>, hosts: &[Host]) -> Result<Session, Unreachable> {
        let (mut next, mut trying, mut failed) = (hosts.iter(), FuturesUnordered::new(), BTreeMap::new());
        while failed.len() < hosts.len() {
            trying.extend(next.next().map(|host| self.try_after(Duration::ZERO, host)));
            let outcome = match next.len() {
                0 => trying.next().await,
                _ => timeout(HEAD_START, trying.next()).await.unwrap_or_default(),
            };
            let Some((host, outcome)) = outcome else { continue };
            match outcome {
                Ok(session) => return Ok(session),
                Err(error) => drop(failed.insert(host.nth, (host.name.clone(), error))),
            }
            // This host may become the primary while another one is tried.
            trying.push(self.try_after(AGAIN, host));
        }
        Err(Unreachable(failed.into_values().collect()))
    }

    async fn try_after<'h>(
        self: &Arc<Self>,
        pause: Duration,
        host: &'h Host,
    ) -> (&'h Host, Result<Session, HostError>) {
        sleep(pause).await;
        (host, self.try_host(host).await)
    }

    async fn try_host(self: &Arc<Self>, host: &Host) -> Result<Session, HostError> {
        let mut error = HostError::Name(io::Error::from(io::ErrorKind::NotFound));
        for config in timeout(HOST_LOST, host.addresses()).await.map_err(io::Error::from)?? {
            match self.try_address(host, config).await {
                Ok(session) => return Ok(session),
                Err(of_address) => error = of_address,
            }
        }
        Err(error)
    }

    async fn try_address(self: &Arc<Self>, host: &Host, mut config: Config) -> Result<Session, HostError> {
        if self.purpose != Purpose::Reading {
            config.target_session_attrs(TargetSessionAttrs::ReadWrite);
        }
        let at_most = config.get_connect_timeout().copied().unwrap_or(HOST_LOST);
        let (connector, nth) = (Arc::clone(self), host.nth);
        let look_beside: LookBeside = Box::new(move || Arc::clone(&connector).look_beside(nth));
        let opening = Session::open(self.target.clone(), self.purpose, nth, &config, look_beside);
        let session = timeout(at_most, opening).await.map_err(|_| HostError::Silent)??;
        if self.purpose != Purpose::Reading {
            timeout(BARRIER, self.pass(host, &session)).await.map_err(|_| HostError::NoCommit)??;
        }
        Ok(session)
    }

    async fn pass(&self, host: &Host, session: &Session) -> Result<(), HostError> {
        match self.purpose {
            Purpose::Reading | Purpose::Writing => session.commit_something().await?,
            Purpose::Serving => session.pass_barrier().await?,
            Purpose::Cell => {
                self.end_earlier(host, session).await?;
                session.pass_barrier().await?;
            }
        }
        let timeline = session.timeline().await?;
        if self.target.primary.passed(host.nth, timeline)? {
            tracing::warn!(primary = host.name, "the database has another primary; connections to the last one end");
        }
        Ok(())
    }

    /// Ends the process of the last connection to a host, which may hold up this one.
    async fn end_earlier(&self, host: &Host, session: &Session) -> Result<(), HostError> {
        let earlier = self.backends.lock().remove(&host.nth);
        if let Some(earlier) = earlier
            && session.end_backend(&earlier).await?
        {
            // Another commit would only wait behind it, and hold one more process of the database.
            self.backends.lock().insert(host.nth, earlier);
            return Err(HostError::NoCommit);
        }
        let own = session.backend().await?;
        self.backends.lock().insert(host.nth, own);
        Ok(())
    }
}

impl Target {
    /// Connects for a command, and passes the barrier.
    pub(super) async fn connect(&self) -> Result<Session, Unreachable> {
        Connector::new(self.clone(), Purpose::Writing).connect().await
    }

    /// Connects to any host of the URL, such as a standby. A failover may still undo changes that this connection reads.
    pub(super) async fn connect_to_any(&self) -> Result<Session, Unreachable> {
        Connector::new(self.clone(), Purpose::Reading).connect().await
    }
}
