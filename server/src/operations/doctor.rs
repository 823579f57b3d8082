//! `payments-server doctor`: checks what `serve` needs of this machine and its surroundings. It changes nothing but for a token
//! of bKash that a server or a database has then.

mod host;
mod settings;
mod store;
mod token;

use std::{fmt, time::SystemTime};

use super::Failure;
use crate::{
    cli::ServeArgs,
    gateway::{Credentials, Probe, probe},
    store::Location,
    terminal::Output,
};

/// What was found out about one thing.
struct Finding {
    verdict: Verdict,
    about: &'static str,
    /// What was found, and what to do if it is not in order.
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    InOrder,
    /// The server runs, but not as it should.
    Warning,
    /// The server does not start, or loses or refuses something.
    Failed,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::InOrder => "ok",
            Self::Warning => "warning",
            Self::Failed => "FAILED",
        })
    }
}

impl Finding {
    fn in_order(about: &'static str, text: impl Into<String>) -> Self {
        Self { verdict: Verdict::InOrder, about, text: text.into() }
    }

    fn warning(about: &'static str, text: impl Into<String>) -> Self {
        Self { verdict: Verdict::Warning, about, text: text.into() }
    }

    fn failed(about: &'static str, text: impl Into<String>) -> Self {
        Self { verdict: Verdict::Failed, about, text: text.into() }
    }
}

/// Checks everything and prints a line for each finding. Returns an error if the server cannot work like this.
pub(crate) async fn doctor(args: &ServeArgs, credentials: Credentials) -> Result<(), Failure> {
    let location = args.data.location()?;
    let probes = probe(&credentials, args.gateway_proxy.clone()).await?;
    let mut findings = settings::check(args, &credentials);
    findings.push(store::check(&location).await);
    findings.push(store::check_listen(args, &location).await);
    if let Location::Directory(directory) = &location {
        findings.push(host::check_permissions(directory));
        findings
            .extend([Some(directory), args.backup_dir.as_ref()].into_iter().flatten().map(|it| host::check_disk(it)));
    }
    findings.push(host::check_descriptors(args.max_connections));
    let gateways_time = probes.iter().find_map(|probe| probe.answer.as_ref().ok()?.date);
    findings.push(host::check_clock(&location, SystemTime::now(), gateways_time));
    findings.extend(probes.iter().map(reachable));
    findings.extend(token::check(args, credentials, location).await);

    let mut out = Output::new();
    for Finding { verdict, about, text } in &findings {
        out.line(format_args!("{verdict:<8} {about:<14} {text}"))?;
    }
    match findings.iter().filter(|finding| finding.verdict == Verdict::Failed).count() {
        0 => Ok(()),
        failed => Err(format!("{failed} of {} checks failed", findings.len()).into()),
    }
}

fn reachable(Probe { gateway, url, answer }: &Probe) -> Finding {
    match answer {
        Ok(answer) => {
            Finding::in_order("gateway", format!("{gateway} answers at {url} in {} ms", answer.took.as_millis()))
        }
        Err(error) => Finding::failed(
            "gateway",
            format!(
                "{gateway} cannot be reached at {url}: {error}; check DNS, firewall and TLS certificates of this machine, or \
                 set --gateway-proxy"
            ),
        ),
    }
}
