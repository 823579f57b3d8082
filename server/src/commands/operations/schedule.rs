//! Scheduled backups.

use std::{sync::Arc, time::Duration};

use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::{
    ambient::Ambient,
    service::LastBackup,
    store::{Series, Store},
};

/// Makes backups forever, the first one when it is due. The store keeps its journal since the oldest backup. So `restore`
/// recovers every acknowledged change, and the state at any moment since then.
pub async fn back_up_regularly(store: Arc<Store>, ambient: Arc<dyn Ambient>, series: Series, last: Arc<LastBackup>) {
    let Some(store) = store.backups() else {
        tracing::error!("this store does not support backups; start without --backup-dir");
        return;
    };
    let due_in = match store.take_up(&series, ambient.now()) {
        Ok(taken_up) => {
            if let [first, ..] = &taken_up.others[..] {
                tracing::warn!(
                    others = taken_up.others.len(), first = %first.display(),
                    "the directory has backups of other stores, or of this one before a restore, which the server never \
                     removes; remove those that you no longer need"
                );
            }
            taken_up.due_in
        }
        Err(error) => {
            tracing::error!(%error, "the directory for backups cannot be used; the server keeps its whole journal");
            Duration::ZERO
        }
    };
    last.made_before(series.every.saturating_sub(due_in), ambient.now());
    let mut ticks = interval_at(Instant::now() + due_in, series.every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        match store.back_up_next(&series, ambient.now()).await {
            Ok(made) => {
                last.made_before(Duration::ZERO, ambient.now());
                tracing::info!(directory = %made.directory.display(), to = made.to, "backed up");
            }
            Err(error) => tracing::error!(%error, "backup failed; the next one runs on schedule"),
        }
    }
}
