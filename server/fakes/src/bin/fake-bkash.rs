//! The fake by hand: `fake-bkash [ADDRESS]`, on a free port unless said otherwise.
#![forbid(unsafe_code)]

use gateway_fakes::{Running, bkash::Bkash};

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".into());
    let fake = Running::start(Bkash::new(), &address).await?;
    println!("listening on {}", fake.url());
    fake.forever().await;
    Ok(())
}
