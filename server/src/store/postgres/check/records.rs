//! Workspaces, API keys, apps, endpoints and gateway tokens.

use serde::de::DeserializeOwned;
use tokio_postgres::Row;

use super::{
    super::{load::parse, names::Kind, read::field, record_columns::RecordColumns},
    Check,
};
use crate::{
    domain::{ApiKey, App, Endpoint, LogPart, StoredToken, Workspace, endpoint_faults, owner_of},
    store::{Migration, Result},
};

/// With each record: the developer of the workspace that its parent is, and how many workspaces its parent has.
pub(super) const RECORDS: &str = "SELECT r.kind, r.id, r.parent, r.version, r.body, \
    (SELECT w.parent FROM record w WHERE w.kind = 'workspace' AND w.id = r.parent), \
    (SELECT count(*) FROM record w WHERE w.kind = 'workspace' AND w.parent = r.parent) \
    FROM record r ORDER BY r.kind, r.id";
/// Each scope with the number that is stored and the number of its endpoints.
pub(super) const ENDPOINT_COUNTS: &str = "SELECT scope, c.endpoints, coalesce(r.endpoints, 0) \
    FROM (SELECT developer || '/' || environment AS scope, endpoints FROM endpoint_count) c \
    FULL JOIN (SELECT parent AS scope, count(*) AS endpoints FROM record WHERE kind = 'endpoint' GROUP BY 1) r \
    USING (scope) ORDER BY scope";

impl Check<'_> {
    pub(super) fn record(&mut self, row: &Row) -> Result<()> {
        self.read(1);
        let (kind, id): (&str, &str) = (field(row, 0)?, field(row, 1)?);
        let (owner, workspaces): (Option<&str>, i64) = (field(row, 5)?, field(row, 6)?);
        let key = format!("record/{kind}/{id}");
        let missing = "belongs to a developer that is not there";
        let columns = match Kind::known(kind) {
            None => {
                self.find(&key, "is of no kind that this version writes");
                return Ok(());
            }
            Some(Kind::Workspace) => self.body(&key, row)?.map(|it: Workspace| {
                self.expect(workspaces == 1, &key, "is not the only workspace of its developer");
                RecordColumns::of_workspace(&it)
            }),
            Some(Kind::ApiKey) => self.body(&key, row)?.map(|it: ApiKey| {
                let is_owned = owner == Some(owner_of(&it.scope.developer_id).as_str());
                self.expect(is_owned, &key, "belongs to a workspace that is not its developer's");
                RecordColumns::of_api_key(id.to_owned(), &it)
            }),
            Some(Kind::App) => self.body(&key, row)?.map(|it: App| {
                self.expect(workspaces > 0, &key, missing);
                RecordColumns::of_app(&it)
            }),
            Some(Kind::Endpoint) => self.body(&key, row)?.map(|it: Endpoint| {
                endpoint_faults(&it).into_iter().for_each(|fault| self.find(&key, fault));
                RecordColumns::of_endpoint(&it)
            }),
            Some(Kind::LogPart) => self.body(&key, row)?.map(|it: LogPart| RecordColumns::of_log_part(&it)),
            Some(Kind::Migration) => self.body(&key, row)?.map(|it: Migration| RecordColumns::of_migration(&it)),
            Some(Kind::GatewayToken) => {
                self.body(&key, row)?.map(|it: StoredToken| RecordColumns::of_gateway_token(id, &it))
            }
        };
        let Some(RecordColumns { key: (_, expected_id), parent, version }) = columns else { return Ok(()) };
        self.column(&key, "id", &id, &&*expected_id);
        self.column(&key, "parent", &field(row, 2)?, &&*parent);
        self.column(&key, "version", &field(row, 3)?, &version.cast_signed());
        Ok(())
    }

    fn body<T: DeserializeOwned>(&mut self, key: &str, row: &Row) -> Result<Option<T>> {
        let body: &str = field(row, 4)?;
        self.readable(key, parse(key, body))
    }

    pub(super) fn endpoint_count(&mut self, row: &Row) -> Result<()> {
        let (scope, stored, endpoints): (&str, Option<i64>, i64) = (field(row, 0)?, field(row, 1)?, field(row, 2)?);
        self.read(stored.iter().len());
        self.sum(&format!("endpoint_count/{scope}"), stored.map(i128::from), endpoints.into());
        Ok(())
    }
}
