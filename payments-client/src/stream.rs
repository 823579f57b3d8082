//! Everything on a list, page after page.

use std::collections::{HashSet, VecDeque};

use futures_util::stream::{self, BoxStream};
use payments_core::{Delivery, Page, Payment};
use serde::de::DeserializeOwned;

use crate::{Client, Result, call::Call, request::Request};

/// What lists are made of.
pub trait Listed: DeserializeOwned + Send + Sync + 'static + sealed::Sealed {
    /// What tells one item from another.
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
    pub trait Sealed {}
    impl Sealed for payments_core::Payment {}
    impl Sealed for payments_core::Delivery {}
}

/// New items push the others on to later pages, where they come again. So many are remembered.
const REMEMBERED: usize = 10_000;
/// So many pages in a row may hold nothing new before the list counts as over.
const STALE_PAGES: u32 = 100;

impl<T: Listed> Request<Page<T>> {
    /// Every item from this page on, newest first; 100 a page unless said otherwise. Nothing is sent before the first
    /// item is asked for, nor after the stream is dropped. It ends after an error.
    ///
    /// A list is newest first, so items that are new meanwhile push the others on to later pages: none is lost, and
    /// those that come again are known by their ids and left out. Where more than a page arrives
    /// between two requests, some of it may be among them. A
    /// [`status`](Request::status) makes a list that payments also leave, which pulls later ones forward, past the
    /// page that is asked for next: to miss none, read all and look at each one's status.
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
    pub fn stream(self) -> BoxStream<'static, Result<T>> {
        let (client, call) = self.into_parts();
        let walk = call.map(|call| Walk::new(client, call));
        Box::pin(stream::unfold(Some(walk), |walk| async move {
            let mut walk = match walk? {
                Ok(walk) => walk,
                Err(error) => return Some((Err(error), None)),
            };
            match walk.next().await {
                Ok(Some(item)) => Some((Ok(item), Some(Ok(walk)))),
                Ok(None) => None,
                Err(error) => Some((Err(error), None)),
            }
        }))
    }
}

struct Walk<T> {
    client: Client,
    call: Call,
    page: u32,
    /// How long the list was at first, and how many items came again since.
    first_total: Option<u64>,
    repeats: u64,
    stale: u32,
    over: bool,
    waiting: VecDeque<T>,
    seen: HashSet<Box<str>>,
    order: VecDeque<Box<str>>,
}

impl<T: Listed> Walk<T> {
    fn new(client: Client, mut call: Call) -> Self {
        let page = call.query.iter().find(|(name, _)| *name == "page").and_then(|(_, page)| page.parse().ok());
        if !call.query.iter().any(|(name, _)| *name == "limit") {
            call.query.push(("limit", "100".into()));
        }
        Self {
            client,
            call,
            page: page.unwrap_or(1),
            first_total: None,
            repeats: 0,
            stale: 0,
            over: false,
            waiting: VecDeque::new(),
            seen: HashSet::new(),
            order: VecDeque::new(),
        }
    }

    async fn next(&mut self) -> Result<Option<T>> {
        while self.waiting.is_empty() && !self.over {
            self.call.query.retain(|(name, _)| *name != "page");
            self.call.query.push(("page", self.page.to_string()));
            let page: Page<T> = self.client.send(self.call.clone()).await?.value;
            self.take(page);
        }
        Ok(self.waiting.pop_front())
    }

    fn take(&mut self, page: Page<T>) {
        let limit = usize::try_from(page.limit).unwrap_or(usize::MAX);
        self.over = page.items.is_empty() || page.items.len() < limit;
        for item in page.items {
            if self.is_new(item.id()) {
                self.waiting.push_back(item);
            } else {
                self.repeats += 1;
            }
        }
        // Each new item makes one other come again. Where more come again, the server repeats itself.
        let growth = page.total.saturating_sub(*self.first_total.get_or_insert(page.total));
        self.stale = if self.waiting.is_empty() { self.stale + 1 } else { 0 };
        self.over |= self.stale > 0 && (self.repeats > growth || self.stale >= STALE_PAGES);
        match self.page.checked_add(1) {
            Some(next) => self.page = next,
            None => self.over = true,
        }
    }

    fn is_new(&mut self, id: &str) -> bool {
        let is_new = self.seen.insert(id.into());
        if is_new {
            self.order.push_back(id.into());
            if self.order.len() > REMEMBERED
                && let Some(oldest) = self.order.pop_front()
            {
                self.seen.remove(&oldest);
            }
        }
        is_new
    }
}
