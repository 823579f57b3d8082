//! Runs the bKash fake: `fake-bkash [ADDRESS [v2]]`, by default on a free port. It serves both versions of the API; `v2` prints
//! the settings of the second.
#![forbid(unsafe_code)]

use gateway_fakes::bkash::Bkash;

#[tokio::main]
async fn main() -> std::process::ExitCode {
    let is_v2 = std::env::args().nth(2).is_some_and(|version| version == "v2");
    gateway_fakes::run(if is_v2 { Bkash::v2() } else { Bkash::new() }).await
}
