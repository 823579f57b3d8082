//! The settled shop, in PostgreSQL.
#![forbid(unsafe_code)]

mod shop;

mod database {
    pub(crate) use payments_inbox_sqlx::{PgTx as Tx, PostgresStore as Store};
    pub(crate) use sqlx::PgPool as Pool;

    /// `SHOP_DATABASE` is a URL.
    pub(crate) async fn open(url: Option<String>) -> Result<Pool, sqlx::Error> {
        Pool::connect(&url.unwrap_or_else(|| "postgres://localhost/shop".into())).await
    }
}

#[tokio::main]
async fn main() -> std::process::ExitCode {
    shop::main().await
}
