//! `payments-server payouts`: approves payouts, sends them in batches, and records the bank's answers.

use std::{collections::HashMap, fs::File, io, path::Path};

use csv::{StringRecord, Trim};
use serde_json::json;

use super::{
    connection::{Connection, Place, unexpected},
    operations::Rows,
};
use crate::{
    cli::{Admin, CommandError, ExportFormat, PayoutsCommand, ReasonArgs},
    log::{
        self,
        terminal::{Output, cell},
    },
    service::{
        AdminReply, AdminRequest, ListedPayout, PayoutOutcome, PayoutReply, PayoutRequest, PayoutRow, SentPayout,
        csv_error,
    },
};

/// How many rows a request has at most.
const MAX_ROWS: usize = 500;

pub async fn run(Admin { command, args }: Admin<PayoutsCommand>) -> Result<(), CommandError> {
    let mut work = Work { connection: Connection::new(Place::of(&args)?), out: Output::new(), json: args.json };
    let outcome = work.run(command).await;
    work.connection.close().await?;
    outcome
}

struct Work {
    connection: Connection,
    out: Output,
    json: bool,
}

impl Work {
    async fn run(&mut self, command: PayoutsCommand) -> Result<(), CommandError> {
        let (payout, outcome) = match command {
            PayoutsCommand::List { status } => return self.list(PayoutRequest::List { status }).await,
            PayoutsCommand::Send { batch, format, payout_key } => {
                return self.send(PayoutRequest::Send { batch, payout_key }, format).await;
            }
            PayoutsCommand::Results { file } => return self.results(&file).await,
            PayoutsCommand::Approve { payout, by } => (payout, PayoutOutcome::Approved { by }),
            PayoutsCommand::Paid { payout, reference } => (payout, PayoutOutcome::Paid { reference }),
            PayoutsCommand::Cancel(ReasonArgs { payout, reason }) => (payout, PayoutOutcome::Cancelled { reason }),
            PayoutsCommand::Failed(ReasonArgs { payout, reason }) => (payout, PayoutOutcome::Failed { reason }),
            PayoutsCommand::Unknown(ReasonArgs { payout, reason }) => (payout, PayoutOutcome::Unknown { reason }),
            PayoutsCommand::Returned(ReasonArgs { payout, reason }) => (payout, PayoutOutcome::Returned { reason }),
        };
        let recorded = self.record(vec![PayoutRow { payout, outcome }], false).await?;
        recorded.map_err(|(_, why)| why)?.iter().try_for_each(|row| self.print_step(row))
    }

    async fn ask(&mut self, request: PayoutRequest) -> Result<PayoutReply, CommandError> {
        match self.connection.need(AdminRequest::Payouts(request)).await? {
            AdminReply::Payouts { payouts } => Ok(payouts),
            _ => Err(unexpected()),
        }
    }

    /// Records rows. If one is refused, returns its index and why.
    async fn record(
        &mut self,
        rows: Vec<PayoutRow>,
        is_check: bool,
    ) -> Result<Result<Vec<ListedPayout>, (usize, String)>, CommandError> {
        match self.ask(PayoutRequest::Record { rows, is_check }).await? {
            PayoutReply::Recorded { recorded } => Ok(Ok(recorded)),
            PayoutReply::Refused { row, why } => Ok(Err((row, why))),
            _ => Err(unexpected()),
        }
    }

    async fn list(&mut self, request: PayoutRequest) -> Result<(), CommandError> {
        let PayoutReply::Listed { listed } = self.ask(request).await? else { return Err(unexpected()) };
        if self.json {
            return Ok(listed.iter().try_for_each(|row| self.out.json(row))?);
        }
        let row = |it: ListedPayout| {
            let ListedPayout { payout, amount, currency, status, kind, last4, requested_at, .. } = it;
            let workspace = it.workspace.map_or_else(|| "-".to_owned(), |id| id.to_string());
            let [holder, institution, by] = [&it.holder, &it.institution, &it.requested_by].map(|text| cell(text));
            format!(
                "{payout} {workspace} {amount} {currency} {status} {kind} {holder} {institution} ...{last4} {requested_at} {by}"
            )
        };
        let columns = "PAYOUT WORKSPACE AMOUNT CURRENCY STATUS KIND HOLDER INSTITUTION LAST4 REQUESTED BY";
        Ok(self.out.table(columns, listed.into_iter().map(row))?)
    }

    async fn send(&mut self, request: PayoutRequest, format: ExportFormat) -> Result<(), CommandError> {
        let PayoutReply::Sent { sent, kept } = self.ask(request).await? else { return Err(unexpected()) };
        for it in kept {
            log::say(format_args!("{} stays approved: {}", it.payout, it.why));
        }
        let format = if self.json { ExportFormat::Jsonl } else { format };
        let mut rows = Rows::new(format, io::stdout().lock(), &COLUMNS)?;
        for it in sent {
            let SentPayout { payout, amount, currency, kind, holder, institution, number } = it;
            let reference = payout.clone();
            rows.write_cells(
                &COLUMNS,
                [
                    json!(payout),
                    json!(amount),
                    json!(currency),
                    json!(kind),
                    json!(holder),
                    json!(institution),
                    json!(number),
                    json!(reference),
                ],
            )?;
        }
        rows.flush()
    }

