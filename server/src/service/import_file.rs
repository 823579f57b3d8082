//! Imports a statement's file that a request carries, as `settlements import` does with a file of its machine.

use std::io::Cursor;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Directory, Result,
    operator_text::invalid,
    settlements::{MAX_ROWS, SettlementReply},
    statement::{SeenRows, Statement},
};
use crate::{
    domain::{GatewayName, SettledRow, StatementRow},
    gateway::{PLAIN, declared},
};

/// How many rows of a statement there are of each kind.
#[derive(Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Imported {
    /// With a payment of ours.
    pub matched: u64,
    /// Without one.
    pub theirs: u64,
    /// Of the matched ones, those with another amount.
    pub differing: u64,
    /// Imported before.
    pub known: u64,
}

impl Imported {
    pub fn add(&mut self, row: &SettledRow, is_new: bool) {
        self.known += u64::from(!is_new);
        self.differing += u64::from(row.ours.is_some());
        *(if row.payment.is_some() { &mut self.matched } else { &mut self.theirs }) += 1;
    }
}

impl Directory {
    /// Imports a file, or only counts its rows. First it looks whether one of them is refused.
    pub(super) async fn import_file(
        &self,
        gateway: GatewayName,
        text: String,
        is_check: bool,
        merchants_bear: bool,
    ) -> Result<Imported> {
        let rows = rows_of_file(gateway, text).map_err(invalid)?;
        let mut imported = Imported::default();
        for only_checks in [true, false].into_iter().filter(|only_checks| *only_checks || !is_check) {
            imported = Imported::default();
            for part in rows.chunks(MAX_ROWS) {
                let reply = self.import(gateway, part.to_vec(), only_checks, merchants_bear).await?;
                let SettlementReply::Rows { settled, new, .. } = reply else { continue };
                settled.iter().zip(new).for_each(|(row, is_new)| imported.add(row, is_new));
            }
        }
        Ok(imported)
    }
}

/// The rows of a file with the gateway's columns or the plain ones.
fn rows_of_file(gateway: GatewayName, text: String) -> Result<Vec<StatementRow>, String> {
    let own = declared(gateway.as_str()).and_then(|declared| declared.statement);
    let read = |columns| Statement::read(Cursor::new(text.clone()), columns);
    let mut file = match own {
        Some(own) => read(own).or_else(|fault| read(&PLAIN).map_err(|_| fault))?,
        None => read(&PLAIN)?,
    };
    let rows = file.next_rows(usize::MAX)?;
    let mut seen = SeenRows::default();
    rows.iter().try_for_each(|row| seen.add(row))?;
    Ok(rows)
}
