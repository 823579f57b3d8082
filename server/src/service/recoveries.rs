//! Allows one recovery of an endpoint at a time. A request with the same parameters shares the answer of the running
//! recovery; any other request waits.

use std::{
    collections::{HashMap, hash_map::Entry},
    sync::Arc,
};

use parking_lot::Mutex;
use payments_core::{RecoverWebhook, Recovered, WebhookId};
use tokio::sync::watch;

/// The recoveries that run on this server.
#[derive(Default)]
pub struct Recoveries(Mutex<HashMap<WebhookId, Running>>);

/// A recovery that another request runs.
#[derive(Clone)]
pub(super) struct Running {
    params: RecoverWebhook,
    answer: watch::Receiver<Option<Recovered>>,
}

impl Running {
    /// Waits until the recovery ends. Returns its answer if both requests ask for the same.
    pub(super) async fn answer(mut self, params: &RecoverWebhook) -> Option<Recovered> {
        let ended = self.answer.wait_for(Option::is_some).await;
        // A recovery that failed leaves no answer.
        ended.ok()?.as_ref().filter(|_| self.params == *params).cloned()
    }
}

/// The recovery that this request runs. It ends when this is dropped.
pub(super) struct Recovery {
    recoveries: Arc<Recoveries>,
    endpoint: WebhookId,
    answer: watch::Sender<Option<Recovered>>,
}

impl Recovery {
    /// Ends the recovery and gives its answer to the requests that wait.
    pub(super) fn end(self, answer: Recovered) {
        self.answer.send_replace(Some(answer));
    }
}

impl Drop for Recovery {
    fn drop(&mut self) {
        self.recoveries.0.lock().remove(&self.endpoint);
    }
}

impl Recoveries {
    /// Begins a recovery, or returns the one that runs.
    pub(super) fn begin(self: &Arc<Self>, endpoint: &WebhookId, params: &RecoverWebhook) -> Result<Recovery, Running> {
        let mut running = self.0.lock();
        match running.entry(endpoint.clone()) {
            Entry::Occupied(running) => Err(running.get().clone()),
            Entry::Vacant(place) => {
                let (answer, asked) = watch::channel(None);
                place.insert(Running { params: params.clone(), answer: asked });
                Ok(Recovery { recoveries: Arc::clone(self), endpoint: endpoint.clone(), answer })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;
    use payments_core::Timestamp;

    use super::*;

    #[tokio::test]
    async fn an_equal_request_shares_the_answer_and_a_different_one_waits_for_the_end() {
        let (recoveries, endpoint) = (Arc::new(Recoveries::default()), "wh_1".parse().unwrap());
        let all = RecoverWebhook::since(Timestamp::UNIX_EPOCH);
        let other = all.clone().after("del_1".parse().unwrap());
        let first = recoveries.begin(&endpoint, &all).ok().unwrap();
        assert!(recoveries.begin(&"wh_2".parse().unwrap(), &all).is_ok());
        let running = || recoveries.begin(&endpoint, &all).err().unwrap();
        assert!(running().answer(&all).now_or_never().is_none());
        let (same, different) = (running(), running());
        first.end(Recovered::part(7, None));
        assert_eq!(same.answer(&all).await.map(|answer| answer.resent), Some(7));
        assert!(different.answer(&other).await.is_none());
        // A recovery that fails makes room for another.
        let failed = recoveries.begin(&endpoint, &all).ok().unwrap();
        let waiting = running();
        drop(failed);
        assert!(waiting.answer(&all).await.is_none());
        assert!(recoveries.begin(&endpoint, &all).is_ok());
    }
}
