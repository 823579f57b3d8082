//! The fake by hand: `fake-stripe [ADDRESS]`, on a free port unless said otherwise.
#![forbid(unsafe_code)]

use gateway_fakes::{Running, stripe::Stripe};

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".into());
    let fake = Running::start(Stripe::new(), &address).await?;
    println!("listening on {}", fake.url());
    fake.forever().await;
    Ok(())
}
