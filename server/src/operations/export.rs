//! `payments-server export`: records as JSON lines or CSV.

use std::{
    borrow::Cow,
    io::{self, BufWriter, Write},
    ops::{Bound, RangeBounds},
};

use payments_core::{Amount, Delivery, Payment, Posting, Refund, Timestamp};
use serde::Serialize;
use serde_json::{Value, json};

use super::{Failure, open::with_snapshot, progress};
use crate::{
    cli::{ExportArgs, ExportFormat, ExportedRecords},
    domain::Session,
    store::Snapshot,
};

/// The exported period, with its beginning and without its end.
type Period = (Bound<Timestamp>, Bound<Timestamp>);

/// Writes records to the standard output in order of their ids, which is chronological.
pub(crate) async fn export(args: ExportArgs) -> Result<(), Failure> {
    let ExportArgs { records, format, since, until, data } = args;
    let period = (since.map_or(Bound::Unbounded, Bound::Included), until.map_or(Bound::Unbounded, Bound::Excluded));
    let written = with_snapshot(data.location()?, move |store| {
        let out = BufWriter::new(io::stdout().lock());
        let rows = match format {
            ExportFormat::Jsonl => Rows::JsonLines(out),
            ExportFormat::Csv => Rows::Csv { table: Box::new(csv::Writer::from_writer(out)), has_header: false },
        };
        write_records(store, records, period, rows)
    });
    match written.await {
        // The reader, such as `head`, has read enough.
        Err(error) if is_broken_pipe(&*error) => Ok(()),
        outcome => outcome,
    }
}

fn is_broken_pipe(error: &(dyn std::error::Error + Send + Sync + 'static)) -> bool {
    let kind = error.downcast_ref::<io::Error>().map(io::Error::kind);
    let in_csv = error.downcast_ref::<csv::Error>().and_then(|error| match error.kind() {
        csv::ErrorKind::Io(error) => Some(error.kind()),
        _ => None,
    });
    kind.or(in_csv) == Some(io::ErrorKind::BrokenPipe)
}

/// Writes each record as a line of JSON, as the API returns it, or as a row of a CSV table.
enum Rows<W: Write> {
    JsonLines(W),
    Csv { table: Box<csv::Writer<W>>, has_header: bool },
}

impl<W: Write> Rows<W> {
    /// `row` returns the record as an object of the table's cells by the names of their columns.
    fn write(&mut self, record: &impl Serialize, row: impl FnOnce() -> Value) -> Result<(), Failure> {
        match self {
            Self::JsonLines(out) => {
                // Keep the kind of the I/O error: a broken pipe is not a failure.
                serde_json::to_writer(&mut *out, record).map_err(io::Error::from)?;
                out.write_all(b"\n")?;
            }
            Self::Csv { table, has_header } => {
                let row = row();
                let cells = row.as_object().into_iter().flatten();
                if !std::mem::replace(has_header, true) {
                    table.write_record(cells.clone().map(|(column, _)| column))?;
                }
                table.write_record(cells.map(|(_, value)| match value {
                    Value::Null => String::new(),
                    Value::String(text) => text.clone(),
                    value => value.to_string(),
                }))?;
            }
        }
        Ok(())
    }

    fn flush(self) -> Result<(), Failure> {
        match self {
            Self::JsonLines(mut out) => Ok(out.flush()?),
            Self::Csv { mut table, .. } => Ok(table.flush()?),
        }
    }
}

fn write_records(
    store: &dyn Snapshot,
    records: ExportedRecords,
    period: Period,
    mut rows: Rows<impl Write>,
) -> Result<(), Failure> {
    let bar = progress::bar("exporting", store)?;
    match records {
        ExportedRecords::Deliveries => {
            for outgoing in bar.wrap_iter(store.each_delivery()) {
                let delivery = outgoing?.delivery;
                if period.contains(&delivery.created_at) {
                    rows.write(&delivery, || delivery_row(&delivery))?;
                }
            }
        }
        ExportedRecords::Payments => {
            for session in bar.wrap_iter(store.each_session()) {
                let payment = session?.payment;
                if period.contains(&payment.created_at) {
                    rows.write(&payment, || payment_row(&payment))?;
                }
            }
        }
        ExportedRecords::Refunds => {
            for session in bar.wrap_iter(store.each_session()) {
                let payment = session?.payment;
                for refund in payment.refunds.iter().filter(|refund| period.contains(&refund.created_at)) {
                    let record = RefundOfPayment { payment: payment.id.as_str(), refund };
                    rows.write(&record, || refund_row(&payment, refund))?;
                }
            }
        }
        ExportedRecords::Postings => {
            for posted in bar.wrap_iter(store.each_session_with_postings()) {
                let (Session { payment, .. }, changes) = posted?;
                // The first group of postings is the completion, each other one a refund.
                let times = payment.paid_at.into_iter().chain(payment.refunds.iter().map(|refund| refund.created_at));
                for (postings, at) in changes.iter().zip(times) {
                    for posting in postings.iter().filter(|_| period.contains(&at)) {
                        let row = posting_row(&payment, posting, at);
                        rows.write(&row, || row.clone())?;
                    }
                }
            }
        }
    }
    bar.finish_and_clear();
    rows.flush()
}

#[derive(Serialize)]
struct RefundOfPayment<'r> {
    payment: &'r str,
    #[serde(flatten)]
    refund: &'r Refund,
}

