//! A read that runs to its end in a task of its own.
//!
//! A connection answers its reads in their order, and takes the next row only when the one before it was taken. So a read
//! that nobody polls, for example during another branch of `select!`, would hold up every read after it.

use std::{error::Error as StdError, fmt, future::pending, panic::resume_unwind, sync::Arc};

use ::bytes::{BufMut as _, BytesMut};
use futures_util::TryStreamExt as _;
use tokio_postgres::{
    Error, Row,
    types::{IsNull, ToSql, Type, to_sql_checked},
};
use tokio_util::task::AbortOnDropHandle;

use super::session::Session;

impl Session {
    /// Runs a statement in a task of its own. The task ends with this future.
    pub(super) async fn read(
        self: &Arc<Self>,
        sql: &'static str,
        parameters: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, Error> {
        let statement = match self.known(sql) {
            Some(statement) => statement,
            None => {
                let session = Arc::clone(self);
                in_a_task(async move { session.prepared(sql).await }).await?
            }
        };
        let kinds = statement.params().iter().map(Some).chain(std::iter::repeat(None));
        let parameters: Vec<Encoded> =
            parameters.iter().zip(kinds).map(|(given, kind)| Encoded::of(*given, kind)).collect();
        let session = Arc::clone(self);
        in_a_task(async move { session.client().query_raw(&statement, parameters).await?.try_collect().await }).await
    }
}

async fn in_a_task<T: Send + 'static>(work: impl Future<Output = T> + Send + 'static) -> T {
    match AbortOnDropHandle::new(tokio::spawn(work)).await {
        Ok(output) => output,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime stops, and drops this future too.
            Err(_) => pending().await,
        },
    }
}

/// A parameter as it is sent to the database; `None` is NULL.
struct Encoded(Result<Option<BytesMut>, String>);

impl Encoded {
    /// Encodes a parameter as `kind`, which is `None` if the statement has no such parameter.
    fn of(parameter: &(dyn ToSql + Sync), kind: Option<&Type>) -> Self {
        let Some(kind) = kind else { return Self(Err("the statement has fewer parameters".into())) };
        let mut bytes = BytesMut::new();
        Self(match parameter.to_sql_checked(kind, &mut bytes) {
            Ok(IsNull::No) => Ok(Some(bytes)),
            Ok(IsNull::Yes) => Ok(None),
            Err(error) => Err(error.to_string()),
        })
    }
}

/// Omits the parameter, which may be secret.
impl fmt::Debug for Encoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a parameter")
    }
}

impl ToSql for Encoded {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        Ok(match &self.0 {
            Ok(Some(bytes)) => {
                out.put_slice(bytes);
                IsNull::No
            }
            Ok(None) => IsNull::Yes,
            Err(error) => return Err(error.as_str().into()),
        })
    }

    /// The parameter was checked as it was encoded.
    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

#[cfg(test)]
mod tests {
    use std::{pin::pin, time::Duration};

    use futures_util::poll;
    use test_support::cluster::shared_url;
    use tokio::time::{sleep, timeout};

    use super::super::{Target, sqlstate::describe};
    use super::*;

    const ROWS: &str = "SELECT $1::bigint + number, $2::text FROM generate_series(1, 1000) number";

    async fn session() -> Arc<Session> {
        let target = Target::new(&shared_url().await.into(), None).unwrap();
        Arc::new(target.connect_to_any().await.unwrap())
    }

    #[tokio::test]
    async fn a_read_that_nobody_polls_holds_up_no_other() {
        let session = session().await;
        let nothing: Option<&str> = None;
        for _is_prepared in [false, true] {
            let parameters: [&(dyn ToSql + Sync); 2] = [&1_i64, &nothing];
            let mut waiting = pin!(session.read(ROWS, &parameters));
            assert!(poll!(&mut waiting).is_pending());
            sleep(Duration::from_millis(100)).await;
            let other = timeout(Duration::from_secs(5), session.read("SELECT 1", &[])).await;
            assert_eq!(other.expect("another read waits for it").unwrap().len(), 1);
            let rows = waiting.await.unwrap();
            assert_eq!(
                (rows.len(), rows[999].get::<_, i64>(0), rows[0].get::<_, Option<&str>>(1)),
                (1_000, 1_001, None)
            );
        }
    }

    #[tokio::test]
    async fn a_parameter_of_a_wrong_type_is_an_error() {
        let error = session().await.read(ROWS, &[&"one", &"two"]).await.unwrap_err();
        assert!(describe(&error).contains("cannot convert"), "{error}");
    }

    #[tokio::test]
    async fn one_parameter_too_many_or_too_few_is_an_error() {
        let session = session().await;
        let three: [&(dyn ToSql + Sync); 3] = [&1_i64, &"two", &"three"];
        for parameters in [&three[..1], &three[..]] {
            let error = session.read(ROWS, parameters).await.unwrap_err();
            assert!(describe(&error).contains("expected 2 parameters"), "{error}");
        }
    }
}
