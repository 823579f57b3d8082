//! Settlements: the gateways settle to the bank, and the operator imports their statements, with mistakes.

use std::{sync::Arc, time::Duration};

use gateway_fakes::Entry;
use payments_core::{Currency, Day, PaymentId, RefundStatus, Timestamp};
use payments_server::parts::{AdminReply, AdminRequest, SettlementReply, SettlementRequest};
use payments_store::{
    Snapshot as _,
    domain::{GatewayName, RowKind, Session, SettledRow, StatementRow},
    embedded::EmbeddedStore,
};
use tokio::time::timeout;

use super::{operator::administer, world::World};

const BKASH: GatewayName = GatewayName::of("bkash");
const STRIPE: GatewayName = GatewayName::of("stripe");
/// How often the operator repeats a command.
const TRIES: u32 = 60;
/// How many rows are imported at once.
const BATCH: usize = 5;
/// A row that is not of a payment of ours.
const FOREIGN: &str = "row-of-another";
/// Words that no error has.
const NEVER: &str = "\0";

/// Imports statements until the merchants stop.
pub(super) async fn work(world: Arc<World>) {
    loop {
        world.fate.wait(60_000..=240_000).await;
        if !world.goes_on() {
            return;
        }
        let gateway = if world.fate.one_in(2) { BKASH } else { STRIPE };
        pay_out(&world);
        if let Some(rows) = statement(&world, gateway).await {
            import_badly(&world, gateway, rows).await;
            resolve(&world, gateway).await;
        }
    }
}

/// Imports everything, and checks that the books say what the gateways owe.
pub(super) async fn finish(world: &World) {
    pay_out(world);
    for gateway in [BKASH, STRIPE] {
        let Some(rows) = statement(world, gateway).await else { return world.violation("no statement can be read") };
        leave_one_out(world, gateway, &rows).await;
        import(world, gateway, &rows).await;
        resolve(world, gateway).await;
        check(world, gateway, &rows);
    }
}

/// The card processor pays its money out.
fn pay_out(world: &World) {
    let stripe = &world.around.stripe;
    let payout = gateway_fakes::at(world.fate.now_seconds(), || {
        stripe.make_available();
        stripe.pay_out()
    });
    world.fate.note(format_args!("the card processor pays out: {payout:?}"));
}

/// The whole statement of a gateway.
async fn statement(world: &World, gateway: GatewayName) -> Option<Vec<StatementRow>> {
    if gateway == BKASH {
        return Some(of_bkash(world));
    }
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let read = ask(world, SettlementRequest::Read { gateway, after }, NEVER).await?;
        let Ok(SettlementReply::Read { rows, next }) = read else { return None };
        all.extend(rows);
        if next.is_none() {
            return Some(all);
        }
        after = next;
    }
}

/// The file of the wallet gateway, which keeps a hundredth. Some rows do not name the payment, one is of another merchant.
fn of_bkash(world: &World) -> Vec<StatementRow> {
    let row = |id: String, kind, reference: String, gross: i64, fee: i64| {
        let (net, currency, date) = (gross - fee, Currency::Bdt, Day::of(Timestamp::UNIX_EPOCH));
        StatementRow { id, kind, references: vec![reference], gross, fee, net, currency, date }
    };
    let books = world.around.bkash.books().into_iter().filter(|entry| entry.taken > 0);
    let payments = books.map(|entry| {
        let reference = if entry.id.ends_with(['7', 'e']) { entry.id.clone() } else { entry.reference };
        let gross = entry.amount_minor.cast_signed();
        row(entry.id, RowKind::Payment, reference, gross, gross / 100)
    });
    let foreign = row(FOREIGN.to_owned(), RowKind::Payment, "TX9".to_owned(), 700, 7);
    let recorded = world.recorded_disputes.lock();
    let disputes = recorded.iter().enumerate().filter(|(_, it)| it.taken > 0).map(|(nth, it)| {
        row(format!("dispute-{nth}"), RowKind::Dispute, it.payment.to_string(), -it.taken.cast_signed(), 0)
    });
    payments.chain(disputes).chain([foreign]).collect()
}

