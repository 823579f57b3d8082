//! `payments-server books` and `coverage`.

use crate::{
    cli::{BooksCommand, CommandError, EntryArgs},
    commands::operations::signed,
    domain::{BooksChange, Cover},
    log::terminal::Output,
    service::{BooksRequest, CoverRow, CoverageReply},
};

pub fn request(command: BooksCommand) -> BooksRequest {
    let (change, EntryArgs { amount, currency, reference }, workspace) = match command {
        BooksCommand::PaidIn(entry) => (BooksChange::PaidIn, entry, None),
        BooksCommand::TakenOut(entry) => (BooksChange::TakenOut, entry, None),
        BooksCommand::BankCharge(entry) => (BooksChange::BankCharge, entry, None),
        BooksCommand::FeesTaken { entry, workspace } => (BooksChange::FeesTaken, entry, Some(workspace)),
    };
    BooksRequest { change, amount, currency, reference, workspace }
}

/// Prints a line for each currency. An error names the currencies that are not covered.
pub fn print_coverage(coverage: &CoverageReply, json: bool, out: &mut Output) -> Result<(), CommandError> {
    let CoverageReply { day, taken_at, covers } = coverage;
    if json {
        out.json(coverage)?;
    } else {
        let of_day = day.map_or_else(String::new, |day| format!("{day}, "));
        out.line(format_args!("{of_day}taken at {taken_at}"))?;
        for CoverRow { currency, cover, surplus } in covers {
            let Cover { owed_to_merchants, in_transit, owed_by_merchants, bank, gateways } = *cover;
            let verdict = if *surplus < 0 { "NOT covered" } else { "covered" };
            let [owed, in_transit, owing, bank, gateways, surplus] =
                [owed_to_merchants, in_transit, owed_by_merchants, bank, gateways, *surplus].map(signed);
            out.line(format_args!(
                "{currency}: {bank} at the bank + {gateways} at gateways - {owed} owed to merchants - {in_transit} in payouts = \
                 {surplus}, {verdict}; merchants owe {owing}"
            ))?;
        }
    }
    let short: Vec<_> = covers.iter().filter(|it| it.surplus < 0).map(|it| it.currency.code()).collect();
    match short.is_empty() {
        true => Ok(()),
        false => {
            Err(format!("bank and gateways do not cover what merchants are owed in {}", short.join(" and ")).into())
        }
    }
}
