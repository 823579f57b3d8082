//! `payments-server settlements report`: what each gateway owes, from all bookings.

use std::collections::BTreeMap;

use payments_core::{Booking, BookingKind, Currency, Environment, LedgerAccount, Timestamp};
use serde::Serialize;

use super::{
    export::{each_settled_row, signed},
    open::with_snapshot,
    progress,
};
use crate::{
    cli::{AdminArgs, CommandError},
    domain::GatewayName,
    log::terminal::Output,
    store::Snapshot,
};

/// What changed that a gateway owes, in minor units.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Flows {
    owed_before: i64,
    captured: i64,
    refunded: i64,
    disputed: i64,
    costs: i64,
    settled: i64,
}

/// The amounts are in minor units.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Line {
    gateway: GatewayName,
    currency: Currency,
    #[serde(flatten)]
    flows: Flows,
    owes_now: i64,
    /// What the account in the books says.
    account: i128,
    is_equal: bool,
}

impl Flows {
    fn add(&mut self, booking: Booking, is_before: bool) {
        // The account is negative while the gateway owes.
        let minor = -booking.change_of(LedgerAccount::GatewayClearing);
        match booking.kind {
            _ if is_before => self.owed_before += minor,
            BookingKind::Paid => self.captured += minor,
            BookingKind::Refunded | BookingKind::RefundSent | BookingKind::RefundFailed => self.refunded -= minor,
            BookingKind::DisputeWithdrawn | BookingKind::DisputeReinstated => self.disputed -= minor,
            BookingKind::GatewayCost | BookingKind::MerchantCost => self.costs -= minor,
            _ => self.settled -= minor,
        }
    }

    const fn owes_now(&self) -> i64 {
        self.owed_before + self.captured - self.refunded - self.disputed - self.costs - self.settled
    }
}

/// Prints a line for each gateway and currency.
pub async fn settlement_report(args: AdminArgs, since: Option<Timestamp>) -> Result<(), CommandError> {
    let lines = with_snapshot(args.data.location()?, move |store| report(store, since)).await?;
    let mut out = Output::new();
    for line in &lines {
        if args.json {
            out.json(line)?;
            continue;
        }
        let Line { gateway, currency, flows, owes_now, account, is_equal } = line;
        let Flows { owed_before, captured, refunded, disputed, costs, settled } = flows;
        let [before, captured, refunded, disputed, costs, settled, now] =
            [*owed_before, *captured, *refunded, *disputed, *costs, *settled, *owes_now].map(signed);
        let account = if *is_equal {
            "as its account says".to_owned()
        } else {
            format!("but its account says {account} minor units")
        };
        out.line(format_args!(
            "{} {currency}: {before} owed before + {captured} captured - {refunded} refunded - {disputed} disputed - {costs} \
             costs - {settled} settled = {now} owed now, {account}",
            gateway.as_str()
        ))?;
    }
    match lines.iter().all(|line| line.is_equal) {
        true => Ok(()),
        false => Err("an account differs from its bookings; run check".into()),
    }
}

fn report(store: &dyn Snapshot, since: Option<Timestamp>) -> Result<Vec<Line>, CommandError> {
    let mut flows = BTreeMap::<_, Flows>::new();
    let mut add = |gateway: GatewayName, currency: Currency, at: Timestamp, booking: Booking| {
        let flows = flows.entry((gateway, currency)).or_default();
        flows.add(booking, since.is_some_and(|since| at < since));
    };
    let bar = progress::bar("adding up", || store.records())?;
    for booked in bar.wrap_iter(store.each_session_with_bookings()) {
        let (session, bookings) = booked?;
        let Some(attempt) = session.attempt.filter(|_| session.payment.environment == Environment::Live) else {
            continue;
        };
        bookings.into_iter().for_each(|(at, booking)| add(attempt.gateway, session.payment.currency, at, booking));
    }
    for row in each_settled_row(store) {
        let row = row?;
        row.bookings().for_each(|(at, booking)| add(row.gateway, row.row.currency, at, booking));
    }
    bar.finish_and_clear();
    let mut lines = Vec::new();
    for ((gateway, currency), flows) in flows {
        let (owes_now, account) = (flows.owes_now(), store.clearing(gateway, currency)?);
        lines.push(Line { gateway, currency, flows, owes_now, account, is_equal: -i128::from(owes_now) == account });
    }
    Ok(lines)
}
