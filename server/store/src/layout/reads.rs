//! Reads of one cell.

use std::ops::Range;

use serde::de::DeserializeOwned;

use super::head::Head;
use crate::{
    StoreError,
    bytes::{Bytes, Cell, KeyValue, with_prefix},
};

/// How many values of a scan are read at a time.
const PAGE: usize = 256;

#[derive(Clone, Copy)]
pub(super) struct Reads<'b> {
    bytes: &'b dyn Bytes,
    cell: Cell,
}

impl<'b> Reads<'b> {
    pub(super) fn new(bytes: &'b dyn Bytes, cell: Cell) -> Self {
        Self { bytes, cell }
    }

    pub(super) async fn get(self, keys: Vec<Vec<u8>>) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        if keys.is_empty() { Ok(Vec::new()) } else { self.bytes.get(self.cell, keys).await }
    }

    pub(super) async fn one(self, key: Vec<u8>) -> Result<Option<Vec<u8>>, StoreError> {
        Ok(self.get(vec![key]).await?.pop().flatten())
    }

    pub(super) async fn json<T: DeserializeOwned>(self, key: Vec<u8>) -> Result<Option<T>, StoreError> {
        let value = self.one(key.clone()).await?;
        value.map(|value| parse(&key, &value)).transpose()
    }

    /// The existing records under keys.
    pub(super) async fn records<T>(
        self,
        keys: Vec<Vec<u8>>,
        parse: impl Fn(&[u8], Vec<u8>) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let found = keys.clone().into_iter().zip(self.get(keys).await?);
        found.filter_map(|(key, record)| record.map(|record| parse(&key, record))).collect()
    }

    pub(super) async fn head(self, key: &[u8]) -> Result<Head, StoreError> {
        head_of(key, self.one(key.to_vec()).await?.as_deref())
    }

    pub(super) async fn range(self, keys: Range<Vec<u8>>, at_most: usize) -> Result<Vec<KeyValue>, StoreError> {
        self.found(keys, false, at_most).await?.into_iter().collect()
    }

    async fn found(
        self,
        keys: Range<Vec<u8>>,
        is_reversed: bool,
        at_most: usize,
    ) -> Result<Vec<Result<KeyValue, StoreError>>, StoreError> {
        if keys.is_empty() || at_most == 0 {
            return Ok(Vec::new());
        }
        self.bytes.range(self.cell, keys, is_reversed, at_most).await
    }

    pub(super) async fn all(self, keys: Range<Vec<u8>>) -> Result<Vec<KeyValue>, StoreError> {
        let mut scan = Scan::new(self, keys);
        let mut found = Vec::new();
        while let Some(entry) = scan.next().await? {
            found.push(entry);
        }
        Ok(found)
    }

    pub(super) async fn all_with(self, prefix: &[u8]) -> Result<Vec<KeyValue>, StoreError> {
        self.all(with_prefix(prefix)).await
    }
}

/// The values of a range one by one, read a page at a time.
pub(super) struct Scan<'b> {
    reads: Reads<'b>,
    rest: Option<Range<Vec<u8>>>,
    page: std::vec::IntoIter<Result<KeyValue, StoreError>>,
    is_reversed: bool,
    at_a_time: usize,
    /// How many values at the beginning of the rest are damaged, and were returned.
    returned: usize,
}

impl<'b> Scan<'b> {
    pub(super) fn new(reads: Reads<'b>, keys: Range<Vec<u8>>) -> Self {
        Self { reads, rest: Some(keys), page: Vec::new().into_iter(), is_reversed: false, at_a_time: PAGE, returned: 0 }
    }

    /// The same values, the last one first.
    pub(super) fn reversed(self) -> Self {
        Self { is_reversed: true, ..self }
    }

    /// The same values, read `at_a_time` at a time.
    pub(super) fn at_a_time(self, at_a_time: usize) -> Self {
        Self { at_a_time, ..self }
    }

    /// # Errors
    /// If the next value is damaged, or nothing can be read. The next calls return the values after a damaged one.
    pub(super) async fn next(&mut self) -> Result<Option<KeyValue>, StoreError> {
        loop {
            if let Some(entry) = self.page.next() {
                return entry.map(Some);
            }
            let Some(keys) = self.rest.take() else { return Ok(None) };
            let at_most = self.at_a_time + self.returned;
            let mut page = self.reads.found(keys.clone(), self.is_reversed, at_most).await?;
            let damaged = page.iter().rev().take_while(|value| value.is_err()).count();
            // A full page may not be the last one. A damaged value has no key, so the next page begins after the last readable one.
            let rest = (page.len() == at_most).then(|| match page.iter().rev().flatten().next() {
                Some((last, _)) if self.is_reversed => keys.start..last.clone(),
                Some((last, _)) => [&last[..], &[0]].concat()..keys.end,
                None => keys,
            });
            page.drain(..self.returned.min(page.len()));
            (self.rest, self.returned, self.page) = (rest, damaged, page.into_iter());
        }
    }
}

pub(super) fn parse<T: DeserializeOwned>(key: &[u8], value: &[u8]) -> Result<T, StoreError> {
    serde_json::from_slice(value).map_err(|error| StoreError::corrupt(key, error))
}

/// The head under a key; an empty one if there is none.
pub(super) fn head_of(key: &[u8], value: Option<&[u8]>) -> Result<Head, StoreError> {
    let Some(value) = value else { return Ok(Head::default()) };
    Head::decode(value).ok_or_else(|| StoreError::corrupt(key, "it is no head of lists and sums"))
}
