//! Imports the rows of gateways' statements into the platform's books.
//!
//! A first commit records for good where each row is booked. A second commit books the row in its payment's cell. So
//! a row that is imported twice counts once, and an import that was killed can be run again.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use futures_util::future::try_join_all;
use payments_core::{Currency, PaymentId, RawJson, Slot, Timestamp, TransactionId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{AdminReply, AdminRequest, Directory, Imported, Result, operator_text::invalid, retry_on_conflict};
use crate::{
    domain::{GatewayCost, GatewayName, MAX_SETTLED, Session, SettledRow, StatementRow},
    gateway::{self, Gateways, StatementPart},
    store::{BookingWrite, Change, PaymentWrite, Write},
};

/// How many rows a request has at most.
pub const MAX_ROWS: usize = 500;
/// How many days of payouts are read from a gateway's API.
const DAYS_READ: i64 = 60;
const MILLIS_A_DAY: i64 = 24 * 60 * 60 * 1000;

/// A command about settlements.
#[derive(Clone, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "action", rename_all = "snake_case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum SettlementRequest {
    /// Imports rows, or only checks whether it would refuse them.
    Import { gateway: GatewayName, rows: Vec<StatementRow>, is_check: bool, merchants_bear_costs: bool },
    /// Imports the rows of a file, or only counts them. The file has the gateway's columns or the plain ones.
    ImportFile {
        gateway: GatewayName,
        text: String,
        is_check: bool,
        #[serde(default)]
        merchants_bear_costs: bool,
    },
    /// Finds the payment of a row that has none.
    Resolve { gateway: Option<GatewayName>, row: String, payment: String, merchants_bear_costs: bool },
    /// A part of the imported rows, strictly after one: those without a payment, or those with one.
    Rows { is_suspended: bool, after: Option<(GatewayName, String)> },
    /// A part of the payments that wait for a row for longer than some days, strictly after one.
    Waiting { older_than_days: u16, after: Option<(Timestamp, PaymentId)> },
    /// A part of the rows of a gateway's own books, strictly after a place in them.
    Read { gateway: GatewayName, after: Option<String> },
}

/// The answer to a [`SettlementRequest`].
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(untagged, rename_all_fields = "camelCase")]
pub enum SettlementReply {
    /// The rows of an import or of a list, and which of them are new.
    Rows { settled: Vec<SettledRow>, new: Vec<bool>, next: Option<(GatewayName, String)> },
    /// What became of a file's rows.
    Imported { imported: Imported },
    /// The row after its resolution.
    Resolved { resolved: Box<SettledRow> },
    /// The payments that wait for a row.
    Waiting { waiting: Vec<WaitingRow>, next: Option<(Timestamp, PaymentId)> },
    /// Rows of a gateway's own books.
    Read { rows: Vec<StatementRow>, next: Option<String> },
}

/// A payment that waits for a row, for itself or for a refund.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WaitingRow {
    pub payment: PaymentId,
    pub gateway: GatewayName,
    /// Whether it waits for the row of a refund.
    pub is_refund: bool,
    /// In major units, exact.
    pub amount: String,
    pub currency: Currency,
    pub since: Timestamp,
}

/// The request with the setting of a running server.
pub(super) fn with_setting(mut request: AdminRequest, merchants_bear: bool) -> AdminRequest {
    if let AdminRequest::Settlements(
        SettlementRequest::Import { merchants_bear_costs, .. }
        | SettlementRequest::ImportFile { merchants_bear_costs, .. }
        | SettlementRequest::Resolve { merchants_bear_costs, .. },
    ) = &mut request
    {
        *merchants_bear_costs |= merchants_bear;
    }
    request
}

