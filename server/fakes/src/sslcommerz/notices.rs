//! Notices (IPN), which are sent to the merchant or kept for a test.

use std::{pin::Pin, time::Duration};

use tokio::sync::watch;

use crate::Form;

/// Maximum number of kept notices.
const MOST_KEPT: usize = 1_000;
/// How long the merchant may take to answer a notice.
const TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug, Default)]
pub(super) struct Notices {
    /// The notices that are kept instead of sent.
    pub(super) kept: Option<Vec<Notice>>,
    /// Of each notice that is being sent. Its sender ends with it.
    under_way: Vec<watch::Receiver<()>>,
}

/// A notice as it is sent: a form by POST.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// The merchant's address.
    pub url: String,
    /// The fields.
    pub form: Form,
}

impl Notice {
    /// The body.
    #[must_use]
    pub fn body(&self) -> String {
        url::form_urlencoded::Serializer::new(String::new()).extend_pairs(self.form.iter()).finish()
    }

    async fn post(self) {
        let Ok(http) = reqwest::Client::builder().no_proxy().timeout(TIMEOUT).build() else { return };
        let request = http.post(&self.url).header("content-type", "application/x-www-form-urlencoded");
        // Whether SSLCommerz sends a notice again is not known; the fake does it on request.
        let _ = request.body(self.body()).send().await;
    }
}

impl Notices {
    pub(super) fn send(&mut self, notice: Notice) {
        if let Some(kept) = &mut self.kept {
            if kept.len() < MOST_KEPT {
                kept.push(notice);
            }
            return;
        }
        let (end, ended) = watch::channel(());
        self.under_way.retain(|ended| ended.has_changed().is_ok());
        self.under_way.push(ended);
        tokio::spawn(async move {
            notice.post().await;
            drop(end);
        });
    }

    /// Ends when the merchant has answered the notices that were sent.
    pub(super) fn sent(&self) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        let under_way = self.under_way.clone();
        Box::pin(async {
            for mut notice in under_way {
                while notice.changed().await.is_ok() {}
            }
        })
    }
}
