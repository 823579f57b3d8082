//! Why a delivery attempt got no response: a stable code and a message for the merchant.

use std::{error::Error, io};

use payments_core::{DeliveryError, DeliveryErrorCode};

use super::{client::SendError, connector::ConnectError, lookups::LookupError, target::TargetFault};

/// Why a delivery attempt got no response.
#[derive(Debug)]
pub(super) enum Fault {
    /// The error that is logged with the delivery.
    Delivery(DeliveryError),
    /// This server is out of a resource and sent nothing.
    Exhausted(&'static str),
}

impl Fault {
    pub(super) fn timeout() -> Self {
        failed(DeliveryErrorCode::Timeout, "the endpoint did not answer within 8 seconds")
    }

    pub(super) fn not_allowed(fault: TargetFault) -> Self {
        failed(DeliveryErrorCode::AddressNotAllowed, format!("the endpoint's url {fault}"))
    }

    pub(super) fn not_sent(why: &dyn Error) -> Self {
        failed(DeliveryErrorCode::NotSent, format!("the request could not be made: {why}"))
    }
}

/// The error of a delivery whose endpoint was removed before it was sent.
pub(super) fn endpoint_removed() -> DeliveryError {
    DeliveryError::new(DeliveryErrorCode::EndpointRemoved, "the endpoint was removed before this delivery was sent")
}

fn failed(code: DeliveryErrorCode, message: impl Into<String>) -> Fault {
    Fault::Delivery(DeliveryError::new(code, message))
}

impl From<SendError> for Fault {
    fn from(error: SendError) -> Self {
        match &error {
            SendError::Request(error) => Self::not_sent(error),
            SendError::Client(error) => client_fault(error),
        }
    }
}

fn client_fault(error: &(dyn Error + 'static)) -> Fault {
    let mut next = Some(error);
    while let Some(cause) = next {
        if let Some(error) = cause.downcast_ref::<ConnectError>() {
            return connect_fault(error);
        }
        if let Some(error) = cause.downcast_ref::<hyper::Error>()
            && error.is_parse()
        {
            return failed(DeliveryErrorCode::InvalidResponse, "the endpoint's response was not valid HTTP");
        }
        next = cause.source();
    }
    failed(DeliveryErrorCode::ConnectionClosed, "the endpoint closed the connection before it answered")
}

fn connect_fault(error: &ConnectError) -> Fault {
    use DeliveryErrorCode::{ConnectionClosed, ConnectionFailed, ConnectionRefused, DnsFailed, TlsFailed};

    match error {
        ConnectError::Exhausted(what) => Fault::Exhausted(what),
        ConnectError::Lookup(LookupError::NotAllowed(fault)) => Fault::not_allowed(*fault),
        ConnectError::Lookup(LookupError::NotFound(_)) => {
            failed(DnsFailed, "the endpoint's host name could not be resolved")
        }
        ConnectError::Lookup(error @ (LookupError::NoRoute | LookupError::TooMany)) => {
            failed(ConnectionFailed, format!("the endpoint could not be reached: {error}"))
        }
        ConnectError::Tcp(error) => match error.kind() {
            io::ErrorKind::ConnectionRefused => failed(ConnectionRefused, "the endpoint refused the connection"),
            io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted => {
                failed(ConnectionClosed, "the endpoint closed the connection before it answered")
            }
            kind => failed(ConnectionFailed, format!("the endpoint could not be reached: {kind}")),
        },
        ConnectError::Tls(error) => failed(TlsFailed, format!("the TLS handshake with the endpoint failed: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(error: ConnectError) -> String {
        match connect_fault(&error) {
            Fault::Delivery(error) => error.code.to_string(),
            Fault::Exhausted(what) => what.to_owned(),
        }
    }

    #[test]
    fn each_connection_error_has_its_code() {
        let tcp = |kind: io::ErrorKind| ConnectError::Tcp(kind.into());
        assert_eq!(code(tcp(io::ErrorKind::ConnectionRefused)), "connection_refused");
        assert_eq!(code(tcp(io::ErrorKind::ConnectionReset)), "connection_closed");
        assert_eq!(code(tcp(io::ErrorKind::NetworkUnreachable)), "connection_failed");
        assert_eq!(code(ConnectError::Lookup(LookupError::NoRoute)), "connection_failed");
        assert_eq!(code(ConnectError::Lookup(LookupError::NotFound(io::Error::other("?")))), "dns_failed");
        assert_eq!(code(ConnectError::Lookup(LookupError::NotAllowed(TargetFault::NotPublic))), "address_not_allowed");
        assert_eq!(code(ConnectError::Tls("certificate expired".into())), "tls_failed");
        assert_eq!(code(ConnectError::Exhausted("file descriptors")), "file descriptors");
    }
}
