//! `trigger`: makes an event happen with a test key.

use payments_client::{Client, CreatePayment, Currency, Environment, Money, SimulateOutcome};
use payments_core::{EventKind, Metadata};
use url::Url;

use super::said_by;
use crate::{
    cli::{CommandError, TriggerArgs},
    log::terminal::Output,
};

/// Makes the event happen and prints what it is about.
pub async fn trigger(args: TriggerArgs) -> Result<(), CommandError> {
    let client = super::client(&args.api)?;
    if client.environment() != Environment::Test {
        return Err("a live key moves money; put a test key into PAYMENTS_API_KEY".into());
    }
    match args.event {
        EventKind::PaymentCreated | EventKind::PaymentCompleted => pay(&client, &args).await,
        kind => test_every_endpoint(&client, &args.api.api, kind).await,
    }
}

async fn pay(client: &Client, args: &TriggerArgs) -> Result<(), CommandError> {
    let server = &args.api.api;
    let back = "https://shop.example/";
    let money = Money::new(args.amount, Currency::Bdt);
    let mut params = CreatePayment::of(money).success_url(back).cancel_url(back);
    if let Some(metadata) = &args.metadata {
        let metadata = Metadata::new(metadata.as_str()).map_err(|error| format!("--metadata {error}"))?;
        params = params.metadata(metadata);
    }
    let payment = client.payments().create(params).await.map_err(said_by(server))?;
    if args.event == EventKind::PaymentCompleted {
        client.checkout().simulate(&payment.id, SimulateOutcome::Completed).await.map_err(said_by(server))?;
    }
    Ok(Output::new().line(format_args!("{}", payment.id))?)
}

/// A test payment cannot be refunded, so endpoints get an example.
async fn test_every_endpoint(client: &Client, server: &Url, kind: EventKind) -> Result<(), CommandError> {
    let endpoints = client.webhooks().list().await.map_err(said_by(server))?;
    if endpoints.is_empty() {
        return Err(
            format!("{kind} is sent as a test event, and this key has no webhook endpoint to send it to").into()
        );
    }
    let mut out = Output::new();
    for endpoint in endpoints.into_iter().filter(|endpoint| endpoint.is_active) {
        let delivery = client.webhooks().test_event(&endpoint.id, kind.clone()).await;
        match delivery.map_err(said_by(server))? {
            Some(delivery) => out.line(format_args!("{} {} {}", delivery.id, delivery.status, endpoint.url))?,
            None => out.line(format_args!("- not sent {}", endpoint.url))?,
        }
    }
    Ok(())
}