/// The payment of a row, by the gateway's own books if the row does not name it.
fn payment_of(world: &World, row: &StatementRow) -> Option<String> {
    let books = world.around.bkash.books();
    let in_books = books.iter().filter(|entry| entry.id == row.id).map(|entry| &entry.reference);
    let name = row.references.iter().chain(in_books).find(|name| name.starts_with(PaymentId::PREFIX))?;
    name.split('-').next().map(str::to_owned)
}

/// Gives a command until it is answered. An error is an answer if it has these words.
async fn ask(world: &World, request: SettlementRequest, refused: &str) -> Option<Result<SettlementReply, String>> {
    for _ in 0..TRIES {
        match administer(world, AdminRequest::Settlements(request.clone())).await {
            Some(AdminReply::Settlements { settlements }) => return Some(Ok(settlements)),
            Some(AdminReply::Error { error, .. }) if error.contains(refused) => return Some(Err(error)),
            _ => world.fate.wait(500..=5_000).await,
        }
    }
    None
}

/// Imports rows in batches, or only checks them. Returns which are new.
async fn import_as(world: &World, gateway: GatewayName, rows: &[StatementRow], is_check: bool) -> Vec<bool> {
    let mut all = Vec::new();
    for batch in rows.chunks(BATCH) {
        let rows = batch.to_vec();
        let request = SettlementRequest::Import { gateway, rows, is_check, merchants_bear_costs: false };
        match ask(world, request, "row").await {
            Some(Ok(SettlementReply::Rows { new, .. })) => all.extend(new),
            Some(Err(error)) => world.violation(format!("a statement is refused: {error}")),
            _ => {}
        }
    }
    all
}

async fn import(world: &World, gateway: GatewayName, rows: &[StatementRow]) {
    import_as(world, gateway, rows, false).await;
}

/// Imports a statement that has a wrong row, lacks one, or has one twice; or the same one twice; or is cut off.
async fn import_badly(world: &World, gateway: GatewayName, mut rows: Vec<StatementRow>) {
    let Some(nth) = world.fate.choose(&(0..rows.len()).collect::<Vec<_>>()).copied() else { return };
    let mistake = world.fate.number(0..=5);
    world.fate.note(format_args!("the operator imports {} rows of {gateway:?}, mistake {mistake}", rows.len()));
    match mistake {
        0 => refuse(world, gateway, &rows, nth).await,
        1 => drop(rows.remove(nth)),
        2 => rows.insert(nth, rows[nth].clone()),
        3 => import(world, gateway, &rows).await,
        4 => {
            let soon = Duration::from_millis(world.fate.number(0..=300));
            let _ = timeout(soon, import(world, gateway, &rows)).await;
            return;
        }
        _ => {}
    }
    import(world, gateway, &rows).await;
}

/// Imports rows of which one was imported with another amount. That must change nothing.
async fn refuse(world: &World, gateway: GatewayName, rows: &[StatementRow], nth: usize) {
    import(world, gateway, &rows[nth..=nth]).await;
    let first = nth / BATCH * BATCH;
    let mut rows = rows[first..rows.len().min(first + BATCH)].to_vec();
    let before = import_as(world, gateway, &rows, true).await;
    let right = rows[nth - first].clone();
    rows[nth - first] = StatementRow { gross: right.gross + 1, net: right.net + 1, ..right.clone() };
    let wrong = rows.clone();
    let request = SettlementRequest::Import { gateway, rows: wrong, is_check: false, merchants_bear_costs: false };
    if let Some(Ok(_)) = ask(world, request, "was imported with another").await {
        world.violation(format!("row {} was imported with two amounts", right.id));
    }
    rows[nth - first] = right;
    if import_as(world, gateway, &rows, true).await != before {
        world.violation("a statement that was refused changed something");
    }
}

/// Records the payments of rows that name none.
async fn resolve(world: &World, gateway: GatewayName) {
    let rows = SettlementRequest::Rows { is_suspended: true, after: None };
    let Some(Ok(SettlementReply::Rows { settled, .. })) = ask(world, rows, NEVER).await else { return };
    for SettledRow { row, .. } in settled.into_iter().filter(|it| it.gateway == gateway) {
        if let Some(payment) = payment_of(world, &row) {
            let (gateway, row) = (Some(gateway), row.id);
            let request = SettlementRequest::Resolve { gateway, row, payment, merchants_bear_costs: false };
            // The payment may not be known as paid yet.
            let _ = ask(world, request, "was not paid").await;
        }
    }
}

