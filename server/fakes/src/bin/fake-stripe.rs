//! The fake by hand: `fake-stripe [ADDRESS]`, on a free port unless an address is given.
#![forbid(unsafe_code)]

#[tokio::main]
async fn main() -> std::io::Result<()> {
    gateway_fakes::by_hand(gateway_fakes::stripe::Stripe::new()).await
}
