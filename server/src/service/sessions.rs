//! People's sessions of the console: sign-in, authentication, sign-out, and the operator's commands about them.

use payments_core::{Environment, KeyId, Slot, Timestamp, WorkspaceId};
use schemars::JsonSchema;
use secrecy::{ExposeSecret, SecretString};
use serde::{Deserialize, Serialize};

use super::{Directory, Result, ServiceError, operator_text::invalid, retry_on_conflict};
use crate::{
    domain::{ApiKey, Grant, KeyHash, LONGEST_SESSION_SECONDS, PersonSession, Role, Workspace},
    store::{Change, Write},
};

/// How many open sessions a person has at most. The next sign-in revokes the oldest.
const MAX_OF_A_PERSON: usize = 10;
/// How many sessions that have not expired there are at most. The next sign-in fails.
const MAX_SESSIONS: usize = 10_000;
/// How many expired sessions a sign-in removes at most.
const MAX_REMOVED: usize = 100;
/// How many characters of a name or an address are kept.
const MAX_NAME_CHARS: usize = 200;
/// How many workspaces the console offers at most.
const MAX_OFFERED: usize = 500;
const TOKEN_BYTES: usize = 32;
const MAX_TOKEN_BYTES: usize = 128;

/// A person whom the provider of identities has vouched for.
#[derive(Debug)]
pub struct SignedIn {
    pub subject: String,
    pub email: Option<String>,
    pub name: Option<String>,
    pub grants: Vec<Grant>,
    /// When the provider's token ends.
    pub until: Timestamp,
}

/// A command about people's sessions.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "action", rename_all = "snake_case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum SessionRequest {
    /// Lists the sessions that have not expired.
    List,
    /// Revokes one session.
    Revoke { id: String },
    /// Revokes all sessions of a person.
    RevokePerson { email: String },
}

/// The answer to a [`SessionRequest`].
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum SessionReply {
    Rows { rows: Vec<SessionRow> },
    Revoked { revoked_sessions: Vec<KeyId> },
}

/// A row of `sessions list`.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SessionRow {
    pub id: KeyId,
    pub subject: String,
    pub email: Option<String>,
    pub name: Option<String>,
    pub grants: Vec<Grant>,
    pub created_at: Timestamp,
    pub expires_at: Timestamp,
    pub last_seen_at: Timestamp,
    pub revoked_at: Option<Timestamp>,
}

impl Directory {
    /// Begins a session and returns the token for the browser's cookie.
    pub async fn begin_session(&self, person: SignedIn) -> Result<SecretString> {
        let token = SecretString::from(format!("ses_{}", hex::encode(self.ambient.random::<TOKEN_BYTES>())));
        let short = |text: &String| text.chars().take(MAX_NAME_CHARS).collect::<String>();
        retry_on_conflict(|| async {
            let now = self.ambient.now();
            let longest = now.plus_seconds(LONGEST_SESSION_SECONDS);
            let new = PersonSession {
                version: 0,
                id: KeyId::new(Slot::FIRST, now, self.ambient.id_bytes()),
                token_hash: hash_of(token.expose_secret()),
                subject: short(&person.subject),
                email: person.email.as_ref().map(short),
                name: person.name.as_ref().map(short),
                grants: person.grants.clone(),
                created_at: now,
                expires_at: longest.min(person.until),
                last_seen_at: minute_of(now),
                revoked_at: None,
            };
            let known = self.store.person_sessions(MAX_SESSIONS + MAX_REMOVED).await?;
            let writes = beginning(known, new, now)?;
            self.commit(Change { writes, ..Change::default() }).await?;
            Ok(())
        })
        .await?;
        Ok(token)
    }

    /// The open session of a cookie's token. Notes once a minute that it was seen.
    pub async fn open_session(&self, token: &str) -> Result<Option<PersonSession>> {
        let now = self.ambient.now();
        let Some(session) = self.session(token).await?.filter(|session| session.is_open(now)) else { return Ok(None) };
        if session.last_seen_at < minute_of(now) {
            let seen = PersonSession { version: session.version + 1, last_seen_at: minute_of(now), ..session.clone() };
            match self.commit(Change::of(Write::PersonSession(Box::new(seen)))).await.map_err(ServiceError::from) {
                // Another request noted it, or the session was revoked at this moment.
                Ok(()) | Err(ServiceError::Conflict) => {}
                Err(error) => return Err(error),
            }
        }
        Ok(Some(session))
    }