impl Directory {
    pub(super) async fn settlements(&self, gateways: &Gateways, request: SettlementRequest) -> Result<AdminReply> {
        let reply = match request {
            SettlementRequest::Import { gateway, rows, is_check, merchants_bear_costs } => {
                self.import(gateway, rows, is_check, merchants_bear_costs).await?
            }
            SettlementRequest::ImportFile { gateway, text, is_check, merchants_bear_costs } => {
                let imported = self.import_file(gateway, text, is_check, merchants_bear_costs).await?;
                SettlementReply::Imported { imported }
            }
            SettlementRequest::Resolve { gateway, row, payment, merchants_bear_costs } => {
                let settled = self.resolve_row(gateway, &row, &payment).await?;
                self.post(std::slice::from_ref(&settled), merchants_bear_costs).await?;
                SettlementReply::Resolved { resolved: Box::new(settled) }
            }
            SettlementRequest::Rows { is_suspended, after } => {
                let after = after.as_ref().map(|(gateway, id)| (*gateway, id.as_str()));
                let mut settled = self.store.settled_rows_after(after, is_suspended, MAX_ROWS).await?;
                let is_full = settled.len() == MAX_ROWS;
                let next = settled.last().filter(|_| is_full).map(|it| (it.gateway, it.row.id.clone()));
                settled.retain(|it| it.payment.is_none() == is_suspended);
                SettlementReply::Rows { settled, new: Vec::new(), next }
            }
            SettlementRequest::Waiting { older_than_days, after } => {
                let before = self.ambient.now().as_millis() - i64::from(older_than_days) * MILLIS_A_DAY;
                let before = Timestamp::from_millis(before).unwrap_or(Timestamp::UNIX_EPOCH);
                let after = after.as_ref().map(|(time, id)| (*time, id));
                let found = self.store.unsettled(before, after, MAX_ROWS).await?;
                let last = found.last().filter(|_| found.len() == MAX_ROWS);
                let next = last.map(|(time, session)| (*time, session.payment.id.clone()));
                let waiting = found.iter().filter_map(|(since, session)| waiting_row(*since, session)).collect();
                SettlementReply::Waiting { waiting, next }
            }
            SettlementRequest::Read { gateway, after } => {
                let title = gateway::title(gateway);
                let api = gateways.named(gateway).ok_or_else(|| {
                    invalid(format!("only a running server with credentials of {title} can ask it; or name a file"))
                })?;
                let since = self.ambient.now().as_millis() - DAYS_READ * MILLIS_A_DAY;
                let since = Timestamp::from_millis(since).unwrap_or(Timestamp::UNIX_EPOCH);
                let part = api.statement(since, after.as_deref()).await?;
                let StatementPart { rows, next } =
                    part.ok_or_else(|| invalid(format!("{title} has no API for settlements; name a file")))?;
                SettlementReply::Read { rows, next }
            }
        };
        Ok(AdminReply::Settlements { settlements: reply })
    }

    pub(super) async fn import(
        &self,
        gateway: GatewayName,
        rows: Vec<StatementRow>,
        is_check: bool,
        merchants_bear: bool,
    ) -> Result<SettlementReply> {
        if rows.len() > MAX_ROWS {
            return Err(invalid(format!("a request has at most {MAX_ROWS} rows")));
        }
        let rows = &rows;
        let (settled, new) = retry_on_conflict(|| async move {
            let (settled, new) = self.homes(gateway, rows).await?;
            let writes = settled.iter().zip(&new).filter(|(_, is_new)| **is_new);
            let writes: Vec<_> = writes.map(|(it, _)| Write::SettledRow(Box::new(it.clone()))).collect();
            if !is_check && !writes.is_empty() {
                self.commit(Change { writes, ..Change::default() }).await?;
            }
            Ok((settled, new))
        })
        .await?;
        if !is_check {
            self.post(&settled, merchants_bear).await?;
        }
        Ok(SettlementReply::Rows { settled, new, next: None })
    }

