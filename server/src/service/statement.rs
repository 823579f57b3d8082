//! Reads a statement: a CSV file, row by row. An error names the row and the column.

use std::{
    collections::{HashMap, hash_map::RandomState},
    hash::BuildHasher as _,
    io::{Cursor, Read},
};

use csv::{ErrorKind, StringRecord, Trim};
use payments_core::{Amount, Currency, Day, text::is_one_line};

use crate::{
    domain::{RowKind, StatementRow},
    gateway::StatementColumns,
};

/// Maximum length of a row's id, and of a reference.
const MAX_ID_BYTES: usize = 100;

/// A file, and where each part of its rows is.
pub struct Statement {
    reader: csv::Reader<Box<dyn Read + Send>>,
    columns: &'static StatementColumns,
    header: StringRecord,
    places: Places,
}

/// The positions of the columns.
struct Places {
    id: usize,
    kind: Option<usize>,
    references: Vec<usize>,
    gross: usize,
    fee: Option<usize>,
    net: Option<usize>,
    currency: Option<usize>,
    date: usize,
}

impl Places {
    /// The positions in a header, or the name of a column that it lacks.
    fn in_header(columns: &StatementColumns, header: &StringRecord) -> Result<Self, &'static str> {
        let find = |names: &[&str]| header.iter().position(|cell| names.iter().any(|name| plain(name) == plain(cell)));
        let need = |names: &'static [&'static str]| find(names).ok_or(names.first().copied().unwrap_or_default());
        let places = Self {
            id: need(columns.id)?,
            kind: if columns.other_kind.is_none() { Some(need(columns.kind)?) } else { find(columns.kind) },
            references: columns.references.iter().filter_map(|names| find(names)).collect(),
            gross: need(columns.gross)?,
            fee: columns.fee.and_then(find),
            net: columns.net.and_then(find),
            currency: columns.currency.and_then(find),
            date: need(columns.date)?,
        };
        if places.references.is_empty() {
            return Err(columns.references.iter().flat_map(|names| names.iter()).next().copied().unwrap_or_default());
        }
        if places.fee.is_none() && places.net.is_none() {
            return Err(columns.net.or(columns.fee).and_then(|names| names.first()).copied().unwrap_or_default());
        }
        if columns.other_kind.is_none() && places.currency.is_none() {
            return Err("currency");
        }
        Ok(places)
    }
}

impl Statement {
    pub fn read(mut file: impl Read + Send + 'static, columns: &'static StatementColumns) -> Result<Self, String> {
        let mut begin = Vec::new();
        (&mut file).take(3).read_to_end(&mut begin).map_err(|error| error.to_string())?;
        if begin.starts_with(&[0xff, 0xfe]) || begin.starts_with(&[0xfe, 0xff]) || begin.contains(&0) {
            return Err("the file is UTF-16; save it as CSV in UTF-8".to_owned());
        }
        if begin == [0xef, 0xbb, 0xbf] {
            begin.clear();
        }
        let file: Box<dyn Read + Send> = Box::new(Cursor::new(begin).chain(file));
        let mut reader = csv::ReaderBuilder::new().trim(Trim::All).from_reader(file);
        let header = reader.headers().map_err(|error| csv_error(&error))?.clone();
        let places = Places::in_header(columns, &header).map_err(|missing| {
            let other = StatementColumns::all().find(|it| Places::in_header(it, &header).is_ok());
            let advice = other.map_or_else(
                || format!("it has {}", header.iter().collect::<Vec<_>>().join(", ")),
                |it| format!("its columns are those of --columns {}", it.name),
            );
            format!("the file has no column {missing:?}; {advice}")
        })?;
        Ok(Self { reader, columns, header, places })
    }

    /// At most `at_most` rows; none at the end.
    pub fn next_rows(&mut self, at_most: usize) -> Result<Vec<StatementRow>, String> {
        let mut rows = Vec::new();
        let mut record = StringRecord::new();
        while rows.len() < at_most {
            match self.reader.read_record(&mut record) {
                Ok(true) => rows.push(self.row(&record).map_err(|it| it.in_file(&record, &self.header))?),
                Ok(false) => break,
                Err(error) => return Err(csv_error(&error)),
            }
        }
        Ok(rows)
    }

