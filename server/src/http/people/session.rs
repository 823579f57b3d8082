//! Requests with a session's cookie: who asks, for which workspace, and whether the console's own page asks.

use std::sync::Arc;

use payments_core::{AuditActor, Environment, ErrorCode};
use url::Url;
use warp::http::{HeaderMap, Method, header};

use super::{People, cookie::cookie};
use crate::{
    domain::{ApiKey, PersonSession, Role},
    http::{reply::ApiError, request::Request},
    service::{Directory, RefundCaps, actor},
};

const ENDED: &str = "this session has ended; sign in again";

/// A person who acts in a workspace.
pub(in crate::http) struct Person {
    pub(in crate::http) role: Role,
    refund_caps: Arc<RefundCaps>,
    /// The person in the audit log.
    pub(in crate::http) actor: AuditActor,
}

/// A person, as the audit log names one.
pub(in crate::http) fn actor_of(session: &PersonSession) -> AuditActor {
    actor("person", session.email.clone().unwrap_or_else(|| session.subject.clone()), session.name.clone())
}

impl Person {
    /// How much of a payment the person may have refunded; `None` if the role has no cap.
    pub(in crate::http) fn refund_caps(&self) -> Option<Arc<RefundCaps>> {
        self.role.has_refund_cap().then(|| Arc::clone(&self.refund_caps))
    }
}

/// The key as which a request with a session acts. `None` if the request names no workspace, or people do not sign in here. An
/// unknown session is 401.
pub(in crate::http) async fn authenticate(
    people: Option<&People>,
    directory: &Directory,
    method: &Method,
    headers: &HeaderMap,
) -> Result<Option<(ApiKey, Person)>, ApiError> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let (Some(people), Some(workspace)) = (people, text("x-workspace")) else { return Ok(None) };
    let Some(token) = cookie(headers, people.cookies.session) else {
        return Err(ApiError::new(ErrorCode::Unauthorized, ENDED));
    };
    check_same_site(people, headers, method)?;
    let session = directory.open_session(token).await?;
    let session = session.ok_or_else(|| ApiError::new(ErrorCode::Unauthorized, ENDED))?;
    let environment =
        text("x-environment").and_then(|named| Environment::ALL.into_iter().find(|it| it.as_str() == named));
    let Some(environment) = environment else {
        return Err(ApiError::new(ErrorCode::PermissionMissing, "X-Environment must be test or live"));
    };
    let Some((key, role)) = directory.key_of_session(&session, workspace, environment).await? else {
        return Err(ApiError::new(ErrorCode::PermissionMissing, "you have no role in this workspace"));
    };
    let person = Person { role, refund_caps: Arc::clone(&people.refund_caps), actor: actor_of(&session) };
    Ok(Some((key, person)))
}

/// The session of a request of the console that is about no workspace. `None` if people do not sign in here, or nobody has.
pub(in crate::http) async fn of_console(request: &Request) -> Result<Option<PersonSession>, ApiError> {
    let session = of_page(request).await?;
    if let (Some(people), Some(_)) = (&request.server.people, &session) {
        check_same_site(people, request.headers(), request.method())?;
    }
    Ok(session)
}

/// The session of a page's visitor.
pub(in crate::http) async fn of_page(request: &Request) -> Result<Option<PersonSession>, ApiError> {
    let token = request.server.people.as_ref().and_then(|it| cookie(request.headers(), it.cookies.session));
    let Some(token) = token else { return Ok(None) };
    Ok(request.service().directory.open_session(token).await?)
}

/// Refuses requests that another site's page may have sent. A form cannot send the header `X-Csrf`, and a script of another site
/// may not, because this server answers no preflight.
pub(super) fn check_same_site(people: &People, headers: &HeaderMap, method: &Method) -> Result<(), ApiError> {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let is_read = matches!(*method, Method::GET | Method::HEAD);
    let is_own = |origin: &str| {
        let origin = Url::parse(origin).map(|url| url.origin());
        let own = Url::parse(&people.base_url).map(|url| url.origin());
        matches!((origin, own), (Ok(origin), Ok(own)) if origin == own)
    };
    // A browser reaches a server on loopback by several names.
    let is_host =
        |origin: &str| text("host").is_some_and(|host| origin.split_once("://").is_some_and(|it| it.1 == host));
    let has_header = headers.contains_key("x-csrf");
    let has_site = is_read || text("sec-fetch-site").is_none_or(|site| site == "same-origin");
    let has_origin = is_read || text(header::ORIGIN.as_str()).is_none_or(|origin| is_own(origin) || is_host(origin));
    match has_header && has_site && has_origin {
        true => Ok(()),
        false => {
            let message = "requests with a session must come from this server's own pages, with the header X-Csrf";
            Err(ApiError::new(ErrorCode::CrossSiteRequest, message))
        }
    }
}