/// Leaves a new row out. Its payment must be listed as one that waits for it.
async fn leave_one_out(world: &World, gateway: GatewayName, rows: &[StatementRow]) {
    let new = import_as(world, gateway, rows, true).await;
    let new = rows.iter().zip(new).filter(|(row, is_new)| *is_new && row.kind == RowKind::Payment);
    let new: Vec<_> = new.filter_map(|(row, _)| Some((row, payment_of(world, row)?))).collect();
    let Some((left_out, payment)) = world.fate.choose(&new) else { return };
    let others: Vec<_> = rows.iter().filter(|row| row != left_out).cloned().collect();
    import(world, gateway, &others).await;
    let Some((store, _)) = world.around.database.current() else { return };
    let now = world.fate.now_millis();
    // A payment of a server whose clock was ahead is listed later.
    let is_due = |session: &Session| {
        session.review.is_none() && session.unsettled_since().is_some_and(|at| at.as_millis() < now)
    };
    let mut sessions = sessions(&store, gateway).into_iter();
    let is_due = sessions.find(|session| session.payment.id.as_str() == payment).is_some_and(|it| is_due(&it));
    drop(store);
    let waiting = SettlementRequest::Waiting { older_than_days: 0, after: None };
    if let Some(Ok(SettlementReply::Waiting { waiting, .. })) = ask(world, waiting, NEVER).await
        && is_due
        && waiting.iter().all(|it| it.payment.as_str() != payment)
    {
        world.violation(format!("{payment} is not listed, and no statement has row {}", left_out.id));
    }
}

/// The live sessions that were at a gateway last.
fn sessions(store: &EmbeddedStore, gateway: GatewayName) -> Vec<Session> {
    let sessions = store.each_session().filter_map(Result::ok);
    sessions.filter(|it| it.attempt.as_ref().is_some_and(|attempt| attempt.gateway == gateway)).collect()
}

/// Checks that the books owe what the gateway says, and that each row has its payment.
fn check(world: &World, gateway: GatewayName, rows: &[StatementRow]) {
    let Some((store, _)) = world.around.database.current() else { return world.violation("the database is down") };
    // Money that came twice waits for a person, and its row too.
    let sessions = sessions(&store, gateway);
    if sessions.iter().any(|session| session.review.is_some()) {
        return;
    }
    let settled = store.each("settled-row").filter_map(Result::ok);
    let settled = settled.filter_map(|(_, text)| serde_json::from_slice::<SettledRow>(&text).ok());
    let settled: Vec<SettledRow> = settled.filter(|it| it.gateway == gateway).collect();
    let (ours, others): (Vec<_>, Vec<_>) = settled.iter().partition(|it| it.payment.is_some());
    for it in others.iter().filter(|it| it.row.id != FOREIGN) {
        world.violation(format!("row {} of {gateway:?} has no payment", it.row.id));
    }
    let (currency, taken) = match gateway {
        STRIPE => {
            let books = world.around.stripe.books().into_iter().filter(|entry| entry.taken > 0);
            let left = |entry: Entry| {
                let Entry { amount_minor, refunded_minor, disputed_minor, kept_minor, .. } = entry;
                amount_minor.cast_signed() - (refunded_minor + disputed_minor + kept_minor).cast_signed()
            };
            (Currency::Usd, books.map(left).sum())
        }
        _ => {
            for session in sessions.iter().filter(|session| session.unsettled_since().is_some()) {
                world.violation(format!("{} waits for its row", session.payment.id));
            }
            (Currency::Bdt, rows.iter().filter(|row| row.id != FOREIGN).map(|row| row.net).sum::<i64>())
        }
    };
    // The platform will send these from its bank.
    let refunds = sessions.iter().flat_map(|session| session.payment.refunds.iter());
    let by_hand = refunds.filter(|it| it.status == RefundStatus::PendingSettlement);
    let by_hand: u64 = by_hand.map(|it| it.amount.as_minor()).sum();
    let owed = taken - by_hand.cast_signed() - ours.iter().map(|it| it.row.net).sum::<i64>();
    match store.clearing(gateway, currency) {
        Ok(clearing) if clearing == -i128::from(owed) => {}
        clearing => world.violation(format!("{gateway:?} owes {owed}, and its account has {clearing:?}")),
    }
    world.fate.count(|counts| counts.settled += ours.len() as u64);
}
