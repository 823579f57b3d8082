//! Looking after the store on sled.

use std::path::PathBuf;

use async_trait::async_trait;
use payments_core::{PaymentId, Posting};

use super::{SledStore, check, deliveries, keys, stored::Stored};
use crate::{
    domain::{Outgoing, Session},
    store::{BackedUp, Checked, Each, Maintenance, MaintenanceError, StoreError},
};

#[async_trait]
impl Maintenance for SledStore {
    async fn back_up(&self, directory: PathBuf) -> Result<BackedUp, MaintenanceError> {
        let copier = self.copier.clone();
        let copied = tokio::task::spawn_blocking(move || copier.copy_to(&directory)).await;
        let copied = copied.map_err(|error| MaintenanceError(error.to_string()))?;
        copied.map_err(|error| MaintenanceError(error.to_string()))
    }

    fn keep_journal_after(&self, number: u64) {
        self.copier.retention.backed_up(number);
    }

    fn check(&self, progress: &mut dyn FnMut(u64)) -> Result<Checked, StoreError> {
        check::check(self.records.tree(), progress)
    }

    fn records(&self) -> u64 {
        self.records.tree().len() as u64
    }

    fn each_session(&self) -> Each<'_, Session> {
        Box::new(self.each::<Stored>(keys::SESSIONS).map(|stored| Ok(stored?.session)))
    }

    fn each_delivery(&self) -> Each<'_, Outgoing> {
        Box::new(self.records.under(keys::DELIVERIES).map(|entry| deliveries::of_entry(&self.records, entry)))
    }

    fn postings_of(&self, id: &PaymentId) -> Result<Vec<Vec<Posting>>, StoreError> {
        self.each(&keys::postings_of(id)).collect()
    }
}
