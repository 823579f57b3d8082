//! The settled shop, in SQLite:
//!
//! ```sh
//! PAYMENTS_API_KEY=sk_test_demo WEBHOOK_SECRET=whsec_8f2d1a cargo run -p examples --bin settled-shop
//! curl -X POST http://127.0.0.1:3000/orders/1017        # returns the checkout's URL
//! ```
#![forbid(unsafe_code)]

mod shop;
#[cfg(test)]
mod worlds;

mod database {
    pub(crate) use payments_inbox_sqlx::{SqliteStore as Store, SqliteTx as Tx};
    pub(crate) use sqlx::SqlitePool as Pool;
    use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode};

    /// `SHOP_DATABASE` is a file.
    pub(crate) async fn open(file: Option<String>) -> Result<Pool, sqlx::Error> {
        let file = file.unwrap_or_else(|| "shop.db".into());
        let options = SqliteConnectOptions::new().filename(file).create_if_missing(true);
        Pool::connect_with(options.journal_mode(SqliteJournalMode::Wal)).await
    }
}

#[tokio::main]
async fn main() -> std::process::ExitCode {
    shop::main().await
}
