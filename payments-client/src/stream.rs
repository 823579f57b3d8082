//! Streams of all items of a list.

use std::collections::{HashSet, VecDeque};

use futures_util::stream;
use payments_core::{Delivery, Page, Payment, PaymentPage};
use serde::de::DeserializeOwned;

use crate::{Client, Result, call::Call, platform::BoxStream, request::Request};

/// An item of a list.
pub trait Listed: DeserializeOwned + Send + Sync + 'static + sealed::Sealed {
    /// The item's id.
    fn id(&self) -> &str;
}

impl Listed for Payment {
    fn id(&self) -> &str {
        self.id.as_str()
    }
}

impl Listed for Delivery {
    fn id(&self) -> &str {
        self.id.as_str()
    }
}

mod sealed {
    pub trait Sealed {
        /// Whether a list of these items can be read from a given item.
        const HAS_CURSOR: bool;
    }
    impl Sealed for payments_core::Payment {
        const HAS_CURSOR: bool = true;
    }
    impl Sealed for payments_core::Delivery {
        const HAS_CURSOR: bool = false;
    }
}

/// How many ids a stream remembers, to skip repeated items.
const MAX_SEEN: usize = 10_000;
/// How many consecutive pages without new items end the stream.
const MAX_STALE_PAGES: u32 = 100;

impl Request<PaymentPage<Payment>> {
    /// Streams all payments from this part, newest first. Default: 100 payments per request. The stream sends requests only
    /// as payments are polled, and ends after an error.
    ///
    /// It continues after the last payment of each part. So it misses no payment that was there at the start and repeats
    /// none, even while payments arrive. A server before 0.3.0 has only pages, and payments with a status may leave them
    /// meanwhile.
    ///
    /// ```no_run
    /// use futures_util::TryStreamExt;
    /// # async fn all(client: payments_client::Client) -> Result<(), payments_client::Error> {
    /// let mut payments = client.payments().list().stream();
    /// while let Some(payment) = payments.try_next().await? {
    ///     println!("{} {}", payment.id, payment.amount);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn stream(self) -> BoxStream<'static, Result<Payment>> {
        let (client, call) = self.into_parts();
        stream_of(call.map(|call| Pages::new(client, call)))
    }
}

impl<T: Listed> Request<Page<T>> {
    /// Streams all items from this page, newest first. Default: 100 items per page. The stream sends requests only as items
    /// are polled, and ends after an error.
    ///
    /// New items shift older ones to later pages; the stream misses none of the older ones and skips repeated items by
    /// id. If more than a page of new items arrives between two requests, the stream may include some of them.
    ///
    /// ```no_run
    /// use futures_util::TryStreamExt;
    /// # async fn all(client: payments_client::Client) -> Result<(), payments_client::Error> {
    /// let mut deliveries = client.webhooks().deliveries().stream();
    /// while let Some(delivery) = deliveries.try_next().await? {
    ///     println!("{} {}", delivery.id, delivery.status);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn stream(self) -> BoxStream<'static, Result<T>> {
        let (client, call) = self.into_parts();
        stream_of(call.map(|call| Pages::new(client, call)))
    }
}

fn stream_of<T: Listed>(pages: Result<Pages<T>>) -> BoxStream<'static, Result<T>> {
    Box::pin(stream::try_unfold(pages, |pages| async move {
        let mut pages = pages?;
        Ok(pages.next().await?.map(|item| (item, Ok(pages))))
    }))
}

struct Pages<T> {
    client: Client,
    call: Box<Call>,
    page: u32,
    /// The item after which the next part begins, if the list has a cursor.
    after: Option<String>,
    has_cursor: bool,
    /// The list's `total` on the first page.
    first_total: Option<u64>,
    /// The number of repeated items.
    repeats: u64,
    /// The number of consecutive pages without new items.
    stale: u32,
    is_last: bool,
    buffered: VecDeque<T>,
    seen: HashSet<Box<str>>,
    order: VecDeque<Box<str>>,
}

impl<T: Listed> Pages<T> {
    fn new(client: Client, mut call: Box<Call>) -> Self {
        let page = call.query.iter().find(|(name, _)| *name == "page").and_then(|(_, page)| page.parse().ok());
        if !call.query.iter().any(|(name, _)| *name == "limit") {
            call.query.push(("limit".into(), "100".into()));
        }
        Self {
            client,
            call,
            page: page.unwrap_or(1),
            after: None,
            has_cursor: T::HAS_CURSOR,
            first_total: None,
            repeats: 0,
            stale: 0,
            is_last: false,
            buffered: VecDeque::new(),
            seen: HashSet::new(),
            order: VecDeque::new(),
        }
    }

    async fn next(&mut self) -> Result<Option<T>> {
        while self.buffered.is_empty() && !self.is_last {
            match self.after.clone() {
                Some(after) => self.ask("after", after),
                None if self.page > 1 => self.ask("page", self.page.to_string()),
                None => {}
            }
            let page: PaymentPage<T> = self.client.send(self.call.clone()).await?.value;
            if self.after.is_some() && page.total.is_some() {
                // This server does not know cursors: it has returned the first page again.
                (self.after, self.has_cursor) = (None, false);
                self.call.query.retain(|(name, _)| *name != "after");
            } else {
                self.take(page);
            }
        }
        Ok(self.buffered.pop_front())
    }

    /// Sets where the next request begins.
    fn ask(&mut self, name: &'static str, value: String) {
        self.call.query.retain(|(name, _)| !["page", "after"].contains(&name.as_ref()));
        self.call.query.push((name.into(), value));
    }

    fn take(&mut self, page: PaymentPage<T>) {
        let limit = usize::try_from(page.limit).unwrap_or(usize::MAX);
        let is_short = page.items.is_empty() || page.items.len() < limit;
        self.is_last = page.has_more.map_or(is_short, |has_more| !has_more);
        if self.has_cursor {
            let last = || page.items.last().map(|item| item.id().to_owned());
            let next = page.next.as_ref().map(ToString::to_string).or_else(last);
            self.is_last |= next.is_none() || next == self.after;
            self.after = next;
        }
        for item in page.items {
            if self.is_new(item.id()) {
                self.buffered.push_back(item);
            } else {
                self.repeats += 1;
            }
        }
        // Each new item causes one repeat. If there are more repeats, the server returns the same page again.
        let total = page.total.unwrap_or_default();
        let growth = total.saturating_sub(*self.first_total.get_or_insert(total));
        // Filters may exclude all items of a part.
        self.stale = if self.buffered.is_empty() && page.total.is_some() { self.stale + 1 } else { 0 };
        self.is_last |= self.stale > 0 && (self.repeats > growth || self.stale >= MAX_STALE_PAGES);
        match self.page.checked_add(1) {
            Some(next) => self.page = next,
            None => self.is_last = true,
        }
    }

    fn is_new(&mut self, id: &str) -> bool {
        let is_new = self.seen.insert(id.into());
        if is_new {
            self.order.push_back(id.into());
            if self.order.len() > MAX_SEEN
                && let Some(oldest) = self.order.pop_front()
            {
                self.seen.remove(&oldest);
            }
        }
        is_new
    }
}
