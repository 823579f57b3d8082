//! Array parameters of statements, and the slots in a row of `cell`.

use std::{error::Error, ops::RangeInclusive};

use ::bytes::BytesMut;
use tokio_postgres::{
    Row,
    types::{IsNull, Kind, ToSql, Type, to_sql_checked},
};

/// A column of a statement that takes many rows: `bytea[]`, or `text[]` of UTF-8.
#[derive(Debug)]
pub(super) struct Column<'b>(pub(super) Vec<&'b [u8]>);

impl ToSql for Column<'_> {
    fn to_sql(&self, kind: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        let Kind::Array(element) = kind.kind() else { return Err("an array is needed".into()) };
        out.reserve(20 + self.0.iter().map(|bytes| 4 + bytes.len()).sum::<usize>());
        let count = u32::try_from(self.0.len())?;
        // One dimension, without nulls, with indexes from 1.
        for number in [1, 0, element.oid(), count, 1] {
            out.extend_from_slice(&number.to_be_bytes());
        }
        for bytes in &self.0 {
            out.extend_from_slice(&u32::try_from(bytes.len())?.to_be_bytes());
            out.extend_from_slice(bytes);
        }
        Ok(IsNull::No)
    }

    fn accepts(kind: &Type) -> bool {
        *kind == Type::BYTEA_ARRAY || *kind == Type::TEXT_ARRAY
    }

    to_sql_checked!();
}

/// The slots of a row of `cell`; `None` if a number is no slot.
pub(super) fn slots_of(row: &Row, first: usize) -> Result<Option<RangeInclusive<u16>>, tokio_postgres::Error> {
    let (first, last): (i32, i32) = (row.try_get(first)?, row.try_get(first + 1)?);
    Ok(u16::try_from(first).ok().zip(u16::try_from(last).ok()).map(|(first, last)| first..=last))
}
