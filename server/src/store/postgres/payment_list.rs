//! Pages of payments.

use payments_core::{Page, PageRequest, Payment, Status, UnknownFields};
use tokio_postgres::types::ToSql;

use super::{
    PostgresStore,
    load::payment_body,
    names,
    payment_blocks::BLOCK,
    read::{field, places},
};
use crate::{
    domain::Scope,
    store::{PaymentJson, Result, StoreError},
};

/// A page of payments, of all or of those that a condition selects, and how many there are: the entries of the list from `$place`
/// on, whose expressions give an id and how many entries up to it are passed over. Those are counted in the index; only the rows
/// that the page shows are read.
macro_rules! page {
    ($condition:literal, $with:expr, $up_to:literal, $passed:literal) => {
        concat!(
            "WITH ",
            $with,
            "shown AS (SELECT p.body, p.id FROM (SELECT id FROM payment WHERE developer = $1 AND environment = $2",
            $condition,
            $up_to,
            " ORDER BY id DESC OFFSET ",
            $passed,
            " LIMIT $5) k JOIN payment p USING (id)) \
             SELECT coalesce(sum(value), 0)::bigint, ARRAY(SELECT body FROM shown ORDER BY id DESC) FROM total \
             WHERE developer = $1 AND environment = $2 AND name = $3"
        )
    };
}
/// A page near the beginning.
macro_rules! near_page {
    ($condition:literal) => {
        page!($condition, "", "", "$4")
    };
}
/// A page far down: adds up blocks, the newest first, to the one in which it begins. What is newer than all blocks is counted.
macro_rules! far_page {
    ($condition:literal) => {
        page!(
            $condition,
            concat!(
                "last AS MATERIALIZED (SELECT number, up_to FROM payment_block WHERE developer = $1 AND environment = $2 \
                 AND is_counted ORDER BY number DESC LIMIT 1), \
                 newer AS MATERIALIZED (SELECT count(*) AS payments FROM payment WHERE developer = $1 AND environment = $2",
                $condition,
                " AND id > coalesce((SELECT up_to FROM last), '')), \
                 through AS (SELECT number, coalesce(sum(payments) OVER (ORDER BY number DESC \
                 RANGE BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), 0) + (SELECT payments FROM newer) AS passed, \
                 sum(payments) OVER (ORDER BY number DESC) + (SELECT payments FROM newer) AS through \
                 FROM payment_block_sum WHERE developer = $1 AND environment = $2",
                $condition,
                " AND number <= (SELECT number FROM last)), \
                 first AS (SELECT number, passed FROM through WHERE through > $4::bigint ORDER BY number DESC LIMIT 1), \
                 place AS MATERIALIZED (SELECT '~' AS up_to, $4::bigint AS passed FROM newer WHERE payments > $4::bigint \
                 UNION ALL SELECT b.up_to, ($4::bigint - f.passed)::bigint FROM newer n, first f JOIN payment_block b USING (number) \
                 WHERE n.payments <= $4::bigint AND b.developer = $1 AND b.environment = $2), "
            ),
            " AND id <= (SELECT up_to FROM place)",
            "(SELECT passed FROM place)"
        )
    };
}
const NEAR: &str = near_page!("");
const NEAR_BY_STATUS: &str = near_page!(" AND status = $6");
const FAR: &str = far_page!("");
const FAR_BY_STATUS: &str = far_page!(" AND status = $6");

/// A payment as the API serves it.
pub(super) fn json_of(payment: &Payment) -> Result<PaymentJson> {
    PaymentJson::of(payment).map_err(|error| StoreError::corrupt(payment.id.as_str().as_bytes(), error))
}

impl PostgresStore {
    pub(super) async fn payment_page(
        &self,
        scope: &Scope,
        status: Option<&Status>,
        page: PageRequest,
    ) -> Result<Page<PaymentJson>> {
        let is_far = places(page).0 > 2 * BLOCK;
        self.payment_page_by(scope, status, page, is_far).await
    }

    /// As [`payment_page`](Self::payment_page), by blocks or not.
    pub(crate) async fn payment_page_by(
        &self,
        scope: &Scope,
        status: Option<&Status>,
        page: PageRequest,
        is_far: bool,
    ) -> Result<Page<PaymentJson>> {
        let (developer, environment) = names::scope(scope);
        let (skipped, limit) = places(page);
        let name = status.map_or_else(|| names::PAYMENTS.to_owned(), names::status);
        let word = status.map(ToString::to_string).unwrap_or_default();
        let common: [&(dyn ToSql + Sync); 6] = [&developer, &environment, &name, &skipped, &limit, &word];
        let row = match (status, is_far) {
            (None, false) => self.readers.one(NEAR, &common[..5]).await?,
            (None, true) => self.readers.one(FAR, &common[..5]).await?,
            (Some(_), false) => self.readers.one(NEAR_BY_STATUS, &common).await?,
            (Some(_), true) => self.readers.one(FAR_BY_STATUS, &common).await?,
        };
        let row = row.ok_or_else(|| StoreError::unavailable("the database returned no row"))?;
        let (total, bodies): (i64, Vec<&str>) = (field(&row, 0)?, field(&row, 1)?);
        let items = bodies.into_iter().map(|body| json_of(&payment_body("payment", body)?.0.payment));
        let (page, limit) = (page.page(), page.limit());
        Ok(Page {
            items: items.collect::<Result<_>>()?,
            total: u64::try_from(total).unwrap_or_default(),
            page,
            limit,
            unknown: UnknownFields::new(),
        })
    }
}
