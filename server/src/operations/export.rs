//! `payments-server export`: records as JSON lines or CSV.

use std::{
    io::{self, BufWriter, Write},
    ops::{Bound, RangeBounds},
};

use payments_core::{Amount, Delivery, Payment, Posting, Refund, Timestamp, text::is_hidden};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Failure, open::with_snapshot, progress};
use crate::{
    cli::{ExportArgs, ExportFormat, ExportedRecords},
    domain::Session,
    store::Snapshot,
    terminal,
};

/// The exported period, with its beginning and without its end.
type Period = (Bound<Timestamp>, Bound<Timestamp>);

/// Writes records to the standard output in order of their ids, which is chronological.
pub(crate) async fn export(args: ExportArgs) -> Result<(), Failure> {
    let ExportArgs { records, format, since, until, data } = args;
    let period = (since.map_or(Bound::Unbounded, Bound::Included), until.map_or(Bound::Unbounded, Bound::Excluded));
    let written = with_snapshot(data.location()?, move |store| {
        let out = BufWriter::new(io::stdout().lock());
        write_records(store, records, period, Rows::new(format, out, columns(records))?)
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

/// Writes each record as a line of JSON, as the API returns it, or as a row of a CSV table. A terminal shows what it would
/// otherwise obey.
struct Rows<W: Write> {
    out: Format<W>,
    is_terminal: bool,
}

enum Format<W: Write> {
    JsonLines(W),
    Csv(Box<csv::Writer<W>>),
}

impl<W: Write> Rows<W> {
    /// Begins a CSV table with its columns, also if it gets no rows.
    fn new(format: ExportFormat, out: W, columns: &[&str]) -> Result<Self, Failure> {
        let out = match format {
            ExportFormat::Jsonl => Format::JsonLines(out),
            ExportFormat::Csv => {
                let mut table = csv::Writer::from_writer(out);
                table.write_record(columns)?;
                Format::Csv(Box::new(table))
            }
        };
        Ok(Self { out, is_terminal: terminal::is_terminal() })
    }

    /// `row` returns the record as the table's cells.
    fn write<const N: usize>(
        &mut self,
        record: &impl Serialize,
        row: impl FnOnce() -> [Value; N],
    ) -> Result<(), Failure> {
        match &mut self.out {
            Format::JsonLines(out) if self.is_terminal => {
                let line = serde_json::to_string(record)?;
                writeln!(out, "{}", terminal::visible_json(&line))?;
            }
            Format::JsonLines(out) => {
                // Keep the kind of the I/O error: a broken pipe is not a failure.
                serde_json::to_writer(&mut *out, record).map_err(io::Error::from)?;
                out.write_all(b"\n")?;
            }
            Format::Csv(table) => table.write_record(row().map(|value| match value {
                Value::Null => String::new(),
                Value::String(text) if self.is_terminal => terminal::visible(&without_formula(text)).into_owned(),
                Value::String(text) => without_formula(text),
                value => value.to_string(),
            }))?,
        }
        Ok(())
    }

    fn flush(self) -> Result<(), Failure> {
        match self.out {
            Format::JsonLines(mut out) => Ok(out.flush()?),
            Format::Csv(mut table) => Ok(table.flush()?),
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
                        let (cells, columns) = (posting_row(&payment, posting, at), POSTINGS.into_iter());
                        let record: Map<_, _> = columns.map(str::to_owned).zip(cells.clone()).collect();
                        rows.write(&record, || cells)?;
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

/// What a spreadsheet reads a formula from, also in full width.
const BEGINNINGS: [char; 13] = ['=', '+', '-', '@', '＝', '＋', '－', '＠', '﹦', '﹢', '﹣', '﹫', '\u{2212}'];

/// Escapes a text that a spreadsheet could run as a formula, by an apostrophe. Negative amounts stay as they are.
fn without_formula(text: String) -> String {
    let is_space = |char: char| char.is_whitespace() || is_hidden(char);
    let is_formula = text.trim_start_matches(is_space).starts_with(BEGINNINGS);
    let is_amount =
        text.strip_prefix('-').is_some_and(|rest| rest.bytes().all(|byte| byte == b'.' || byte.is_ascii_digit()));
    match (is_formula && !is_amount) || text.starts_with(|char| char != ' ' && is_space(char)) {
        true => format!("'{text}"),
        false => text,
    }
}

/// The columns of a table of these records.
fn columns(records: ExportedRecords) -> &'static [&'static str] {
    match records {
        ExportedRecords::Payments => &PAYMENTS,
        ExportedRecords::Refunds => &REFUNDS,
        ExportedRecords::Postings => &POSTINGS,
        ExportedRecords::Deliveries => &DELIVERIES,
    }
}

const PAYMENTS: [&str; 14] = [
    "id",
    "createdAt",
    "paidAt",
    "developerId",
    "environment",
    "status",
    "amount",
    "platformFeeAmount",
    "netAmount",
    "currency",
    "paymentMethod",
    "merchantTransactionId",
    "description",
    "amountRefunded",
];

fn payment_row(payment: &Payment) -> [Value; 14] {
    [
        json!(payment.id),
        json!(payment.created_at),
        json!(payment.paid_at),
        json!(payment.developer_id),
        json!(payment.environment),
        json!(payment.status),
        json!(payment.amount.to_string()),
        json!(payment.platform_fee_amount.to_string()),
        json!(payment.net_amount.to_string()),
        json!(payment.currency),
        json!(payment.payment_method),
        json!(payment.merchant_transaction_id),
        json!(payment.description),
        json!(payment.amount_refunded().to_string()),
    ]
}

const REFUNDS: [&str; 11] = [
    "id",
    "payment",
    "createdAt",
    "settledAt",
    "developerId",
    "environment",
    "status",
    "amount",
    "currency",
    "requiresManualSettlement",
    "reason",
];

fn refund_row(payment: &Payment, refund: &Refund) -> [Value; 11] {
    [
        json!(refund.id),
        json!(payment.id),
        json!(refund.created_at),
        json!(refund.settled_at),
        json!(payment.developer_id),
        json!(payment.environment),
        json!(refund.status),
        json!(refund.amount.to_string()),
        json!(refund.currency),
        json!(refund.requires_manual_settlement),
        json!(refund.reason),
    ]
}

const POSTINGS: [&str; 8] = ["at", "payment", "developerId", "environment", "account", "amount", "minor", "currency"];

/// A posting with its signed amount, in major units and in minor units: paisa, cents.
fn posting_row(payment: &Payment, posting: &Posting, at: Timestamp) -> [Value; 8] {
    let sign = if posting.minor < 0 { "-" } else { "" };
    [
        json!(at),
        json!(payment.id),
        json!(payment.developer_id),
        json!(payment.environment),
        json!(posting.account),
        json!(format!("{sign}{}", Amount::from_minor(posting.minor.unsigned_abs()))),
        json!(posting.minor),
        json!(payment.currency),
    ]
}

const DELIVERIES: [&str; 12] = [
    "id",
    "createdAt",
    "deliveredAt",
    "developerId",
    "webhookId",
    "event",
    "status",
    "responseStatus",
    "attempts",
    "durationMs",
    "error",
    "errorMessage",
];

fn delivery_row(delivery: &Delivery) -> [Value; 12] {
    [
        json!(delivery.id),
        json!(delivery.created_at),
        json!(delivery.delivered_at),
        json!(delivery.developer_id),
        json!(delivery.webhook_id),
        json!(delivery.event),
        json!(delivery.status),
        json!(delivery.response_status),
        json!(delivery.attempts),
        json!(delivery.duration_ms),
        json!(delivery.error.as_ref().map(|error| &error.code)),
        json!(delivery.error.as_ref().map(|error| &error.message)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_is_no_formula() {
        for text in [
            "=1+1",
            "+880",
            "-1+2",
            "@sum",
            "\t=1",
            "\r1",
            "\n1",
            "\u{a0}1",
            "\u{a0}=1",
            " =1",
            "\u{feff}=1",
            "＝1",
            "＋1",
            "－1",
            "＠a",
            "\u{2212}1",
            "﹢1",
        ] {
            assert_eq!(without_formula(text.to_owned()), format!("'{text}"), "{text:?}");
        }
        for text in ["-2.5", "750", "tea = 2", "", "a-1", "চা", " tea"] {
            assert_eq!(without_formula(text.to_owned()), text);
        }
    }
}