/// Escapes a merchant's text so that no spreadsheet runs it as a formula.
fn without_formula(text: &str) -> Cow<'_, str> {
    match text.starts_with(['=', '+', '-', '@', '\t', '\r']) {
        true => Cow::Owned(format!("'{text}")),
        false => Cow::Borrowed(text),
    }
}

fn payment_row(payment: &Payment) -> Value {
    json!({
        "id": payment.id,
        "createdAt": payment.created_at,
        "paidAt": payment.paid_at,
        "developerId": payment.developer_id,
        "environment": payment.environment,
        "status": payment.status,
        "amount": payment.amount.to_string(),
        "platformFeeAmount": payment.platform_fee_amount.to_string(),
        "netAmount": payment.net_amount.to_string(),
        "currency": payment.currency,
        "paymentMethod": payment.payment_method,
        "merchantTransactionId": without_formula(&payment.merchant_transaction_id),
        "description": payment.description.as_deref().map(without_formula),
        "amountRefunded": payment.amount_refunded().to_string(),
    })
}

fn refund_row(payment: &Payment, refund: &Refund) -> Value {
    json!({
        "id": refund.id,
        "payment": payment.id,
        "createdAt": refund.created_at,
        "settledAt": refund.settled_at,
        "developerId": payment.developer_id,
        "environment": payment.environment,
        "status": refund.status,
        "amount": refund.amount.to_string(),
        "currency": refund.currency,
        "requiresManualSettlement": refund.requires_manual_settlement,
        "reason": refund.reason.as_deref().map(without_formula),
    })
}

/// A posting with its signed amount, in major units and in minor units: paisa, cents.
fn posting_row(payment: &Payment, posting: &Posting, at: Timestamp) -> Value {
    let sign = if posting.minor < 0 { "-" } else { "" };
    json!({
        "at": at,
        "payment": payment.id,
        "developerId": payment.developer_id,
        "environment": payment.environment,
        "account": posting.account,
        "amount": format!("{sign}{}", Amount::from_minor(posting.minor.unsigned_abs())),
        "minor": posting.minor,
        "currency": payment.currency,
    })
}

fn delivery_row(delivery: &Delivery) -> Value {
    json!({
        "id": delivery.id,
        "createdAt": delivery.created_at,
        "deliveredAt": delivery.delivered_at,
        "developerId": delivery.developer_id,
        "webhookId": delivery.webhook_id,
        "event": delivery.event,
        "status": delivery.status,
        "responseStatus": delivery.response_status,
        "attempts": delivery.attempts,
        "durationMs": delivery.duration_ms,
        "error": delivery.error.as_ref().map(|error| &error.code),
        "errorMessage": delivery.error.as_ref().map(|error| &error.message),
    })
}
