//! Which database, and how to reach it.

use std::{fmt, fs, io, path::Path, sync::Arc, time::Duration};

use rustls::{ClientConfig, RootCertStore, crypto::aws_lc_rs, pki_types::CertificateDer, pki_types::pem::PemObject};
use rustls_platform_verifier::BuilderVerifierExt as _;
use secrecy::{ExposeSecret, SecretString};
use tokio::sync::Mutex;
use tokio_postgres::{
    Config,
    config::{Host, SslMode},
};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::primary::Primary;

/// The name of the schema that holds the tables, unless a test asks for its own.
const SCHEMA: &str = "payments";

/// Where Debian's packages put the sockets of a database on this machine, for a URL without a host.
const SOCKETS: &str = "/run/postgresql";
/// The name under which servers and commands connect.
pub(super) const SERVER: &str = "payments-server";
/// How long a host may be silent on the network.
pub(super) const HOST_LOST: Duration = Duration::from_secs(5);

#[derive(Clone)]
pub struct Target {
    /// The configuration of the URL, with all its hosts.
    pub(super) config: Config,
    pub(super) tls: MakeRustlsConnect,
    pub(super) schema: String,
    pub(super) primary: Arc<Primary>,
    /// Held by the connection that looks for another primary.
    pub(super) lookout: Arc<Mutex<()>>,
    /// How many round trips there were.
    #[cfg(any(test, feature = "testing"))]
    pub(super) trips: Arc<std::sync::atomic::AtomicU64>,
}

/// A database URL cannot be used. No message quotes the URL, which may hold a password.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    #[error("the database URL is invalid: {0}; write postgres://USER@HOST:PORT/DATABASE")]
    Invalid(String),
    #[error("the file {path} with the database's password cannot be read: {error}")]
    Password { path: String, error: io::Error },
    #[error("the certificates in {path} cannot be read: {what}; name a PEM file with sslrootcert")]
    Certificates { path: String, what: String },
}

impl Target {
    /// Reads a URL such as `postgres://user@one,two/payments?sslmode=verify-full&sslrootcert=/etc/ca.pem`. A connection by
    /// TLS always verifies the server.
    pub fn new(url: &SecretString, password_file: Option<&Path>) -> Result<Self, TargetError> {
        let (url, roots, is_verified) = own_parameters(url.expose_secret());
        let mut config: Config = url.parse().map_err(|error: tokio_postgres::Error| {
            let cause = std::error::Error::source(&error).map(ToString::to_string);
            TargetError::Invalid(cause.unwrap_or_else(|| error.to_string()))
        })?;
        if config.get_hosts().is_empty() {
            config.host_path(SOCKETS);
        }
        if is_verified {
            config.ssl_mode(SslMode::Require);
        }
        if let Some(path) = password_file {
            let unreadable = |error| TargetError::Password { path: path.display().to_string(), error };
            let password = SecretString::from(fs::read_to_string(path).map_err(unreadable)?);
            config.password(password.expose_secret().trim_end_matches(['\r', '\n']));
        }
        config.application_name(SERVER);
        notice_a_lost_host(&mut config);
        let tls = MakeRustlsConnect::new(tls(roots.as_deref())?);
        Ok(Self {
            config,
            tls,
            schema: SCHEMA.to_owned(),
            primary: Arc::default(),
            lookout: Arc::default(),
            #[cfg(any(test, feature = "testing"))]
            trips: Arc::default(),
        })
    }

    /// Counts a round trip, only for tests.
    pub(super) fn count_trip(&self) {
        #[cfg(any(test, feature = "testing"))]
        self.trips.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }

    pub fn has_password(url: &str) -> bool {
        own_parameters(url).0.parse::<Config>().is_ok_and(|config| config.get_password().is_some())
    }

    /// The same database with the tables in another schema.
    #[cfg(any(test, feature = "testing"))]
    pub fn with_schema(self, schema: &str) -> Self {
        Self { schema: schema.to_owned(), ..self }
    }
}

impl fmt::Display for Target {
    /// Writes the database and its hosts, and no password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = |host: &Host| match host {
            Host::Tcp(name) => name.clone(),
            Host::Unix(directory) => directory.display().to_string(),
        };
        let hosts: Vec<_> = self.config.get_hosts().iter().map(host).collect();
        write!(f, "the database {} on {}", self.config.get_dbname().unwrap_or("of the user"), hosts.join(","))
    }
}

/// Limits how long a host that has vanished is waited for, where the URL sets no limit. By default TCP waits for a quarter of
/// an hour, or for two hours.
fn notice_a_lost_host(config: &mut Config) {
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(HOST_LOST);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(HOST_LOST);
    }
    if config.get_keepalives_interval().is_none() {
        config.keepalives_idle(HOST_LOST).keepalives_interval(HOST_LOST / 5).keepalives_retries(5);
    }
}

