//! `payments-server doctor`: checks whether this machine and its surroundings have what `serve` needs. It changes
//! nothing, except that it may request a gateway's token, which the running server or the database stores.

mod diagnosis;
mod host;
mod settings;
mod store;
mod token;

use std::time::SystemTime;

use self::diagnosis::{Diagnosis, Verdict, failed, in_order};
use crate::{
    ambient::{Ambient, OperatingSystem},
    cli::{CommandError, ServeArgs},
    gateway::{Credentials, Probe, probe},
    http::People,
    log::terminal::Output,
    store::Location,
};

/// Checks everything and prints a line for each diagnosis. Returns an error if the server cannot work.
pub async fn doctor(args: &ServeArgs, credentials: Credentials) -> Result<(), CommandError> {
    let location = args.data.location()?;
    let probes = probe(&credentials, args.gateway_proxy.clone()).await?;
    let settings = settings::check(args, &credentials);
    let mut diagnoses: Vec<_> = settings.into_iter().map(|diagnosis| ("configuration", diagnosis)).collect();
    diagnoses.push(("store", store::check(&location).await));
    diagnoses.push(("address", store::check_listen(args, &location).await));
    if let Location::Directory(directory) = &location {
        diagnoses.push(("permissions", host::check_permissions(directory)));
        let directories = [Some(directory), args.backup_dir.as_ref()].into_iter().flatten();
        diagnoses.extend(directories.map(|directory| ("disk", host::check_disk(directory))));
    }
    diagnoses.push(("descriptors", host::check_descriptors(args.max_connections)));
    let gateways_time = probes.iter().find_map(|probe| probe.answer.as_ref().ok()?.date);
    diagnoses.push(("clock", host::check_clock(&location, SystemTime::now(), gateways_time)));
    diagnoses.extend(probes.iter().map(|probe| ("gateway", reachable(probe))));
    for (gateway, _) in credentials.configured().filter(|(gateway, _)| gateway.needs_token) {
        diagnoses.push(("token", token::check(args, &credentials, &location, gateway).await));
    }
    diagnoses.extend(check_provider(args).await.map(|diagnosis| ("sign-in", diagnosis)));

    let mut out = Output::new();
    for (about, Diagnosis(verdict, text)) in &diagnoses {
        out.line(format_args!("{verdict:<8} {about:<14} {text}"))?;
    }
    match diagnoses.iter().filter(|(_, Diagnosis(verdict, _))| *verdict == Verdict::Failed).count() {
        0 => Ok(()),
        failed => Err(format!("{failed} of {} checks failed", diagnoses.len()).into()),
    }
}

/// Reads the description of the provider at which people sign in, if there is one.
async fn check_provider(args: &ServeArgs) -> Option<Diagnosis> {
    let base_url = args.base_url.clone().unwrap_or_else(|| format!("http://{}", args.listen));
    let people = match args.people.settings(&base_url) {
        Ok(settings) => People::new(settings?),
        Err(error) => return Some(failed(error.to_string())),
    };
    let probed = match people {
        Ok(people) => people.probe(OperatingSystem.now()).await,
        Err(error) => Err(error),
    };
    let issuer = args.people.oidc_issuer.as_deref().unwrap_or_default();
    Some(match probed {
        Ok(()) => in_order(format!("people sign in at {issuer}, which must know {base_url}/dashboard/callback")),
        Err(error) => failed(format!("people cannot sign in at {issuer}: {error}; check --oidc-issuer")),
    })
}

fn reachable(Probe { gateway, url, answer }: &Probe) -> Diagnosis {
    match answer {
        Ok(answer) => in_order(format!("{gateway} answers at {url} in {} ms", answer.took.as_millis())),
        Err(error) => failed(format!(
            "{gateway} cannot be reached at {url}: {error}; check DNS, firewall and TLS certificates of this machine, or set \
             --gateway-proxy"
        )),
    }
}