    /// Revokes the session of a cookie's token.
    pub async fn end_session(&self, token: &str) -> Result<()> {
        retry_on_conflict(|| async {
            let now = self.ambient.now();
            if let Some(session) = self.session(token).await?.filter(|session| session.is_open(now)) {
                self.commit(Change::of(revoked(session, now))).await?;
            }
            Ok(())
        })
        .await
    }

    /// The key as which a session acts in a workspace, and its role there. `None` if it has no role there.
    pub async fn key_of_session(
        &self,
        session: &PersonSession,
        workspace: &str,
        environment: Environment,
    ) -> Result<Option<(ApiKey, Role)>> {
        let Some(workspace) = self.store.workspace(workspace).await? else { return Ok(None) };
        let Some(role) = session.role_in(&workspace.id) else { return Ok(None) };
        let id = session.id.as_str();
        let key = ApiKey {
            version: 0,
            id: session.id.clone(),
            scope: workspace.scope(environment),
            workspace_id: workspace.id,
            last4: id[id.len().saturating_sub(4)..].into(),
            app_id: None,
            only_its_app: false,
            name: Some(session.label().to_owned()),
            permissions: Some(role.permissions().to_vec()),
            created_at: session.created_at,
            expires_at: Some(session.expires_at),
            last_used_at: Some(session.last_seen_at),
            revoked_at: None,
            replaced_by: None,
        };
        Ok(Some((key, role)))
    }

    /// The workspaces that a session may open, by name, at most [`MAX_OFFERED`].
    pub async fn workspaces_of_session(&self, session: &PersonSession) -> Result<Vec<(Workspace, Role)>> {
        let mut found = match session.grants.iter().any(|grant| grant.workspace.is_none()) {
            true => self.store.workspaces().await?,
            false => {
                let mut ids: Vec<&WorkspaceId> = session.grants.iter().filter_map(|it| it.workspace.as_ref()).collect();
                ids.sort();
                ids.dedup();
                let mut found = Vec::new();
                for id in ids {
                    found.extend(self.store.workspace(id.as_str()).await?);
                }
                found
            }
        };
        found.sort_by(|one, other| one.name.cmp(&other.name));
        let with_role = found.into_iter().filter_map(|it| session.role_in(&it.id).map(|role| (it, role)));
        Ok(with_role.take(MAX_OFFERED).collect())
    }

    pub(super) async fn sessions(&self, request: SessionRequest) -> Result<SessionReply> {
        let now = self.ambient.now();
        Ok(match request {
            SessionRequest::List => {
                let mut known = self.store.person_sessions(MAX_SESSIONS + MAX_REMOVED).await?;
                known.retain(|it| it.expires_at > now);
                known.sort_by_key(|it| it.created_at);
                SessionReply::Rows { rows: known.into_iter().map(row).collect() }
            }
            SessionRequest::Revoke { id } => {
                self.revoke_sessions(|it| it.id.as_str() == id, "no open session has this id").await?
            }
            SessionRequest::RevokePerson { email } => {
                let is_its = |it: &PersonSession| it.email.as_ref().is_some_and(|its| its.eq_ignore_ascii_case(&email));
                self.revoke_sessions(is_its, "no open session is of a person with this e-mail address").await?
            }
        })
    }

    async fn revoke_sessions(&self, is_meant: impl Fn(&PersonSession) -> bool, none: &str) -> Result<SessionReply> {
        retry_on_conflict(|| async {
            let now = self.ambient.now();
            let mut known = self.store.person_sessions(MAX_SESSIONS + MAX_REMOVED).await?;
            known.retain(|it| it.is_open(now) && is_meant(it));
            if known.is_empty() {
                return Err(invalid(format!("{none}; `payments-server sessions list` shows them")));
            }
            let revoked_sessions = known.iter().map(|it| it.id.clone()).collect();
            let writes = known.into_iter().map(|it| revoked(it, now)).collect();
            self.commit(Change { writes, ..Change::default() }).await?;
            Ok(SessionReply::Revoked { revoked_sessions })
        })
        .await
    }

    async fn session(&self, token: &str) -> Result<Option<PersonSession>> {
        if token.len() > MAX_TOKEN_BYTES {
            return Ok(None);
        }
        Ok(self.store.person_session(&hash_of(token)).await?)
    }
}

