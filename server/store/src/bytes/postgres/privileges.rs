//! The privileges that a server's role needs on the tables, and the proof that it has them.

use super::session::Session;
use crate::{Result, StoreError};

/// The privileges that a server needs on each table. A row lock needs UPDATE.
const NEEDED: [(&str, &[&str]); 6] = [
    ("batch", &["SELECT", "INSERT", "DELETE"]),
    ("cell", &["SELECT", "UPDATE"]),
    ("entry", &["SELECT", "INSERT", "UPDATE", "DELETE"]),
    ("record", &["SELECT", "INSERT", "UPDATE", "DELETE"]),
    ("request_window", &["SELECT", "INSERT", "UPDATE", "DELETE"]),
    ("schema_version", &["SELECT", "UPDATE"]),
];

/// Selects the role and the statements that grant its missing privileges.
const LACKING: &str = "SELECT current_user::text, string_agg(format('GRANT %s ON %I.%I TO %I', k.lacking, current_schema(), \
    k.name, current_user), '; ' ORDER BY k.name) \
    FROM (SELECT name, string_agg(privilege, ', ' ORDER BY nth) AS lacking \
    FROM unnest($1::text[], $2::text[]) WITH ORDINALITY n (name, privilege, nth) \
    WHERE NOT has_table_privilege(name, privilege) GROUP BY name) k HAVING count(*) > 0";

impl Session {
    pub(super) async fn prove_privileges(&self) -> Result<()> {
        let each =
            NEEDED.iter().flat_map(|(table, privileges)| privileges.iter().map(|privilege| (*table, *privilege)));
        let (tables, privileges): (Vec<_>, Vec<_>) = each.unzip();
        let rows = self.query(LACKING, &[&tables, &privileges]).await?;
        let Some(row) = rows.first() else { return Ok(()) };
        let (role, grants): (&str, &str) = (row.try_get(0)?, row.try_get(1)?);
        Err(StoreError::Denied(format!("the role {role} lacks privileges; as the owner of the tables, run: {grants}")))
    }

    /// The same error. If the database denied something, it names the missing privileges.
    pub(super) async fn name_privileges(&self, error: StoreError) -> StoreError {
        match error {
            StoreError::Denied(said) => match self.in_time(self.prove_privileges()).await {
                Some(Err(StoreError::Denied(named))) => StoreError::Denied(named),
                _ => StoreError::Denied(said),
            },
            other => other,
        }
    }
}