/// Takes parameters out of a URL that libpq knows and `tokio_postgres` does not: the file of root certificates, and the TLS
/// modes that verify.
fn own_parameters(text: &str) -> (String, Option<String>, bool) {
    // A list of hosts is no URL to the parser of URLs, so only the query is parsed.
    let Some((before, query)) = text.split_once('?') else { return (text.to_owned(), None, false) };
    let (mut roots, mut is_verified) = (None, false);
    let mut kept = url::form_urlencoded::Serializer::new(String::new());
    for (name, value) in url::form_urlencoded::parse(query.as_bytes()) {
        match (&*name, &*value) {
            ("sslrootcert", path) => roots = Some(path.to_owned()),
            ("sslmode", "verify-full" | "verify-ca") => is_verified = true,
            (name, value) => drop(kept.append_pair(name, value)),
        }
    }
    (format!("{before}?{}", kept.finish()), roots, is_verified)
}

fn tls(roots: Option<&str>) -> Result<ClientConfig, TargetError> {
    let failed = |what: &dyn ToString| TargetError::Certificates {
        path: roots.unwrap_or("the system's store").to_owned(),
        what: what.to_string(),
    };
    let versions = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| failed(&error))?;
    let Some(path) = roots else {
        let verified = versions.with_platform_verifier().map_err(|error| failed(&error))?;
        return Ok(verified.with_no_client_auth());
    };
    let mut store = RootCertStore::empty();
    let pem = fs::read(path).map_err(|error| failed(&error))?;
    for certificate in CertificateDer::pem_slice_iter(&pem) {
        store.add(certificate.map_err(|error| failed(&error))?).map_err(|error| failed(&error))?;
    }
    Ok(versions.with_root_certificates(store).with_no_client_auth())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_may_name_several_hosts_a_socket_and_the_roots_to_trust() {
        let target = Target::new(&"postgres://me@one:5433,two/shop?connect_timeout=3".into(), None).unwrap();
        assert_eq!((target.config.get_hosts().len(), target.config.get_dbname()), (2, Some("shop")));
        assert_eq!(Target::new(&"postgres:///shop".into(), None).unwrap().config.get_hosts().len(), 1);
        assert!(Target::new(&"postgres:///shop?host=/run/postgresql".into(), None).is_ok());
        let verified = Target::new(&"postgres://one/shop?sslmode=verify-full".into(), None).unwrap();
        assert_eq!(verified.config.get_ssl_mode(), SslMode::Require);
        let missing =
            Target::new(&"postgres://one/shop?sslrootcert=/nowhere.pem".into(), None).err().unwrap().to_string();
        assert!(missing.contains("/nowhere.pem"), "{missing}");
    }

    #[test]
    fn a_host_counts_as_lost_after_seconds_unless_the_url_gives_it_more() {
        let config = |query: &str| Target::new(&format!("postgres://me@one/shop{query}").into(), None).unwrap().config;
        let times = |config: &Config| {
            let user_timeout = config.get_tcp_user_timeout().copied();
            let interval = config.get_keepalives_interval();
            (config.get_connect_timeout().copied(), user_timeout, config.get_keepalives_idle(), interval)
        };
        let second = Some(Duration::from_secs(1));
        assert_eq!(times(&config("")), (Some(HOST_LOST), Some(HOST_LOST), HOST_LOST, second));
        assert_eq!(config("").get_keepalives_retries(), Some(5));
        let minute = Duration::from_secs(60);
        let given =
            config("?connect_timeout=60&tcp_user_timeout=60&keepalives_idle=60&keepalives_interval=60&sslmode=disable");
        assert_eq!(times(&given), (Some(minute), Some(minute), minute, Some(minute)));
        assert_eq!(given.get_keepalives_retries(), None);
    }

    #[test]
    fn a_target_is_written_with_its_hosts_and_without_its_password_which_may_come_from_a_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        fs::write(file.path(), "hush \r\n").unwrap();
        let target = Target::new(&"postgres://me@one:5433,two/shop".into(), Some(file.path())).unwrap();
        assert_eq!(target.config.get_password(), Some(&b"hush "[..]));
        assert_eq!(target.to_string(), "the database shop on one,two");
        let socket = Target::new(&"postgres://me@/?host=/run/sockets".into(), None).unwrap();
        assert_eq!(socket.to_string(), "the database of the user on /run/sockets");
        let missing = Path::new("/nowhere/password");
        let error = Target::new(&"postgres://me@one/shop".into(), Some(missing)).err().unwrap().to_string();
        assert!(
            error.starts_with("the file /nowhere/password with the database's password cannot be read: "),
            "{error}"
        );
    }

    #[test]
    fn a_password_is_found_in_every_form_of_a_url() {
        for url in
            ["postgres://me:hush@one/shop", "postgres://me:hush@one/shop?sslmode=verify-full&sslrootcert=/ca.pem"]
        {
            assert!(Target::has_password(url), "{url}");
        }
        assert!(Target::has_password("postgres://one/shop?user=me&password=hush"));
        assert!(!Target::has_password("postgres://me@one/shop?sslmode=verify-full"));
    }

    #[test]
    fn an_invalid_url_is_refused_and_never_quoted() {
        for url in
            ["mysql://me:hush@one/shop", "postgres://me:hush@one:port/shop", "postgres://me:hush@one/shop?hush=1"]
        {
            let error = Target::new(&url.into(), None).err().unwrap();
            assert!(!format!("{error} {error:?}").contains("hush@"), "{error}");
        }
    }
}