/// The writes of a new session. They remove expired ones, and revoke the person's oldest if there are too many.
fn beginning(known: Vec<PersonSession>, new: PersonSession, now: Timestamp) -> Result<Vec<Write>> {
    let (expired, known): (Vec<_>, Vec<_>) = known.into_iter().partition(|it| it.expires_at <= now);
    if known.len() >= MAX_SESSIONS {
        return Err(ServiceError::TooManySessions { at_most: MAX_SESSIONS });
    }
    let mut own: Vec<_> = known.into_iter().filter(|it| it.subject == new.subject && it.is_open(now)).collect();
    own.sort_by_key(|it| it.created_at);
    let too_many = own.len().saturating_sub(MAX_OF_A_PERSON - 1);
    let removed = expired.into_iter().take(MAX_REMOVED).map(|it| Write::PersonSessionRemoved(Box::new(it)));
    let revoked = own.into_iter().take(too_many).map(|it| revoked(it, now));
    Ok(removed.chain(revoked).chain([Write::PersonSession(Box::new(new))]).collect())
}

fn revoked(session: PersonSession, now: Timestamp) -> Write {
    let version = session.version + 1;
    Write::PersonSession(Box::new(PersonSession { version, revoked_at: Some(now), ..session }))
}

fn row(session: PersonSession) -> SessionRow {
    let PersonSession { id, subject, email, name, grants, created_at, expires_at, last_seen_at, revoked_at, .. } =
        session;
    SessionRow { id, subject, email, name, grants, created_at, expires_at, last_seen_at, revoked_at }
}

fn hash_of(token: &str) -> String {
    hex::encode(KeyHash::of(token).digest)
}

fn minute_of(at: Timestamp) -> Timestamp {
    let millis = at.as_millis();
    Timestamp::from_millis(millis - millis.rem_euclid(60_000)).unwrap_or(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::in_memory::service;

    fn person(subject: &str, until: Timestamp) -> SignedIn {
        let grants = vec![Grant { role: Role::Viewer, workspace: None }];
        SignedIn { subject: subject.into(), email: Some("Mita@Platform.example".into()), name: None, grants, until }
    }

    #[tokio::test]
    async fn a_session_ends_with_the_providers_token_or_after_twelve_hours() {
        let service = service();
        let (directory, now) = (&service.directory, service.ambient.now());
        for (seconds, lasts) in [(60, 60), (7 * 24 * 60 * 60, LONGEST_SESSION_SECONDS)] {
            let token = directory.begin_session(person("7", now.plus_seconds(seconds))).await.unwrap();
            let session = directory.open_session(token.expose_secret()).await.unwrap().unwrap();
            let lasted = session.expires_at.as_millis() - session.created_at.as_millis();
            assert!((i64::from(lasts) * 1000 - lasted).abs() < 20_000, "{lasted}");
        }
        let ended = directory.begin_session(person("7", now)).await.unwrap();
        assert_eq!(directory.open_session(ended.expose_secret()).await.unwrap(), None);
        // The next sign-in removes it.
        directory.begin_session(person("7", now.plus_seconds(60))).await.unwrap();
        assert_eq!(directory.session(ended.expose_secret()).await.unwrap(), None);
    }

    #[tokio::test]
    async fn a_person_has_at_most_ten_sessions_and_the_operator_revokes_one_or_all() {
        let service = service();
        let (directory, until) = (&service.directory, service.ambient.now().plus_seconds(600));
        let mut tokens = Vec::new();
        for _ in 0..=MAX_OF_A_PERSON {
            tokens.push(directory.begin_session(person("7", until)).await.unwrap());
            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
        }
        // Another person's sessions do not count.
        let other = directory.begin_session(SignedIn { email: None, ..person("8", until) }).await.unwrap();
        let open = async |token: &SecretString| directory.open_session(token.expose_secret()).await.unwrap();
        assert_eq!(open(&tokens[0]).await, None);
        assert!(open(&tokens[1]).await.is_some() && open(&other).await.is_some());
        let id = open(&tokens[1]).await.unwrap().id;
        directory.sessions(SessionRequest::Revoke { id: id.to_string() }).await.unwrap();
        assert_eq!(open(&tokens[1]).await, None);
        assert!(directory.sessions(SessionRequest::Revoke { id: id.to_string() }).await.is_err());
        let email = "mita@platform.example".to_owned();
        let SessionReply::Revoked { revoked_sessions } =
            directory.sessions(SessionRequest::RevokePerson { email }).await.unwrap()
        else {
            panic!("no list")
        };
        assert_eq!(revoked_sessions.len(), MAX_OF_A_PERSON - 1);
        assert!(open(&tokens[10]).await.is_none() && open(&other).await.is_some());
        directory.end_session(other.expose_secret()).await.unwrap();
        assert_eq!(open(&other).await, None);
        let SessionReply::Rows { rows } = directory.sessions(SessionRequest::List).await.unwrap() else {
            panic!("no rows")
        };
        assert_eq!((rows.len(), rows.iter().filter(|row| row.revoked_at.is_none()).count()), (12, 0));
    }
}
