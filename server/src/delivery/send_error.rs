//! Why a delivery attempt got no response: a stable code and a message for the merchant.

use std::{error::Error, fmt::Display, io, iter::successors, net::UdpSocket};

use hyper::StatusCode;
use hyper_util::client::legacy::Error as ClientError;
use payments_core::{DeliveryError, DeliveryErrorCode};
use rustix::io::Errno;

use super::target::EndpointUrlError;

/// Why a delivery attempt got no response.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SendError {
    /// The error that is logged with the delivery.
    #[error("{}", .0.message)]
    Delivery(DeliveryError),
    #[error(transparent)]
    Exhausted(#[from] Exhausted),
    /// The endpoint answered with this status, but the rest of the response's head was not valid HTTP.
    #[error("the endpoint answered {0} with an invalid head")]
    StatusOnly(StatusCode),
}

/// This server lacks a resource: descriptors, memory, local ports, lookups or permits. It sent nothing, the endpoint is not
/// at fault, and the delivery is unchanged.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("this server is out of {0} and cannot send webhooks")]
pub struct Exhausted(pub(super) &'static str);

impl Exhausted {
    fn from_io(error: &io::Error, is_ipv6_literal: bool) -> Option<Self> {
        match Errno::from_io_error(error)? {
            Errno::MFILE | Errno::NFILE => Some(Self("file descriptors")),
            Errno::NOMEM | Errno::NOBUFS => Some(Self("memory")),
            // For a literal IPv6 address it may mean that this machine has no IPv6. For names, the resolver has dropped those
            // addresses.
            Errno::ADDRNOTAVAIL if !is_ipv6_literal => Some(Self("local ports")),
            _ => None,
        }
    }
}

impl SendError {
    pub(super) fn timeout() -> Self {
        failed(DeliveryErrorCode::Timeout, "the endpoint did not answer within 8 seconds")
    }

    pub(super) fn not_allowed(error: EndpointUrlError) -> Self {
        failed(DeliveryErrorCode::AddressNotAllowed, format!("the endpoint's url {error}"))
    }

    pub(super) fn not_sent(why: impl Display) -> Self {
        failed(DeliveryErrorCode::NotSent, format!("the request could not be made: {why}"))
    }

    pub(super) fn not_reached(why: impl Display) -> Self {
        failed(DeliveryErrorCode::ConnectionFailed, format!("the endpoint could not be reached: {why}"))
    }

    pub(super) fn of_lookup(error: &io::Error) -> Self {
        // The system's resolver may hide that it could not open a socket.
        let no_socket = || Exhausted::from_io(&UdpSocket::bind(("127.0.0.1", 0)).err()?, false);
        match Exhausted::from_io(error, false).or_else(no_socket) {
            Some(exhausted) => exhausted.into(),
            None => failed(DeliveryErrorCode::DnsFailed, "the endpoint's host name could not be resolved"),
        }
    }

    pub(super) fn of_tcp(error: &io::Error, is_ipv6_literal: bool) -> Self {
        match (Exhausted::from_io(error, is_ipv6_literal), error.kind()) {
            (Some(exhausted), _) => exhausted.into(),
            (None, io::ErrorKind::ConnectionRefused) => {
                failed(DeliveryErrorCode::ConnectionRefused, "the endpoint refused the connection")
            }
            (None, io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted) => Self::closed(),
            (None, kind) => Self::not_reached(kind),
        }
    }

    pub(super) fn of_tls(error: &dyn Error) -> Self {
        failed(DeliveryErrorCode::TlsFailed, format!("the TLS handshake with the endpoint failed: {error}"))
    }

    pub(super) fn is_invalid_response(&self) -> bool {
        matches!(self, Self::Delivery(error) if error.code == DeliveryErrorCode::InvalidResponse)
    }

    pub fn closed() -> Self {
        failed(DeliveryErrorCode::ConnectionClosed, "the endpoint closed the connection before it answered")
    }
}

fn failed(code: DeliveryErrorCode, message: impl Into<String>) -> SendError {
    SendError::Delivery(DeliveryError::new(code, message))
}

impl From<ClientError> for SendError {
    fn from(error: ClientError) -> Self {
        for cause in causes(&error) {
            // The connector's error.
            if let Some(error) = cause.downcast_ref::<Self>() {
                return error.clone();
            }
            if cause.downcast_ref().is_some_and(hyper::Error::is_parse) {
                return failed(DeliveryErrorCode::InvalidResponse, "the endpoint's response was not valid HTTP");
            }
        }
        Self::closed()
    }
}

pub(super) fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    successors(Some(error), |error| Error::source(*error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(error: SendError) -> String {
        match error {
            SendError::Delivery(error) => error.code.to_string(),
            SendError::Exhausted(Exhausted(what)) => what.to_owned(),
            SendError::StatusOnly(status) => status.to_string(),
        }
    }

    #[test]
    fn each_connection_error_has_its_code() {
        let tcp = |kind: io::ErrorKind| SendError::of_tcp(&kind.into(), false);
        assert_eq!(code(tcp(io::ErrorKind::ConnectionRefused)), "connection_refused");
        assert_eq!(code(tcp(io::ErrorKind::ConnectionReset)), "connection_closed");
        assert_eq!(code(tcp(io::ErrorKind::NetworkUnreachable)), "connection_failed");
        assert_eq!(code(SendError::not_reached("no route")), "connection_failed");
        assert_eq!(code(SendError::of_lookup(&io::Error::other("?"))), "dns_failed");
        assert_eq!(code(SendError::not_allowed(EndpointUrlError::NotPublic)), "address_not_allowed");
        assert_eq!(code(SendError::of_tls(&io::Error::other("certificate expired"))), "tls_failed");
        assert_eq!(code(Exhausted("file descriptors").into()), "file descriptors");
    }

    #[test]
    fn errors_of_this_server_are_distinguished_from_errors_of_the_endpoint() {
        let tcp = |number: Errno, is_ipv6_literal| SendError::of_tcp(&number.into(), is_ipv6_literal);
        for ours in [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS, Errno::ADDRNOTAVAIL] {
            assert!(matches!(tcp(ours, false), SendError::Exhausted(_)), "{ours}");
        }
        for theirs in [Errno::CONNREFUSED, Errno::CONNRESET, Errno::NETUNREACH, Errno::HOSTUNREACH, Errno::TIMEDOUT] {
            assert!(matches!(tcp(theirs, false), SendError::Delivery(_)), "{theirs}");
        }
        assert!(matches!(tcp(Errno::ADDRNOTAVAIL, true), SendError::Delivery(_)), "this machine has no IPv6");
    }

    #[test]
    fn a_lookup_without_a_free_descriptor_is_not_an_unknown_name() {
        assert_eq!(code(SendError::of_lookup(&Errno::MFILE.into())), "file descriptors");
        assert_eq!(code(SendError::of_lookup(&Errno::NOENT.into())), "dns_failed");
    }
}