    fn row(&self, record: &StringRecord) -> Result<StatementRow, Fault> {
        let Self { columns, places, .. } = self;
        let text = |place: usize| record.get(place).unwrap_or_default();
        let fault = |place: usize, what: &str| Fault { place, what: what.to_owned() };
        let minor = |place: usize| {
            minor_of(text(place)).ok_or_else(|| fault(place, "is no amount with at most two decimals, such as 1250.50"))
        };
        let id = text(places.id);
        if id.is_empty() || id.len() > MAX_ID_BYTES || !id.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(fault(places.id, "must be 1 to 100 letters, digits and signs"));
        }
        let kind = match places.kind {
            Some(place) => {
                let word = text(place).to_lowercase();
                let known = columns.kinds.iter().find(|(name, _)| *name == word).map(|(_, kind)| *kind);
                let names = columns.kinds.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
                known.or(columns.other_kind).ok_or_else(|| fault(place, &format!("must be one of {names}")))?
            }
            None => RowKind::Payment,
        };
        let mut references: Vec<String> = Vec::new();
        for place in &places.references {
            let name = text(*place);
            if name.len() > MAX_ID_BYTES || !is_one_line(name) && !name.is_empty() {
                return Err(fault(*place, "must be one line of at most 100 bytes"));
            }
            if !name.is_empty() && !references.iter().any(|it| it == name) {
                references.push(name.to_owned());
            }
        }
        let optional = |place: Option<usize>| place.filter(|place| !text(*place).is_empty()).map(minor).transpose();
        let (mut gross, fee, mut net) = (minor(places.gross)?, optional(places.fee)?, optional(places.net)?);
        if columns.takes_without_sign && matches!(kind, RowKind::Refund | RowKind::Dispute | RowKind::Fee) && gross > 0
        {
            (gross, net) = (-gross, net.map(|net| -net.abs()));
        }
        let fee = fee.or(net.map(|net| gross - net)).unwrap_or_default();
        let net = net.unwrap_or(gross - fee);
        if net != gross - fee {
            return Err(fault(places.net.unwrap_or(places.gross), "is not the gross less the fee"));
        }
        let currency = match places.currency {
            Some(place) => {
                text(place).parse().map_err(|_| fault(place, "is a currency that this server does not have"))?
            }
            None => Currency::Bdt,
        };
        let date = text(places.date).get(..10).and_then(|date| date.parse::<Day>().ok());
        let date = date.ok_or_else(|| fault(places.date, "must begin with a date, such as 2026-03-01"))?;
        Ok(StatementRow { id: id.to_owned(), kind, references, gross, fee, net, currency, date })
    }
}

/// The rows of a statement so far, to find an id that is there twice with different content.
#[derive(Default)]
pub struct SeenRows {
    hasher: RandomState,
    contents: HashMap<u64, u64>,
}

impl SeenRows {
    pub fn add(&mut self, row: &StatementRow) -> Result<(), String> {
        let content = self.hasher.hash_one(row);
        match *self.contents.entry(self.hasher.hash_one(&row.id)).or_insert(content) == content {
            true => Ok(()),
            false => Err(format!("row {} is there twice, with different content", row.id)),
        }
    }
}

/// What is wrong with a cell.
struct Fault {
    place: usize,
    what: String,
}

impl Fault {
    fn in_file(&self, record: &StringRecord, header: &StringRecord) -> String {
        let line = record.position().map_or(0, csv::Position::line);
        let (column, cell) = (header.get(self.place), record.get(self.place));
        format!("line {line}, column {:?}: {:?} {}", column.unwrap_or_default(), cell.unwrap_or_default(), self.what)
    }
}

pub fn csv_error(error: &csv::Error) -> String {
    let line = error.position().map_or(1, csv::Position::line);
    match error.kind() {
        ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("line {line} has {len} columns, and the header has {expected_len}")
        }
        ErrorKind::Utf8 { .. } => format!("line {line} is not UTF-8; save the file as CSV in UTF-8"),
        _ => error.to_string(),
    }
}

/// A column's name without capitals, spaces and signs.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|char| char.to_ascii_lowercase()).collect()
}

/// The minor units of an amount. Its groups of digits may have commas, as in 1,250.50 and 1,00,000.
fn minor_of(text: &str) -> Option<i64> {
    let (sign, text) = text.strip_prefix('-').map_or((1, text), |rest| (-1, rest));
    let (whole, decimals) = text.split_once('.').unwrap_or((text, ""));
    let mut groups = whole.split(',');
    let first = groups.next()?;
    let others: Vec<&str> = groups.collect();
    let is_grouped = others.split_last().is_none_or(|(last, others)| {
        last.len() == 3 && (1..=3).contains(&first.len()) && others.iter().all(|it| (2..=3).contains(&it.len()))
    });
    let (shown, rest) = decimals.split_at_checked(decimals.len().min(2))?;
    let digits: String = [first].into_iter().chain(others).collect();
    let is_number =
        !digits.is_empty() && [&*digits, shown].iter().all(|it| it.bytes().all(|byte| byte.is_ascii_digit()));
    if !is_grouped || !is_number || !rest.bytes().all(|byte| byte == b'0') {
        return None;
    }
    let minor = format!("{digits}{shown:0<2}").parse::<i64>().ok()?;
    (minor.unsigned_abs() <= Amount::MAX.as_minor()).then_some(sign * minor)
}

#[cfg(test)]
mod tests;