    /// Where each row is booked, and whether that is new. Refuses all rows if one of them cannot be.
    async fn homes(&self, gateway: GatewayName, rows: &[StatementRow]) -> Result<(Vec<SettledRow>, Vec<bool>)> {
        let known = self.store.settled_rows(gateway, rows.iter().map(|row| row.id.as_str())).await?;
        let unknown: Vec<&StatementRow> =
            rows.iter().zip(&known).filter(|(_, known)| known.is_none()).map(|(row, _)| row).collect();
        let names: BTreeSet<&str> = unknown.iter().flat_map(|row| row.references.iter().map(String::as_str)).collect();
        let names: Vec<&str> = names.into_iter().collect();
        let mut of_name: HashMap<&str, Vec<PaymentId>> = HashMap::new();
        let transactions: Vec<&str> = names.iter().copied().filter(|name| payment_in(name).is_none()).collect();
        let found = self.store.payments_at_gateway(gateway, &transactions).await?;
        of_name.extend(transactions.into_iter().zip(found));
        of_name.extend(names.into_iter().filter_map(|name| Some((name, vec![payment_in(name)?]))));
        let ids: BTreeSet<_> = of_name.values().flatten().cloned().collect();
        let sessions = self.store.sessions(&ids.into_iter().collect::<Vec<_>>()).await?;
        let sessions: HashMap<_, _> = sessions.into_iter().map(|it| (it.payment.id.clone(), it)).collect();
        let now = self.ambient.now();
        let (mut settled, mut new) = (Vec::new(), Vec::new());
        let (mut seen, mut added) = (HashMap::<&str, usize>::new(), HashMap::<PaymentId, usize>::new());
        for (nth, (row, known)) in rows.iter().zip(known).enumerate() {
            let first = seen.insert(&row.id, nth).and_then(|nth| settled.get(nth).cloned());
            let is_new = known.is_none() && first.is_none();
            let it = match known.or(first) {
                Some(known) if known.row != *row => return Err(invalid(another(&known, row))),
                Some(known) => known,
                None => {
                    let named = row.references.iter().filter_map(|name| sessions.get(&payment_in(name)?));
                    if let Some(at_other) = named.filter_map(|it| at_another(it, gateway)).next() {
                        return Err(invalid(format!("row {}: {at_other}", row.id)));
                    }
                    let of =
                        row.references.iter().find_map(|name| match of_name.get(name.as_str()).map(Vec::as_slice) {
                            Some([one]) => {
                                let added = added.get(one).copied().unwrap_or_default();
                                let has_room = |it: &Session| it.settled.len() + added < MAX_SETTLED;
                                sessions.get(one).filter(|it| is_of(it, gateway, name) && has_room(it))
                            }
                            _ => None,
                        });
                    if let Some(other) = of.filter(|it| it.payment.currency != row.currency) {
                        return Err(invalid(in_currency(row, other)));
                    }
                    let new = SettledRow::new(gateway, row.clone(), now);
                    match of {
                        Some(session) => {
                            *added.entry(session.payment.id.clone()).or_default() += 1;
                            new.of(session)
                        }
                        None => new,
                    }
                }
            };
            settled.push(it);
            new.push(is_new);
        }
        Ok((settled, new))
    }

    /// Books rows in the cells of their payments, except those that are booked.
    async fn post(&self, rows: &[SettledRow], merchants_bear: bool) -> Result<()> {
        let mut by_slot = BTreeMap::<Slot, BTreeMap<&PaymentId, Vec<&SettledRow>>>::new();
        for row in rows {
            if let Some(id) = &row.payment {
                by_slot.entry(id.slot()).or_default().entry(id).or_default().push(row);
            }
        }
        try_join_all(by_slot.values().map(|of_payments| {
            retry_on_conflict(move || async move {
                let ids: Vec<_> = of_payments.keys().map(|id| (*id).clone()).collect();
                let mut writes = Vec::new();
                for session in self.store.sessions(&ids).await? {
                    let rows = of_payments.get(&session.payment.id).map_or(&[][..], Vec::as_slice);
                    writes.extend(self.settled(&session, rows, merchants_bear)?);
                }
                if writes.is_empty() {
                    return Ok(());
                }
                Ok(self.commit(Change { writes, ..Change::default() }).await?)
            })
        }))
        .await?;
        Ok(())
    }

    /// The change of a payment that books its rows and their costs; `None` if all are booked.
    fn settled(&self, session: &Session, rows: &[&SettledRow], merchants_bear: bool) -> Result<Option<Write>> {
        let mut next = session.next();
        let created_at = self.ambient.now().max(session.payment.updated_at);
        let mut without_event = Vec::new();
        let mut book = |booking| {
            let id = TransactionId::new(session.payment.developer_id.slot(), created_at, self.ambient.id_bytes());
            without_event.push(BookingWrite { id, created_at, booking });
        };
        let mut is_changed = false;
        for row in rows {
            if !next.lacks_row(&row.row.id) {
                continue;
            }
            is_changed = true;
            next.settle(row).into_iter().for_each(&mut book);
            let cost = row.row.cost();
            if next.lacks_cost(&cost) {
                let cost = GatewayCost { row: cost.id, minor: cost.minor, is_of_merchant: merchants_bear };
                book(cost.booking());
                next.costs.push(cost);
            }
        }
        if !is_changed {
            return Ok(None);
        }
        let write = PaymentWrite::new(next, RawJson::of(&session.payment)?, None, None);
        Ok(Some(Write::Payment(Box::new(PaymentWrite { without_event, ..write }))))
    }

