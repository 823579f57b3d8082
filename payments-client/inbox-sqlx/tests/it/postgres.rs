//! PostgreSQL.

use sqlx::PgPool;
use test_support::cluster::Cluster;

struct Shop {
    url: String,
    pool: PgPool,
}

impl Shop {
    async fn new() -> Self {
        let url = tokio::task::spawn_blocking(|| Cluster::shared().new_database()).await.unwrap();
        // sqlx wants a host before the path of the socket.
        let url = url.replace("@/", "@localhost/");
        let shop = Self { pool: PgPool::connect(&url).await.unwrap(), url };
        let effects = "CREATE TABLE effects (number BIGSERIAL PRIMARY KEY, event TEXT NOT NULL, payment TEXT NOT NULL)";
        query(effects).execute(&shop.pool).await.unwrap();
        shop
    }

    /// As another process would open it.
    async fn again(&self) -> Self {
        Self { pool: PgPool::connect(&self.url).await.unwrap(), url: self.url.clone() }
    }
}

suite!(PostgresStore, PgTx, Shop);

#[tokio::test(flavor = "multi_thread")]
async fn a_handler_that_ignores_an_sql_error_is_noticed() {
    let (server, shop) = (server().await, Shop::new().await);
    create(server.client(), 1).await;
    let ignores = async |tx: &mut PgTx, event: &Event| -> Result<(), sqlx::Error> {
        note(tx, event).await?;
        let _ = query("INSERT INTO no_such_table VALUES (1)").execute(&mut **tx).await;
        Ok(())
    };
    for batch in [1, 10] {
        let inbox = inbox(server.client(), &shop).batch(batch);
        let error = inbox.run_once(ignores).await.unwrap_err();
        assert!(error.to_string().contains("ignored an SQL error"), "{error}");
        assert_eq!(noted(&shop).await.len(), 0);
    }
    assert_eq!(inbox(server.client(), &shop).run_once(note).await.unwrap(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn several_processes_may_make_the_tables() {
    let (server, shop) = (server().await, Shop::new().await);
    let first = (0..8).map(|_| {
        let inbox = inbox(server.client(), &shop);
        tokio::spawn(async move { inbox.run_once(note).await })
    });
    for run in first.collect::<Vec<_>>() {
        assert_eq!(run.await.unwrap().unwrap(), 0);
    }
}
