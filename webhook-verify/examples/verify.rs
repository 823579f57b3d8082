//! Verifies a webhook from a file or a log:
//!
//! ```sh
//! WEBHOOK_SECRET=whsec_... cargo run -p webhook-verify --example verify -- 't=1700000000,v1=...' < body.json
//! ```
//!
//! Give the header `X-Service-Signature` as it arrived, and the raw body on the standard input. The time is not checked, since
//! what is in a file is old.
#![forbid(unsafe_code)]

use std::{
    env,
    error::Error,
    io::{self, Read},
    process::ExitCode,
};

use webhook_verify::{Secret, Tolerance, Verifier};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("not verified: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let header = env::args().nth(1).ok_or("give the signature header as the first argument")?;
    let secret = env::var("WEBHOOK_SECRET").map_err(|_| "set WEBHOOK_SECRET to the secret of your endpoint")?;
    let mut body = Vec::new();
    io::stdin().read_to_end(&mut body)?;

    let verifier = Verifier::new(Secret::new(&secret)?).tolerance(Tolerance::OFF);
    let verified = verifier.verify_at(&header, &body, 0)?;
    println!("verified: {} bytes, signed at Unix second {}", verified.body().len(), verified.timestamp());
    Ok(())
}