    /// Records that a row without a payment is this payment's.
    async fn resolve_row(&self, gateway: Option<GatewayName>, id: &str, payment: &str) -> Result<SettledRow> {
        retry_on_conflict(|| async {
            let session = self.records().session(payment).await?;
            let gateway = gateway.or(session.attempt.as_ref().map(|attempt| attempt.gateway));
            let gateway = gateway.ok_or_else(|| invalid(format!("payment {payment} was paid at no gateway")))?;
            let row = self.store.settled_rows(gateway, [id].into_iter()).await?.pop().flatten();
            let row =
                row.ok_or_else(|| invalid(format!("no statement of {} has row {id}", gateway::title(gateway))))?;
            if let Some(its) = &row.payment {
                // The same command again changes nothing.
                return match its.as_str() == payment && row.resolved_at.is_some() {
                    true => Ok(row),
                    false => Err(invalid(format!("row {id} is of payment {its} already"))),
                };
            }
            if !session.was_paid_at(gateway) {
                return Err(invalid(format!("payment {payment} was not paid at {}", gateway::title(gateway))));
            }
            if session.payment.currency != row.row.currency {
                return Err(invalid(in_currency(&row.row, &session)));
            }
            if !session.lacks_row(id) {
                return Err(invalid(format!("payment {payment} has too many settled rows")));
            }
            let resolved_at = Some(self.ambient.now());
            let settled = SettledRow { version: row.version + 1, resolved_at, ..row }.of(&session);
            self.commit(Change::of(Write::SettledRow(Box::new(settled.clone())))).await?;
            Ok(settled)
        })
        .await
    }
}

/// The payment that a name has in it: a payment's id, or our reference for an attempt, which begins with it.
fn payment_in(name: &str) -> Option<PaymentId> {
    let id = name.split('-').next().filter(|id| id.starts_with(PaymentId::PREFIX))?;
    id.parse().ok()
}

/// Whether a gateway that uses this name means this payment. An earlier attempt's money is not the payment's.
fn is_of(session: &Session, gateway: GatewayName, name: &str) -> bool {
    let Some(attempt) = session.attempt.as_ref().filter(|_| session.was_paid_at(gateway)) else { return false };
    let names = [Some(session.payment.id.as_str()), Some(attempt.invoice.as_str()), attempt.transaction.as_deref()];
    names.contains(&Some(name))
}

/// Says that a payment was paid at another gateway, if it was.
fn at_another(session: &Session, gateway: GatewayName) -> Option<String> {
    let at = session.attempt.as_ref().map(|attempt| attempt.gateway).filter(|at| *at != gateway)?;
    let (id, at, title) = (&session.payment.id, gateway::title(at), gateway::title(gateway));
    session
        .was_paid_at(session.attempt.as_ref()?.gateway)
        .then(|| format!("payment {id} was paid at {at}, not at {title}"))
}

fn waiting_row(since: Timestamp, session: &Session) -> Option<WaitingRow> {
    let payment = &session.payment;
    let is_refund = payment.paid_at != Some(since);
    let refund = payment.refunds.iter().find(|it| is_refund && it.created_at == since);
    let (id, gateway, currency) = (payment.id.clone(), session.attempt.as_ref()?.gateway, payment.currency);
    let amount = refund.map_or(payment.amount, |refund| refund.amount).to_string();
    Some(WaitingRow { payment: id, gateway, is_refund, amount, currency, since })
}

fn in_currency(row: &StatementRow, session: &Session) -> String {
    let (id, currency) = (&session.payment.id, session.payment.currency);
    format!("row {}: its currency is {}, and that of payment {id} is {currency}", row.id, row.currency)
}

/// What differs between a row and the one of its id that was imported.
fn another(known: &SettledRow, row: &StatementRow) -> String {
    let was = &known.row;
    let columns = [
        ("kind", was.kind == row.kind),
        ("reference", was.references == row.references),
        ("gross", was.gross == row.gross),
        ("fee", was.fee == row.fee),
        ("net", was.net == row.net),
        ("currency", was.currency == row.currency),
        ("date", was.date == row.date),
    ];
    let names: Vec<_> = columns.into_iter().filter(|(_, is_same)| !is_same).map(|(name, _)| name).collect();
    format!("row {}: it was imported with another {}", row.id, names.join(", "))
}
