//! Writes a decided batch and commits it, all in one round trip.

use futures_util::future::{BoxFuture, join_all};
use payments_core::{DeliveryId, EventId, PaymentId, RawJson, Timestamp};
use tokio_postgres::{Error, types::ToSql};

use super::{
    batch::{Additions, Batch, DeliveryRow, IdempotencyName, IdempotencyRow, PaymentRow, PendingRow},
    load::{PaymentBody, ResponseBody, split},
    rows::Written,
    session::Session,
    statements::Statements,
};
use crate::{domain::Outgoing, store::StoreError};

/// The columns of a statement.
type Columns = Vec<Box<dyn ToSql + Sync + Send>>;
/// A statement and its columns.
type Step<'s> = (&'s tokio_postgres::Statement, Columns);

/// Builds the statements of a batch. They are few, however many changes the batch has.
pub(super) fn steps<'s>(batch: Batch, slot: i16, with: &'s Statements) -> Result<Vec<Step<'s>>, StoreError> {
    let mut steps = Vec::new();
    let Batch { idempotency, records, endpoints, payments, pending, deliveries, additions, .. } = batch;
    idempotency_steps(idempotency.into_written(), with, &mut steps)?;

    let Written { inserted, updated, deleted } = records.into_written();
    for (rows, statement) in [(inserted, &with.insert_records), (updated, &with.update_records)] {
        add(&mut steps, statement, rows.len(), || {
            let (keys, rows): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
            let (kinds, ids): (Vec<_>, Vec<_>) = keys.into_iter().map(|(kind, id)| (kind.as_str(), id)).unzip();
            let versions = column(&rows, |row| row.version.cast_signed());
            let (parents, bodies): (Vec<_>, Vec<_>) = rows.into_iter().map(|row| (row.parent, row.body)).unzip();
            Ok(vec![Box::new(kinds), Box::new(ids), Box::new(parents), versions, Box::new(bodies)])
        })?;
    }
    add(&mut steps, &with.delete_records, deleted.len(), || {
        let (kinds, ids): (Vec<_>, Vec<_>) = deleted.into_iter().map(|(kind, id)| (kind.as_str(), id)).unzip();
        Ok(vec![Box::new(kinds), Box::new(ids)])
    })?;

    let Written { inserted, updated, .. } = endpoints.into_written();
    for (rows, statement) in [(inserted, &with.insert_endpoint_counts), (updated, &with.update_endpoint_counts)] {
        add(&mut steps, statement, rows.len(), || {
            let counts = column(&rows, |(_, count)| i64::try_from(*count).unwrap_or(i64::MAX));
            let (developers, environments): (Vec<_>, Vec<_>) = rows.into_iter().map(|(scope, _)| scope).unzip();
            Ok(vec![Box::new(developers), Box::new(environments), counts])
        })?;
    }

    let Written { inserted, updated, .. } = payments.into_written();
    add(&mut steps, &with.insert_payments, inserted.len(), || {
        let mut columns = payment_columns(&inserted)?;
        columns.insert(1, column(&inserted, |(_, row)| row.session.payment.environment.as_str()));
        columns.insert(1, column(&inserted, |(_, row)| row.session.payment.developer_id.to_string()));
        Ok(columns)
    })?;
    add(&mut steps, &with.update_payments, updated.len(), || payment_columns(&updated))?;

    pending_steps(pending.into_unread(), with, &mut steps)?;

    let Written { inserted, updated, .. } = deliveries.into_written();
    add(&mut steps, &with.insert_deliveries, inserted.len(), || {
        let mut columns = delivery_columns(&inserted)?;
        let outgoing = |row: &DeliveryRow, of: fn(&Outgoing) -> String| row.written.as_deref().map(of);
        columns
            .insert(1, column(&inserted, |(_, row)| row.written.as_ref()?.payment.as_ref().map(ToString::to_string)));
        columns.insert(1, column(&inserted, |(_, row)| outgoing(row, |it| it.delivery.webhook_id.to_string())));
        columns.insert(1, column(&inserted, |(_, row)| outgoing(row, |it| it.environment.as_str().to_owned())));
        columns.insert(1, column(&inserted, |(_, row)| outgoing(row, |it| it.delivery.developer_id.to_string())));
        Ok(columns)
    })?;
    add(&mut steps, &with.update_deliveries, updated.len(), || delivery_columns(&updated))?;

    let Additions { postings, events, mut lookups, totals, days, redacted_up_to } = additions;
    // All servers add them in this order, so that none waits for another in a circle.
    lookups.sort();
    add(&mut steps, &with.insert_redaction, redacted_up_to.iter().len(), || {
        Ok(vec![Box::new(redacted_up_to.map(|id| id.to_string()))])
    })?;
    add(&mut steps, &with.insert_postings, postings.len(), || {
        let bodies =
            postings.iter().map(|(id, _, postings)| json(id.as_str(), postings)).collect::<Result<Vec<_>, _>>();
        let ids = column(&postings, |(id, ..)| id.to_string());
        Ok(vec![ids, column(&postings, |(_, version, _)| version.cast_signed()), Box::new(bodies?)])
    })?;
    add(&mut steps, &with.insert_events, events.len(), || {
        let ids = column(&events, |it| it.entry.id.to_string());
        let kinds = column(&events, |it| it.entry.kind.to_string());
        let payments = column(&events, |it| it.entry.payment.to_string());
        let developers = column(&events, |it| it.scope.developer_id.to_string());
        let environments = column(&events, |it| it.scope.environment.as_str());
        let currencies = column(&events, |it| it.money.map(|money| money.currency.code()));
        let amounts = column(&events, |it| it.money.map(|money| money.amount));
        let fees = column(&events, |it| it.money.map(|money| money.fee));
        Ok(vec![ids, developers, environments, kinds, payments, currencies, amounts, fees])
    })?;
    add(&mut steps, &with.insert_lookups, lookups.len(), || {
        let developers = column(&lookups, |(((developer, _), _), ..)| developer.clone());
        let environments = column(&lookups, |(((_, environment), _), ..)| *environment);
        let kinds = column(&lookups, |((_, lookup), ..)| lookup.kind.as_str());
        let values = column(&lookups, |((_, lookup), ..)| lookup.value.clone());
        let payments = column(&lookups, |(_, payment, _)| payment.to_string());
        Ok(vec![developers, environments, kinds, values, payments, column(&lookups, |(.., is_unique)| *is_unique)])
    })?;
    let totals: Vec<_> = totals.into_iter().filter(|(_, value)| *value != 0).collect();
    add(&mut steps, &with.add_totals, totals.len(), || {
        let developers = column(&totals, |(((developer, _), _), _)| developer.clone());
        let environments = column(&totals, |(((_, environment), _), _)| *environment);
        let names = column(&totals, |((_, name), _)| name.clone());
        Ok(vec![developers, environments, names, Box::new(slot), column(&totals, |(_, value)| value.to_string())])
    })?;
    let days: Vec<_> = days.into_iter().collect();
    add(&mut steps, &with.add_days, days.len(), || {
        let developers = column(&days, |(((developer, _), ..), _)| developer.clone());
        let environments = column(&days, |(((_, environment), ..), _)| *environment);
        let currencies = column(&days, |((_, currency, _), _)| *currency);
        let names = column(&days, |((.., day), _)| day.to_string());
        let created = column(&days, |(_, totals)| totals.created.cast_signed());
        let paid = column(&days, |(_, totals)| totals.paid.cast_signed());
        let volumes = column(&days, |(_, totals)| totals.volume_minor.to_string());
        Ok(vec![developers, environments, currencies, names, Box::new(slot), created, paid, volumes])
    })?;
    Ok(steps)
}