    /// Checks all rows of a file, then records them.
    async fn results(&mut self, file: &Path) -> Result<(), CommandError> {
        let named = |what: String| CommandError::from(format!("{}: {what}", file.display()));
        let (lines, rows) = read_results(file).map_err(named)?;
        for is_check in [true, false] {
            for (lines, rows) in lines.chunks(MAX_ROWS).zip(rows.chunks(MAX_ROWS)) {
                let recorded = self.record(rows.to_vec(), is_check).await?.map_err(|(row, why)| {
                    let line = lines.get(row).copied().unwrap_or_default();
                    let payout = rows.get(row).map(|it| it.payout.as_str()).unwrap_or_default();
                    named(format!("line {line}, column \"status\": {payout:?}: {why}"))
                })?;
                recorded.iter().filter(|_| !is_check).try_for_each(|row| self.print_step(row))?;
            }
        }
        Ok(())
    }

    fn print_step(&mut self, row: &ListedPayout) -> Result<(), CommandError> {
        let ListedPayout { payout, amount, currency, status, .. } = row;
        match self.json {
            true => self.out.json(row)?,
            false => self.out.line(format_args!("{payout} {status}: {amount} {currency}"))?,
        }
        Ok(())
    }
}

/// The columns of the bank's file.
const COLUMNS: [&str; 8] = ["payout", "amount", "currency", "kind", "holder", "institution", "number", "reference"];

/// Reads the bank's answers, and the lines on which they are.
fn read_results(path: &Path) -> Result<(Vec<u64>, Vec<PayoutRow>), String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut reader = csv::ReaderBuilder::new().trim(Trim::All).from_reader(file);
    let header = reader.headers().map_err(|error| csv_error(&error))?.clone();
    let place = |name: &str| header.iter().position(|cell| cell.trim_start_matches('\u{feff}') == name);
    let need = |name: &str| {
        place(name).ok_or_else(|| {
            format!("the file has no column {name:?}; it has {}", header.iter().collect::<Vec<_>>().join(", "))
        })
    };
    let [payout, status, reference, reason] = ["payout", "status", "reference", "reason"].map(need);
    let (payout, status, reference, reason) = (payout?, status?, reference?, reason?);
    let (mut lines, mut rows, mut seen) = (Vec::new(), Vec::new(), HashMap::new());
    let mut record = StringRecord::new();
    while reader.read_record(&mut record).map_err(|error| csv_error(&error))? {
        let line = record.position().map_or(0, csv::Position::line);
        let text = |place: usize| record.get(place).unwrap_or_default().to_owned();
        let outcome = match &*text(status) {
            "paid" => PayoutOutcome::Paid { reference: text(reference) },
            "failed" => PayoutOutcome::Failed { reason: text(reason) },
            "unknown" => PayoutOutcome::Unknown { reason: text(reason) },
            "returned" => PayoutOutcome::Returned { reason: text(reason) },
            other => {
                let known = "must be one of paid, failed, unknown, returned";
                return Err(format!("line {line}, column \"status\": {other:?} {known}"));
            }
        };
        let (column, needed) = match outcome {
            PayoutOutcome::Paid { .. } => ("reference", text(reference)),
            _ => ("reason", text(reason)),
        };
        if needed.is_empty() {
            return Err(format!("line {line}, column {column:?}: must not be empty for this status"));
        }
        let row = PayoutRow { payout: text(payout), outcome };
        let first = seen.entry(row.payout.clone()).or_insert_with(|| row.outcome.clone());
        if *first != row.outcome {
            return Err(format!(
                "line {line}, column \"payout\": {:?} is there twice, with another result",
                row.payout
            ));
        }
        lines.push(line);
        rows.push(row);
    }
    Ok((lines, rows))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn read(text: &str) -> Result<(Vec<u64>, Vec<PayoutRow>), String> {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("results.csv");
        fs::write(&file, text).unwrap();
        read_results(&file)
    }

    #[test]
    fn an_error_in_the_banks_file_names_line_and_column() {
        let header = "payout,status,reference,reason\n";
        for (rows, says) in [
            ("po_1,paid,,\n", "line 2, column \"reference\": must not be empty"),
            ("po_1,paid,FT1,\npo_2,failed,FT2,\n", "line 3, column \"reason\": must not be empty"),
            ("po_1,done,FT1,\n", "line 2, column \"status\": \"done\" must be one of paid"),
            ("po_1,paid,FT1,\npo_1,paid,FT2,\n", "line 3, column \"payout\": \"po_1\" is there twice"),
            ("po_1,paid\n", "line 2 has 2 columns, and the header has 4"),
        ] {
            let error = read(&format!("{header}{rows}")).err().unwrap();
            assert!(error.starts_with(says), "{error}");
        }
        let error = read("payout,status\n").err().unwrap();
        assert_eq!(error, "the file has no column \"reference\"; it has payout, status");
        let (lines, rows) = read(&format!("\u{feff}{header}po_1,paid,FT1,\npo_2,unknown,,late\n")).unwrap();
        assert_eq!((lines, rows.len()), (vec![2, 3], 2));
    }
}
