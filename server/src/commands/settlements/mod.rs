//! `payments-server settlements`: imports gateways' statements, and compares them with the books.

use std::{
    fmt::Display,
    fs::File,
    path::{Path, PathBuf},
};

use serde_json::json;

use super::{
    connection::{Connection, Place, unexpected},
    operations,
};
use crate::{
    cli::{Admin, CommandError, SettlementList, SettlementsCommand},
    domain::{GatewayName, SettledRow, StatementRow},
    gateway::StatementColumns,
    log::terminal::{Output, cell},
    service::{
        AdminReply, AdminRequest, Imported, MAX_ROWS, SeenRows, SettlementReply, SettlementRequest, Statement,
        WaitingRow,
    },
};

pub async fn run(Admin { command, args }: Admin<SettlementsCommand>) -> Result<(), CommandError> {
    let mut work = match command {
        SettlementsCommand::Report { .. } if args.server.is_some() => {
            return Err("settlements report reads a store; run it on the machine that has the store".into());
        }
        SettlementsCommand::Report { since } => return operations::settlement_report(args, since).await,
        _ => Work { connection: Connection::new(Place::of(&args)?), out: Output::new(), json: args.json },
    };
    let outcome = work.run(command).await;
    work.connection.close().await?;
    outcome
}

struct Work {
    connection: Connection,
    out: Output,
    json: bool,
}

/// Where rows come from.
enum Source {
    File(PathBuf, &'static StatementColumns),
    Gateway,
}

impl Work {
    async fn run(&mut self, command: SettlementsCommand) -> Result<(), CommandError> {
        match command {
            SettlementsCommand::Import { file, gateway, columns, older_than, merchants_bear_gateway_costs } => {
                let source = file.map_or(Source::Gateway, |file| Source::File(file, columns));
                self.import(gateway, &source, older_than, merchants_bear_gateway_costs).await
            }
            SettlementsCommand::Resolve { row, payment, merchants_bear_gateway_costs: merchants_bear_costs } => {
                let request = SettlementRequest::Resolve { gateway: None, row, payment, merchants_bear_costs };
                let SettlementReply::Resolved { resolved } = self.ask(request).await? else { return Err(unexpected()) };
                self.print_row(&resolved)
            }
            SettlementsCommand::List { list: SettlementList::Ours, older_than } => {
                self.waiting(None, older_than).await.map(drop)
            }
            SettlementsCommand::List { list, .. } => self.list(list == SettlementList::Theirs).await,
            SettlementsCommand::Report { .. } => Ok(()),
        }
    }

    async fn ask(&mut self, request: SettlementRequest) -> Result<SettlementReply, CommandError> {
        match self.connection.need(AdminRequest::Settlements(request)).await? {
            AdminReply::Settlements { settlements } => Ok(settlements),
            _ => Err(unexpected()),
        }
    }

    /// Reads all rows twice: first to see whether one of them is refused.
    async fn import(
        &mut self,
        gateway: GatewayName,
        source: &Source,
        older_than: u16,
        merchants_bear_costs: bool,
    ) -> Result<(), CommandError> {
        let mut counts = Imported::default();
        for is_check in [true, false] {
            let mut seen = SeenRows::default();
            let mut file = match source {
                Source::File(path, columns) => {
                    let file = File::open(path).map_err(|error| in_file(path, error))?;
                    Some((path, Statement::read(file, columns).map_err(|fault| in_file(path, fault))?))
                }
                Source::Gateway => None,
            };
            let mut after = None;
            loop {
                let (rows, next) = match &mut file {
                    Some((path, file)) => (file.next_rows(MAX_ROWS).map_err(|fault| in_file(path, fault))?, None),
                    None => match self.ask(SettlementRequest::Read { gateway, after }).await? {
                        SettlementReply::Read { rows, next } => (rows, next),
                        _ => return Err(unexpected()),
                    },
                };
                rows.iter().filter(|_| is_check).try_for_each(|row| seen.add(row))?;
                let is_last = if file.is_some() { rows.is_empty() } else { next.is_none() };
                if !rows.is_empty() {
                    self.import_rows(gateway, rows, is_check, merchants_bear_costs, &mut counts).await?;
                }
                if is_last {
                    break;
                }
                after = next;
            }
        }
        let ours = self.waiting(Some(gateway), older_than).await?;
        let Imported { matched, theirs, differing, known } = counts;
        if self.json {
            let line = json!({"rows": matched + theirs, "matched": matched, "differing": differing, "theirs": theirs,
                "ours": ours, "known": known});
            return Ok(self.out.json(&line)?);
        }
        let rows = matched + theirs;
        Ok(self.out.line(format_args!(
            "{rows} rows, {known} of them imported before: {matched} matched, {differing} of them with another amount; {theirs} \
             theirs, without a payment of ours; {ours} ours, without a row for more than {older_than} days"
        ))?)
    }

