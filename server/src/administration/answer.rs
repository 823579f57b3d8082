//! Answers a request of the administration API.

use payments_core::{ErrorCode, WorkspaceId};

use super::{
    description,
    message::request_of,
    routes::{DESCRIPTION, Found, PREFIX, find},
    who::Who,
};
use crate::service::{AdminReply, ServiceError, Services};

/// The status and the JSON of an answer.
pub struct Answered {
    pub status: u16,
    pub body: Vec<u8>,
    /// The methods of the path, if the request has another one.
    pub allow: Option<String>,
    /// Whether customers' data must be masked for who asked.
    pub is_masked: bool,
}

/// Answers a request. `target` is its path and query.
pub async fn answer(services: &Services, who: Who, method: &str, target: &str, body: &[u8]) -> Answered {
    let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
    if (method, path) == ("GET", DESCRIPTION) {
        return Answered { status: 200, body: description::document().into(), allow: None, is_masked: false };
    }
    let path = path.strip_prefix(PREFIX).unwrap_or_default();
    let (route, parameters) = match find(method, path) {
        Found::Route(route, parameters) => (route, parameters),
        Found::Methods(allow) => {
            let error = AdminReply::error(ErrorCode::MethodNotAllowed, format!("this path allows {allow}"));
            return Answered { allow: Some(allow), ..answered(&error) };
        }
        Found::Nothing => {
            let sentence = format!("there is no such path; {DESCRIPTION} lists all");
            return answered(&AdminReply::error(ErrorCode::RouteNotFound, sentence));
        }
    };
    let request = match request_of(route, &parameters, query, body) {
        Ok(request) => request,
        Err(invalid) => return answered(&AdminReply::from(ServiceError::from(invalid))),
    };
    let workspace = match workspace_of(services, &parameters).await {
        Ok(workspace) => workspace,
        // Who may see no workspace learns nothing of their names.
        Err(_) if !who.may(route.needs, None) => None,
        Err(error) => return answered(&AdminReply::from(error)),
    };
    if !who.may(route.needs, workspace.as_ref()) {
        let sentence = format!("this needs the permission {}, which {} does not have", route.needs, who.actor.id);
        return answered(&AdminReply::error(ErrorCode::PermissionMissing, sentence));
    }
    let is_masked = who.is_masked(workspace.as_ref());
    let reply = who.acting(&request).scope(services.administer(request)).await;
    Answered { is_masked, ..answered(&reply) }
}

/// The workspace that a path names.
async fn workspace_of(services: &Services, parameters: &[(&str, &str)]) -> Result<Option<WorkspaceId>, ServiceError> {
    let Some((_, name)) = parameters.iter().find(|(name, _)| *name == "workspace") else { return Ok(None) };
    let name = percent_encoding::percent_decode_str(name).decode_utf8_lossy();
    Ok(Some(services.lasting.directory.workspace_id(&name).await?))
}

pub(super) fn answered(reply: &AdminReply) -> Answered {
    let status = match reply {
        AdminReply::Error { code, .. } => code.status().unwrap_or(500),
        _ => 200,
    };
    match serde_json::to_vec(reply) {
        Ok(body) => Answered { status, body, allow: None, is_masked: false },
        Err(error) => {
            tracing::error!(%error, "an answer of the administration API is no JSON");
            Answered {
                status: 500,
                body: br#"{"code":"internal_error","message":"the server failed"}"#.to_vec(),
                allow: None,
                is_masked: false,
            }
        }
    }
}