/// Sends the statements and the commit, and waits for all answers. After an error nothing was committed, unless the
/// connection broke.
pub(super) async fn commit(session: &Session, steps: &[Step<'_>]) -> Result<(), Error> {
    let mut answers: Vec<BoxFuture<'_, Result<(), Error>>> = Vec::new();
    for (statement, columns) in steps {
        let parameters: Vec<&(dyn ToSql + Sync)> = columns.iter().map(|column| &**column as _).collect();
        answers.push(Box::pin(async move { session.client().execute(*statement, &parameters).await.map(drop) }));
    }
    answers.push(Box::pin(session.client().batch_execute("COMMIT")));
    // Each is sent when it is first polled, so they are sent in this order. A commit behind a failed statement rolls back
    // without an error of its own.
    join_all(answers).await.into_iter().collect()
}

fn add<'s>(
    steps: &mut Vec<Step<'s>>,
    statement: &'s tokio_postgres::Statement,
    rows: usize,
    columns: impl FnOnce() -> Result<Columns, StoreError>,
) -> Result<(), StoreError> {
    if rows > 0 {
        steps.push((statement, columns()?));
    }
    Ok(())
}

fn column<R, T: ToSql + Sync + Send + 'static>(rows: &[R], of: impl Fn(&R) -> T) -> Box<dyn ToSql + Sync + Send> {
    Box::new(rows.iter().map(of).collect::<Vec<T>>())
}

fn json(what: &str, value: &impl serde::Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|error| StoreError::corrupt(what.as_bytes(), error))
}

fn payment_columns(rows: &[(PaymentId, PaymentRow)]) -> Result<Columns, StoreError> {
    let bodies =
        rows.iter().map(|(id, PaymentRow { session, events, .. })| json(id.as_str(), &PaymentBody { session, events }));
    Ok(vec![
        column(rows, |(id, _)| id.to_string()),
        column(rows, |(_, row)| row.columns.status.as_ref().map(ToString::to_string)),
        column(rows, |(_, row)| row.session.version.cast_signed()),
        column(rows, |(_, row)| row.columns.expiry.map(Timestamp::as_millis)),
        column(rows, |(_, row)| row.columns.gateway_check.map(Timestamp::as_millis)),
        column(rows, |(_, row)| row.columns.manual_settlement.is_some()),
        column(rows, |(_, row)| row.columns.manual_review.is_some()),
        Box::new(bodies.collect::<Result<Vec<_>, _>>()?),
    ])
}