    async fn import_rows(
        &mut self,
        gateway: GatewayName,
        rows: Vec<StatementRow>,
        is_check: bool,
        merchants_bear_costs: bool,
        counts: &mut Imported,
    ) -> Result<(), CommandError> {
        let request = SettlementRequest::Import { gateway, rows, is_check, merchants_bear_costs };
        let SettlementReply::Rows { settled, new, .. } = self.ask(request).await? else { return Err(unexpected()) };
        if is_check {
            return Ok(());
        }
        for (row, is_new) in settled.iter().zip(new) {
            counts.add(row, is_new);
            self.print_row(row)?;
        }
        Ok(())
    }

    async fn list(&mut self, is_suspended: bool) -> Result<(), CommandError> {
        let mut after = None;
        loop {
            let request = SettlementRequest::Rows { is_suspended, after };
            let SettlementReply::Rows { settled, next, .. } = self.ask(request).await? else {
                return Err(unexpected());
            };
            settled.iter().try_for_each(|row| self.print_row(row))?;
            if next.is_none() || self.out.is_closed() {
                return Ok(());
            }
            after = next;
        }
    }

    /// Prints the payments that wait for a row, of one gateway or of all. Returns how many.
    async fn waiting(&mut self, gateway: Option<GatewayName>, older_than_days: u16) -> Result<u64, CommandError> {
        let (mut after, mut count) = (None, 0);
        loop {
            let request = SettlementRequest::Waiting { older_than_days, after };
            let SettlementReply::Waiting { waiting, next } = self.ask(request).await? else { return Err(unexpected()) };
            for it in waiting.iter().filter(|it| gateway.is_none_or(|gateway| gateway == it.gateway)) {
                count += 1;
                let WaitingRow { payment, gateway, is_refund, amount, currency, since } = it;
                let what = if *is_refund { "refund" } else { "payment" };
                match self.json {
                    true => self.out.json(it)?,
                    false => self
                        .out
                        .line(format_args!("ours {} {payment} {what} {amount} {currency} {since}", gateway.as_str()))?,
                }
            }
            if next.is_none() {
                return Ok(count);
            }
            after = next;
        }
    }

    fn print_row(&mut self, settled: &SettledRow) -> Result<(), CommandError> {
        if self.json {
            return Ok(self.out.json(&operations::settled_row(settled))?);
        }
        let SettledRow { gateway, row, payment, ours, .. } = settled;
        let [gross, fee, net] = [row.gross, row.fee, row.net].map(operations::signed);
        let kind = row.kind.as_str();
        let line = format!("{} {} {kind} {gross} {fee} {net} {} {}", gateway.as_str(), row.id, row.currency, row.date);
        let line = match (payment, ours) {
            (Some(payment), None) => format!("matched {line} {payment}"),
            (Some(payment), Some(ours)) => format!("differs {line} {payment} ours is {}", operations::signed(*ours)),
            (None, _) => format!("theirs {line} {}", cell(&row.references.join(" "))),
        };
        Ok(self.out.line(format_args!("{line}"))?)
    }
}

fn in_file(path: &Path, what: impl Display) -> CommandError {
    format!("{}: {what}", path.display()).into()
}
