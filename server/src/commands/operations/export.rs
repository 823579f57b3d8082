//! `payments-server export`: records as JSON lines or CSV.

use std::{
    io::{self, BufWriter, IsTerminal as _, Write},
    ops::{Bound, RangeBounds},
};

use payments_core::{
    Amount, Booking, Currency, Delivery, DeveloperId, Environment, Payment, Posting, Refund, Timestamp, text::is_hidden,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{open::with_snapshot, progress};
use crate::{
    cli::{CommandError, ExportArgs, ExportFormat, ExportedRecords},
    domain::{BooksEntry, PayoutRecord, Session, SettledRow},
    log::terminal,
    store::Snapshot,
};

/// The exported period. It includes its beginning but not its end.
type Period = (Bound<Timestamp>, Bound<Timestamp>);

/// Writes records to the standard output in order of their ids, which is chronological.
pub async fn export(args: ExportArgs) -> Result<(), CommandError> {
    let ExportArgs { records, format, since, until, data } = args;
    let period = (since.map_or(Bound::Unbounded, Bound::Included), until.map_or(Bound::Unbounded, Bound::Excluded));
    let written = with_snapshot(data.location()?, move |store| {
        let out = BufWriter::new(io::stdout().lock());
        write_records(store, records, period, Rows::new(format, out, &columns(records))?)
    });
    match written.await {
        // The reader, such as `head`, has closed the pipe.
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

/// Writes each record as a line of JSON, as the API returns it, or as a row of a CSV table. On a terminal, escapes control
/// characters.
pub(in crate::commands) struct Rows<W: Write> {
    out: Format<W>,
    is_terminal: bool,
}

enum Format<W: Write> {
    JsonLines(W),
    Csv(Box<csv::Writer<W>>),
}

impl<W: Write> Rows<W> {
    /// Begins a CSV table with its columns, even if no rows follow.
    pub(in crate::commands) fn new(format: ExportFormat, out: W, columns: &[&str]) -> Result<Self, CommandError> {
        let out = match format {
            ExportFormat::Jsonl => Format::JsonLines(out),
            ExportFormat::Csv => {
                let mut table = csv::Writer::from_writer(out);
                table.write_record(columns)?;
                Format::Csv(Box::new(table))
            }
        };
        Ok(Self { out, is_terminal: io::stdout().is_terminal() })
    }

    /// `row` returns the record as the table's cells.
    fn write<const N: usize>(
        &mut self,
        record: &impl Serialize,
        row: impl FnOnce() -> [Value; N],
    ) -> Result<(), CommandError> {
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

    /// The same for a record that has only the table's cells.
    pub(in crate::commands) fn write_cells<const N: usize>(
        &mut self,
        names: &[&str],
        cells: [Value; N],
    ) -> Result<(), CommandError> {
        self.write(&record_of(names, &cells), || cells)
    }

    pub(in crate::commands) fn flush(self) -> Result<(), CommandError> {
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
) -> Result<(), CommandError> {
    let bar = progress::bar("exporting", || store.records())?;
    match records {
        ExportedRecords::Deliveries => {
            for outgoing in bar.wrap_iter(store.each_delivery()) {
                let delivery = outgoing?.delivery;
                if period.contains(&delivery.created_at) {
                    rows.write(&delivery, || DELIVERIES.map(|(_, cell)| cell(&delivery)))?;
                }
            }
        }
        ExportedRecords::Payments => {
            for session in bar.wrap_iter(store.each_session()) {
                let payment = session?.payment;
                if period.contains(&payment.created_at) {
                    rows.write(&payment, || PAYMENTS.map(|(_, cell)| cell(&payment)))?;
                }
            }
        }
        ExportedRecords::Refunds => {
            for session in bar.wrap_iter(store.each_session()) {
                let payment = session?.payment;
                for refund in payment.refunds.iter().filter(|refund| period.contains(&refund.created_at)) {
                    let record = RefundOfPayment { payment: payment.id.as_str(), refund };
                    rows.write(&record, || REFUNDS.map(|(_, cell)| cell(&payment, refund)))?;
                }
            }
        }
        ExportedRecords::Postings => {
            for booked in bar.wrap_iter(store.each_session_with_bookings()) {
                let (Session { payment, .. }, bookings) = booked?;
                for (at, booking) in bookings.into_iter().filter(|(at, _)| period.contains(at)) {
                    for posting in booking.postings() {
                        rows.write_cells(&names(&POSTINGS), POSTINGS.map(|(_, cell)| cell(&payment, &posting, at)))?;
                    }
                }
            }
            let mut write = |of: Owner<'_>, at: Timestamp, booking: Booking| {
                booking.postings().filter(|_| period.contains(&at)).try_for_each(|posting| {
                    rows.write_cells(&names(&POSTINGS), posting_without_payment(of, &posting, at))
                })
            };
            for booked in store.each_payout_with_bookings() {
                let (PayoutRecord { scope, payout, .. }, bookings) = booked?;
                let of = (Some(&scope.developer_id), payout.environment, payout.currency);
                bookings.into_iter().try_for_each(|(at, booking)| write(of, at, booking))?;
            }
            for row in each_settled_row(store) {
                let row = row?;
                let of = (None, Environment::Live, row.row.currency);
                row.bookings().try_for_each(|(at, booking)| write(of, at, booking))?;
            }
            for entry in store.each("books") {
                let entry: BooksEntry = serde_json::from_slice(&entry?.1)?;
                let of = (entry.developer_id.as_ref(), Environment::Live, entry.currency);
                write(of, entry.recorded_at, entry.booking())?;
            }
        }
        ExportedRecords::Settlements => {
            for row in bar.wrap_iter(each_settled_row(store)) {
                let row = row?;
                if period.contains(&row.imported_at) {
                    rows.write_cells(&names(&SETTLEMENTS), SETTLEMENTS.map(|(_, cell)| cell(&row)))?;
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

/// The characters with which a spreadsheet's formula begins, also in full width.
const BEGINNINGS: [char; 13] = ['=', '+', '-', '@', '＝', '＋', '－', '＠', '﹦', '﹢', '﹣', '﹫', '\u{2212}'];

/// Puts an apostrophe before a text that a spreadsheet could run as a formula. Negative amounts stay as they are.
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

/// A column's name, and the function that returns a record's cell.
type Column<F> = (&'static str, F);
type OfPayment = Column<fn(&Payment) -> Value>;
type OfRefund = Column<fn(&Payment, &Refund) -> Value>;
type OfPosting = Column<fn(&Payment, &Posting, Timestamp) -> Value>;
type OfSettledRow = Column<fn(&SettledRow) -> Value>;
type OfDelivery = Column<fn(&Delivery) -> Value>;

fn names<F>(columns: &[Column<F>]) -> Vec<&'static str> {
    columns.iter().map(|(name, _)| *name).collect()
}

/// The names of the columns of a table of these records.
fn columns(records: ExportedRecords) -> Vec<&'static str> {
    match records {
        ExportedRecords::Payments => names(&PAYMENTS),
        ExportedRecords::Refunds => names(&REFUNDS),
        ExportedRecords::Postings => names(&POSTINGS),
        ExportedRecords::Settlements => names(&SETTLEMENTS),
        ExportedRecords::Deliveries => names(&DELIVERIES),
    }
}

const PAYMENTS: [OfPayment; 15] = [
    ("id", |it| json!(it.id)),
    ("createdAt", |it| json!(it.created_at)),
    ("paidAt", |it| json!(it.paid_at)),
    ("developerId", |it| json!(it.developer_id)),
    ("environment", |it| json!(it.environment)),
    ("status", |it| json!(it.status)),
    ("amount", |it| json!(it.amount.to_string())),
    ("platformFeeAmount", |it| json!(it.platform_fee_amount.to_string())),
    ("netAmount", |it| json!(it.net_amount.to_string())),
    ("currency", |it| json!(it.currency)),
    ("paymentMethod", |it| json!(it.payment_method)),
    ("merchantTransactionId", |it| json!(it.merchant_transaction_id)),
    ("description", |it| json!(it.description)),
    ("amountRefunded", |it| json!(it.amount_refunded().to_string())),
    ("gatewayTransactionId", |it| json!(it.gateway_transaction_id)),
];

const REFUNDS: [OfRefund; 11] = [
    ("id", |_, refund| json!(refund.id)),
    ("payment", |payment, _| json!(payment.id)),
    ("createdAt", |_, refund| json!(refund.created_at)),
    ("settledAt", |_, refund| json!(refund.settled_at)),
    ("developerId", |payment, _| json!(payment.developer_id)),
    ("environment", |payment, _| json!(payment.environment)),
    ("status", |_, refund| json!(refund.status)),
    ("amount", |_, refund| json!(refund.amount.to_string())),
    ("currency", |_, refund| json!(refund.currency)),
    ("requiresManualSettlement", |_, refund| json!(refund.requires_manual_settlement)),
    ("reason", |_, refund| json!(refund.reason)),
];

/// A posting has its signed amount, in major units and in minor units: paisa, cents.
const POSTINGS: [OfPosting; 8] = [
    ("at", |_, _, at| json!(at)),
    ("payment", |payment, _, _| json!(payment.id)),
    ("developerId", |payment, _, _| json!(payment.developer_id)),
    ("environment", |payment, _, _| json!(payment.environment)),
    ("account", |_, posting, _| json!(posting.account.as_str())),
    ("amount", |_, posting, _| json!(signed(posting.minor))),
    ("minor", |_, posting, _| json!(posting.minor)),
    ("currency", |payment, _, _| json!(payment.currency)),
];

/// Whose posting it is: a developer's, or the platform's.
type Owner<'o> = (Option<&'o DeveloperId>, Environment, Currency);

/// The cells of a posting that belongs to no payment.
fn posting_without_payment(
    (developer, environment, currency): Owner<'_>,
    posting: &Posting,
    at: Timestamp,
) -> [Value; 8] {
    let (account, minor) = (posting.account.as_str(), posting.minor);
    [
        json!(at),
        Value::Null,
        json!(developer),
        json!(environment),
        json!(account),
        json!(signed(minor)),
        json!(minor),
        json!(currency),
    ]
}

const SETTLEMENTS: [OfSettledRow; 13] = [
    ("importedAt", |it| json!(it.imported_at)),
    ("gateway", |it| json!(it.gateway)),
    ("id", |it| json!(it.row.id)),
    ("kind", |it| json!(it.row.kind)),
    ("reference", |it| json!(it.row.references.join(" "))),
    ("gross", |it| json!(signed(it.row.gross))),
    ("fee", |it| json!(signed(it.row.fee))),
    ("net", |it| json!(signed(it.row.net))),
    ("currency", |it| json!(it.row.currency)),
    ("date", |it| json!(it.row.date)),
    ("payment", |it| json!(it.payment)),
    ("resolvedAt", |it| json!(it.resolved_at)),
    ("ours", |it| json!(it.ours.map(signed))),
];

/// A record that has only the cells of a table.
fn record_of(names: &[&str], cells: &[Value]) -> Map<String, Value> {
    names.iter().map(|name| (*name).to_owned()).zip(cells.iter().cloned()).collect()
}

/// A row of a gateway's statement, as it is exported.
pub(in crate::commands) fn settled_row(row: &SettledRow) -> Map<String, Value> {
    record_of(&names(&SETTLEMENTS), &SETTLEMENTS.map(|(_, cell)| cell(row)))
}

/// The rows of gateways' statements, in the order of their gateways and ids.
pub(super) fn each_settled_row(store: &dyn Snapshot) -> impl Iterator<Item = Result<SettledRow, CommandError>> + '_ {
    store.each("settled-row").map(|row| Ok(serde_json::from_slice(&row?.1)?))
}

/// An amount with its sign.
pub(in crate::commands) fn signed(minor: i64) -> String {
    let sign = if minor < 0 { "-" } else { "" };
    format!("{sign}{}", Amount::from_minor(minor.unsigned_abs()))
}

const DELIVERIES: [OfDelivery; 12] = [
    ("id", |it| json!(it.id)),
    ("createdAt", |it| json!(it.created_at)),
    ("deliveredAt", |it| json!(it.delivered_at)),
    ("developerId", |it| json!(it.developer_id)),
    ("webhookId", |it| json!(it.webhook_id)),
    ("event", |it| json!(it.event)),
    ("status", |it| json!(it.status)),
    ("responseStatus", |it| json!(it.response_status)),
    ("attempts", |it| json!(it.attempts)),
    ("durationMs", |it| json!(it.duration_ms)),
    ("error", |it| json!(it.error.as_ref().map(|error| &error.code))),
    ("errorMessage", |it| json!(it.error.as_ref().map(|error| &error.message))),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_a_formula() {
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
