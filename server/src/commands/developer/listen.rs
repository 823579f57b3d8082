//! `listen`: prints each event when it arrives, and forwards it to a program under development.

use std::time::{Duration, Instant};

use payments_client::{Client, Error, EventId, EventPage, ListedEvent};
use payments_core::{Envelope, EventKind, RawJson, Timestamp};
use secrecy::{ExposeSecret, SecretString};
use tokio::time::sleep;
use url::Url;
use webhook_verify::{Secret, Signer};

use super::is_local;
use crate::{
    ambient::{Ambient, OperatingSystem},
    cli::{CommandError, ListenArgs, secret_from},
    log::{self, terminal::Output},
};

/// How often the list of events is read, and how soon again after the server did not answer.
const POLL: Duration = Duration::from_millis(500);
const POLL_AFTER_ERROR: Duration = Duration::from_secs(3);
/// How far the clocks of this machine and the server may differ.
const CLOCKS_DIFFER_MILLIS: i64 = 60_000;
/// How long the program may take to answer, as with real webhooks.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(8);

/// Prints and forwards events until it is stopped. It survives a restart of the server.
pub async fn listen(args: ListenArgs) -> Result<(), CommandError> {
    let client = super::client(&args.api)?;
    let mut out = Output::new();
    let forward = args.forward_to.map(|url| Forward::new(url, args.secret_file.as_deref(), &mut out)).transpose()?;
    let mut list = List::at_its_end(client, &args.api.api, args.events).await?;
    out.line(format_args!("listening to the events of {}", args.api.api))?;
    // Without a reader, events are still forwarded.
    while forward.is_some() || !out.is_closed() {
        let events = match list.next().await {
            Ok(events) => events,
            Err(error) if error.is_retryable() => {
                log::say(format_args!("{} does not answer: {error}", args.api.api));
                sleep(POLL_AFTER_ERROR).await;
                continue;
            }
            Err(error) => return Err(super::said_by(&args.api.api)(error)),
        };
        for event in events {
            let line = format!("{} {} {}", event.created_at(), event.kind(), event.id());
            match &forward {
                Some(forward) => out.line(format_args!("{line} {}", forward.send(&event).await?))?,
                None => out.line(format_args!("{line}"))?,
            }
        }
        sleep(POLL).await;
    }
    Ok(())
}

/// The list of events, from its end when this command began.
struct List {
    client: Client,
    kinds: Vec<EventKind>,
    since: Timestamp,
    cursor: Option<EventId>,
}

impl List {
    async fn at_its_end(client: Client, server: &Url, kinds: Vec<EventKind>) -> Result<Self, CommandError> {
        let now = OperatingSystem.now();
        let since = Timestamp::from_millis(now.as_millis() - CLOCKS_DIFFER_MILLIS)?;
        let mut list = Self { client, kinds, since, cursor: None };
        list.next().await.map_err(super::said_by(server))?;
        Ok(list)
    }

    /// The events since the last call.
    async fn next(&mut self) -> Result<Vec<ListedEvent>, Error> {
        let mut found = Vec::new();
        loop {
            let request = self.client.events().list().limit(100);
            let request = if self.kinds.is_empty() { request } else { request.events(&self.kinds) };
            let request = match &self.cursor {
                Some(cursor) => request.after(cursor),
                None => request.created_after(self.since),
            };
            let EventPage { items, has_more, next, .. } = request.await?;
            found.extend(items);
            self.cursor = next.or(self.cursor.take());
            if !has_more {
                return Ok(found);
            }
        }
    }
}

/// Signs and forwards events.
struct Forward {
    http: reqwest::Client,
    url: Url,
    signer: Signer,
}

impl Forward {
    fn new(url: Url, secret_file: Option<&std::path::Path>, out: &mut Output) -> Result<Self, CommandError> {
        let secret = match secret_from(secret_file, "PAYMENTS_WEBHOOK_SECRET")? {
            Some(secret) => secret,
            None => {
                let ambient: &dyn Ambient = &OperatingSystem;
                let secret = SecretString::from(format!("whsec_{}", hex::encode(ambient.random::<32>())));
                out.line(format_args!("forwarded events are signed with {}", secret.expose_secret()))?;
                secret
            }
        };
        let http = reqwest::Client::builder().timeout(ANSWER_TIMEOUT).redirect(reqwest::redirect::Policy::none());
        // For a proxy that the environment names, loopback is another machine.
        let http = if is_local(&url) { http.no_proxy() } else { http };
        // Be as lenient as the server is.
        let http = http.http1_allow_spaces_after_header_name_in_responses(true);
        let http = http.http1_allow_obsolete_multiline_headers_in_responses(true);
        let http = http.http1_ignore_invalid_headers_in_responses(true);
        Ok(Self { http: http.build()?, url, signer: Signer::new(Secret::new(secret.expose_secret())?) })
    }

    /// Sends an event. Returns how the program answered.
    async fn send(&self, event: &ListedEvent) -> Result<String, CommandError> {
        let (id, data) = (event.id(), event.data());
        let envelope = Envelope { id, event: event.kind().clone(), created_at: event.created_at(), data };
        let body = RawJson::of(&envelope)?;
        let signature = self.signer.sign_now(body.as_str().as_bytes());
        let request = self.http.post(self.url.clone()).header("Content-Type", "application/json");
        let request = request.header("X-Service-Signature", signature.as_str());
        let request = request.header("X-Service-Event", event.kind().as_str()).body(body.as_str().to_owned());
        let begun = Instant::now();
        Ok(match request.send().await {
            Ok(answer) => format!("-> {} in {} ms", answer.status().as_u16(), begun.elapsed().as_millis()),
            Err(error) if error.is_timeout() => "-> no answer within 8 seconds".to_owned(),
            Err(error) if error.is_connect() => format!("-> cannot connect to {}", self.url),
            Err(error) => format!("-> {}", error.without_url()),
        })
    }
}