/// The columns of deliveries. The payload that its event has is not stored a second time.
fn delivery_columns(rows: &[(DeliveryId, DeliveryRow)]) -> Result<Columns, StoreError> {
    let body = |(id, row): &(DeliveryId, DeliveryRow)| {
        let mut outgoing = row.written.as_deref().cloned();
        if let Some(outgoing) = outgoing.as_mut().filter(|outgoing| outgoing.event.is_some()) {
            outgoing.delivery.payload = RawJson::of(&serde_json::Map::new())
                .map_err(|error| StoreError::corrupt(id.as_str().as_bytes(), error))?;
        }
        json(id.as_str(), &outgoing)
    };
    Ok(vec![
        column(rows, |(id, _)| id.to_string()),
        column(rows, |(_, row)| row.version.cast_signed()),
        column(rows, |(_, row)| row.written.as_ref().is_some_and(|outgoing| outgoing.is_in_outbox())),
        column(rows, |(_, row)| Some(row.written.as_ref()?.retry_at()?.as_millis())),
        Box::new(rows.iter().map(body).collect::<Result<Vec<_>, _>>()?),
    ])
}

fn pending_steps<'s>(
    rows: std::collections::BTreeMap<EventId, Option<PendingRow>>,
    with: &'s Statements,
    steps: &mut Vec<Step<'s>>,
) -> Result<(), StoreError> {
    let (mut added, mut reached, mut over) = (vec![], vec![], vec![]);
    for (id, row) in rows {
        let id = id.to_string();
        match row {
            Some(PendingRow::Added(payment, after)) => added.push((id, payment.to_string(), after)),
            Some(PendingRow::Reached(endpoint)) => reached.push((id, endpoint.to_string())),
            None => over.push(id),
        }
    }
    add(steps, &with.insert_pending, added.len(), || {
        let after = column(&added, |(.., after)| after.as_ref().map(ToString::to_string));
        let (ids, payments): (Vec<_>, Vec<_>) = added.into_iter().map(|(id, payment, _)| (id, payment)).unzip();
        Ok(vec![Box::new(ids), Box::new(payments), after])
    })?;
    add(steps, &with.update_pending, reached.len(), || {
        let (ids, endpoints): (Vec<_>, Vec<_>) = reached.into_iter().unzip();
        Ok(vec![Box::new(ids), Box::new(endpoints)])
    })?;
    add(steps, &with.delete_pending, over.len(), || Ok(vec![Box::new(over)]))
}

fn idempotency_steps<'s>(
    written: Written<IdempotencyName, IdempotencyRow>,
    with: &'s Statements,
    steps: &mut Vec<Step<'s>>,
) -> Result<(), StoreError> {
    let Written { inserted, updated, deleted } = written;
    let owned = |names: Vec<&IdempotencyName>| -> Columns {
        let (developers, environments, digests) = split(names);
        let developers: Vec<_> = developers.into_iter().map(str::to_owned).collect();
        let digests: Vec<_> = digests.into_iter().map(<[u8]>::to_vec).collect();
        vec![Box::new(developers), Box::new(environments), Box::new(digests)]
    };
    for (rows, statement) in [(inserted, &with.insert_idempotency), (updated, &with.update_idempotency)] {
        add(steps, statement, rows.len(), || {
            let mut columns = owned(rows.iter().map(|(name, _)| name).collect());
            let response = |(_, row): &(IdempotencyName, IdempotencyRow)| {
                let Some(stored) = &row.response else { return Ok(None) };
                let body = stored.event.is_none().then(|| stored.response.body.clone());
                let event = stored.event.as_ref().map(|(_, event)| event.clone());
                let (fingerprint, created_at) = (stored.response.fingerprint.clone(), stored.response.created_at);
                json("idempotency", &ResponseBody { fingerprint, created_at, body, event }).map(Some)
            };
            let claim = |(_, row): &(IdempotencyName, IdempotencyRow)| {
                row.claim.as_ref().map(|claim| json("idempotency", claim)).transpose()
            };
            columns.push(column(&rows, |(_, row)| Some(row.response.as_ref()?.response.created_at.as_millis())));
            columns.push(Box::new(rows.iter().map(response).collect::<Result<Vec<_>, _>>()?));
            columns.push(column(&rows, |(_, row)| Some(row.response.as_ref()?.event.as_ref()?.0.to_string())));
            columns.push(column(&rows, |(_, row)| Some(row.claim.as_ref()?.until.as_millis())));
            columns.push(Box::new(rows.iter().map(claim).collect::<Result<Vec<_>, _>>()?));
            Ok(columns)
        })?;
    }
    add(steps, &with.delete_idempotency, deleted.len(), || Ok(owned(deleted.iter().collect())))
}
