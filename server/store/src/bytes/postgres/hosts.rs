//! The hosts of a URL, each with a configuration that leads to it alone.

use std::{io, net::IpAddr};

use tokio::net::lookup_host;
use tokio_postgres::{Config, config::Host as Name};

pub(super) struct Host {
    /// The host's number in the URL.
    pub(super) nth: usize,
    /// The host as in the URL, with its port.
    pub(super) name: String,
    /// The configuration that leads to this host. Its name may have several addresses.
    config: Config,
}

impl Host {
    /// A configuration for each address of the host.
    pub(super) async fn addresses(&self) -> io::Result<Vec<Config>> {
        let (Some(Name::Tcp(name)), []) = (self.config.get_hosts().first(), self.config.get_hostaddrs()) else {
            return Ok(vec![self.config.clone()]);
        };
        let port = self.config.get_ports().first().copied().unwrap_or(PORT);
        let at = |address: IpAddr| {
            let mut config = self.config.clone();
            config.hostaddr(address);
            config
        };
        Ok(lookup_host((&**name, port)).await?.map(|found| at(found.ip())).collect())
    }
}

const PORT: u16 = 5432;

/// The hosts that a configuration names, in its order.
pub(super) fn of(config: &Config) -> Vec<Host> {
    let (names, addresses, ports) = (config.get_hosts(), config.get_hostaddrs(), config.get_ports());
    let host = |nth| {
        let port = ports.get(nth).or(ports.first()).copied().unwrap_or(PORT);
        let mut one = without_hosts(config);
        one.port(port);
        let mut said = None;
        match names.get(nth) {
            Some(Name::Tcp(name)) => {
                one.host(name);
                said = Some(name.clone());
            }
            Some(Name::Unix(directory)) => {
                one.host_path(directory);
                said = Some(directory.display().to_string());
            }
            None => {}
        }
        if let Some(address) = addresses.get(nth) {
            one.hostaddr(*address);
            said = said.or(Some(address.to_string()));
        }
        Host { nth, name: format!("{}:{port}", said.unwrap_or_default()), config: one }
    };
    (0..names.len().max(addresses.len())).map(host).collect()
}

fn without_hosts(config: &Config) -> Config {
    let mut one = Config::new();
    config.get_user().map(|user| one.user(user));
    config.get_password().map(|password| one.password(password));
    config.get_dbname().map(|name| one.dbname(name));
    config.get_options().map(|options| one.options(options));
    config.get_application_name().map(|name| one.application_name(name));
    config.get_connect_timeout().map(|time| one.connect_timeout(*time));
    config.get_tcp_user_timeout().map(|time| one.tcp_user_timeout(*time));
    config.get_keepalives_interval().map(|time| one.keepalives_interval(time));
    config.get_keepalives_retries().map(|retries| one.keepalives_retries(retries));
    one.keepalives(config.get_keepalives()).keepalives_idle(config.get_keepalives_idle());
    one.ssl_mode(config.get_ssl_mode()).ssl_negotiation(config.get_ssl_negotiation());
    one.channel_binding(config.get_channel_binding()).target_session_attrs(config.get_target_session_attrs());
    one.load_balance_hosts(config.get_load_balance_hosts());
    one
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All parameters that a URL can have.
    const QUERY: &str = "options=-c%20geqo%3Doff&application_name=shop&sslmode=require&sslnegotiation=direct&connect_timeout=3\
        &tcp_user_timeout=4&keepalives=0&keepalives_idle=5&keepalives_interval=6&keepalives_retries=7\
        &target_session_attrs=read-only&channel_binding=disable&load_balance_hosts=random";

    #[test]
    fn the_configuration_of_one_host_has_all_parameters_of_the_url_and_no_other_host() {
        let url = |hosts: &str| format!("postgres://me:hush@{hosts}/shop?{QUERY}");
        let both: Config = url("one:5433,%2Frun%2Fsockets:5434").parse().unwrap();
        let hosts = of(&both);
        assert_eq!(hosts.iter().map(|host| &*host.name).collect::<Vec<_>>(), ["one:5433", "/run/sockets:5434"]);
        for (host, alone) in hosts.iter().zip(["one:5433", "%2Frun%2Fsockets:5434"]) {
            assert_eq!(host.config, url(alone).parse().unwrap(), "{alone}");
        }
        let plain: Config = "postgres://one/shop".parse().unwrap();
        assert_eq!((&*of(&plain)[0].name, &of(&plain)[0].config.get_ports()), ("one:5432", &&[5432][..]));
        let by_address: Config = "hostaddr=192.0.2.1,192.0.2.2 port=5433".parse().unwrap();
        assert_eq!(of(&by_address)[1].name, "192.0.2.2:5433");
    }

    #[tokio::test]
    async fn a_name_leads_to_each_of_its_addresses_and_an_address_or_a_socket_to_itself() {
        let addresses = async |text: &str| {
            let config: Config = text.parse().unwrap();
            let found = of(&config)[0].addresses().await.unwrap();
            found.iter().flat_map(|config| config.get_hostaddrs().to_vec()).collect::<Vec<_>>()
        };
        assert!(addresses("host=localhost").await.iter().all(IpAddr::is_loopback));
        assert!(!addresses("host=localhost").await.is_empty());
        assert_eq!(addresses("host=shop.example hostaddr=192.0.2.1").await, ["192.0.2.1".parse::<IpAddr>().unwrap()]);
        assert!(addresses("host=/run/sockets").await.is_empty());
    }
}
