//! `payments-server export`: records as JSON lines or CSV.

use std::{
    borrow::Cow,
    io::{self, BufWriter, Write},
};

use payments_core::{Amount, Delivery, Payment, Posting, Refund, Timestamp};
use serde::Serialize;

use super::{Failure, open::with_store, progress};
use crate::{
    cli::{ExportArgs, ExportFormat, ExportedRecords},
    store::Maintenance,
};

/// The exported period.
#[derive(Debug, Clone, Copy)]
struct Period {
    since: Option<Timestamp>,
    until: Option<Timestamp>,
}

impl Period {
    fn contains(self, time: Timestamp) -> bool {
        self.since.is_none_or(|since| time >= since) && self.until.is_none_or(|until| time < until)
    }
}

/// Writes records to the standard output in order of their ids, which is chronological.
pub(crate) async fn export(args: ExportArgs) -> Result<(), Failure> {
    let ExportArgs { records, format, since, until, data } = args;
    let period = Period { since, until };
    let written = with_store(&data.data_dir, move |store| {
        let out = BufWriter::new(io::stdout().lock());
        match format {
            ExportFormat::Jsonl => write_records(store, records, period, JsonLines(out)),
            ExportFormat::Csv => write_records(store, records, period, csv::Writer::from_writer(out)),
        }
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

/// Writes a record either whole, as the API returns it, or flat, as a table row.
trait Rows {
    fn row(&mut self, whole: &impl Serialize, flat: &impl Serialize) -> Result<(), Failure>;
    fn end(self) -> Result<(), Failure>;
}

struct JsonLines<W>(W);

impl<W: Write> Rows for JsonLines<W> {
    fn row(&mut self, whole: &impl Serialize, _flat: &impl Serialize) -> Result<(), Failure> {
        // Keep the kind of the I/O error: a broken pipe is not a failure.
        serde_json::to_writer(&mut self.0, whole).map_err(io::Error::from)?;
        Ok(self.0.write_all(b"\n")?)
    }

    fn end(mut self) -> Result<(), Failure> {
        Ok(self.0.flush()?)
    }
}

impl<W: Write> Rows for csv::Writer<W> {
    fn row(&mut self, _whole: &impl Serialize, flat: &impl Serialize) -> Result<(), Failure> {
        Ok(self.serialize(flat)?)
    }

    fn end(mut self) -> Result<(), Failure> {
        Ok(self.flush()?)
    }
}

fn write_records(
    store: &dyn Maintenance,
    records: ExportedRecords,
    period: Period,
    mut rows: impl Rows,
) -> Result<(), Failure> {
    let bar = progress::bar("exporting", || store.records());
    let mut read = 0_u64;
    let mut step = || {
        read += 1;
        progress::step(&bar, read);
    };
    match records {
        ExportedRecords::Deliveries => {
            for outgoing in store.each_delivery() {
                let delivery = outgoing?.delivery;
                step();
                if period.contains(delivery.created_at) {
                    rows.row(&delivery, &DeliveryRow::of(&delivery))?;
                }
            }
        }
        ExportedRecords::Payments | ExportedRecords::Refunds => {
            for session in store.each_session() {
                let payment = session?.payment;
                step();
                if records == ExportedRecords::Payments {
                    if period.contains(payment.created_at) {
                        rows.row(&payment, &PaymentRow::of(&payment))?;
                    }
                } else if let Some(refund) = payment.refund.as_ref().filter(|refund| period.contains(refund.created_at))
                {
                    rows.row(&RefundLine { payment: payment.id.as_str(), refund }, &RefundRow::of(&payment, refund))?;
                }
            }
        }
        ExportedRecords::Postings => {
            for session in store.each_session() {
                let session = session?;
                step();
                let payment = &session.payment;
                for (nth, postings) in store.postings_of(&payment.id)?.iter().enumerate() {
                    // The first group of postings is the completion, the second the refund.
                    let refunded_at = payment.refund.as_ref().map(|refund| refund.created_at);
                    let at = if nth == 0 { payment.paid_at } else { refunded_at };
                    let at = at.unwrap_or(payment.updated_at);
                    for posting in postings.iter().filter(|_| period.contains(at)) {
                        let row = PostingRow::of(payment, posting, at);
                        rows.row(&row, &row)?;
                    }
                }
            }
        }
    }
    bar.finish_and_clear();
    rows.end()
}

#[derive(Serialize)]
struct RefundLine<'r> {
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

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PaymentRow<'r> {
    id: &'r str,
    created_at: Timestamp,
    paid_at: Option<Timestamp>,
    developer_id: &'r str,
    environment: &'r str,
    status: &'r str,
    amount: String,
    platform_fee_amount: String,
    net_amount: String,
    currency: &'static str,
    payment_method: Option<&'r str>,
    merchant_transaction_id: Cow<'r, str>,
    description: Option<Cow<'r, str>>,
}

impl<'r> PaymentRow<'r> {
    fn of(payment: &'r Payment) -> Self {
        Self {
            id: payment.id.as_str(),
            created_at: payment.created_at,
            paid_at: payment.paid_at,
            developer_id: payment.developer_id.as_str(),
            environment: payment.environment.as_str(),
            status: payment.status.as_str(),
            amount: payment.amount.to_string(),
            platform_fee_amount: payment.platform_fee_amount.to_string(),
            net_amount: payment.net_amount.to_string(),
            currency: payment.currency.code(),
            payment_method: payment.payment_method.as_ref().map(payments_core::PaymentMethod::as_str),
            merchant_transaction_id: without_formula(&payment.merchant_transaction_id),
            description: payment.description.as_deref().map(without_formula),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct RefundRow<'r> {
    id: &'r str,
    payment: &'r str,
    created_at: Timestamp,
    settled_at: Option<Timestamp>,
    developer_id: &'r str,
    environment: &'r str,
    status: &'r str,
    amount: String,
    currency: &'static str,
    requires_manual_settlement: bool,
    reason: Option<Cow<'r, str>>,
}

impl<'r> RefundRow<'r> {
    fn of(payment: &'r Payment, refund: &'r Refund) -> Self {
        Self {
            id: refund.id.as_str(),
            payment: payment.id.as_str(),
            created_at: refund.created_at,
            settled_at: refund.settled_at,
            developer_id: payment.developer_id.as_str(),
            environment: payment.environment.as_str(),
            status: refund.status.as_str(),
            amount: refund.amount.to_string(),
            currency: refund.currency.code(),
            requires_manual_settlement: refund.requires_manual_settlement,
            reason: refund.reason.as_deref().map(without_formula),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PostingRow<'r> {
    at: Timestamp,
    payment: &'r str,
    developer_id: &'r str,
    environment: &'r str,
    account: payments_core::LedgerAccount,
    /// Signed, in major units.
    amount: String,
    /// Signed, in minor units: paisa, cents.
    minor: i64,
    currency: &'static str,
}

impl<'r> PostingRow<'r> {
    fn of(payment: &'r Payment, posting: &Posting, at: Timestamp) -> Self {
        let sign = if posting.minor < 0 { "-" } else { "" };
        Self {
            at,
            payment: payment.id.as_str(),
            developer_id: payment.developer_id.as_str(),
            environment: payment.environment.as_str(),
            account: posting.account,
            minor: posting.minor,
            amount: format!("{sign}{}", Amount::from_minor(posting.minor.unsigned_abs())),
            currency: payment.currency.code(),
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct DeliveryRow<'r> {
    id: &'r str,
    created_at: Timestamp,
    delivered_at: Option<Timestamp>,
    developer_id: &'r str,
    webhook_id: &'r str,
    event: &'r str,
    status: &'r str,
    response_status: Option<u16>,
    attempts: u32,
    duration_ms: Option<u64>,
    error: Option<&'r str>,
    error_message: Option<&'r str>,
}

impl<'r> DeliveryRow<'r> {
    fn of(delivery: &'r Delivery) -> Self {
        Self {
            id: delivery.id.as_str(),
            created_at: delivery.created_at,
            delivered_at: delivery.delivered_at,
            developer_id: delivery.developer_id.as_str(),
            webhook_id: delivery.webhook_id.as_str(),
            event: delivery.event.as_str(),
            status: delivery.status.as_str(),
            response_status: delivery.response_status,
            attempts: delivery.attempts,
            duration_ms: delivery.duration_ms,
            error: delivery.error.as_ref().map(|error| error.code.as_str()),
            error_message: delivery.error.as_ref().map(|error| &*error.message),
        }
    }
}
