//! The troubles that strike servers and their database.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use tokio::time::sleep;

use super::{Trouble, life::Way, world::World};

/// The mean time between two troubles, in milliseconds. Requests have troubles of their own.
const MEAN_MILLIS: u64 = 20_000;

/// How far the clock is ahead at most when a world begins.
const TEN_HOURS_MILLIS: u64 = 36_000_000;

/// In some worlds the clock is ahead at the beginning, by seconds or by hours. It goes back when troubles strike, and at the
/// end.
pub(super) fn set_clock_ahead(world: &World) {
    if world.setup.troubles.contains(&Trouble::Clock) && world.fate.one_in(2) {
        let at_most = TEN_HOURS_MILLIS >> (4 * world.fate.number(0..=3));
        world.around.set_clock(world.fate.number(0..=at_most), 0);
    }
}

/// Lets troubles strike servers and database until it is cancelled.
pub(super) async fn strike(world: Arc<World>) {
    loop {
        world.fate.wait(0..=2 * MEAN_MILLIS).await;
        let Some(node) = world.fate.choose(&world.nodes) else { return };
        let node = Arc::clone(node);
        let (fate, world) = (Arc::clone(&world.fate), Arc::clone(&world));
        match fate.number(0..=10) {
            0..3 if fate.strikes(Trouble::Kill, 1) => {
                tokio::spawn(async move {
                    node.kill_soon().await;
                    fate.note(format_args!("server {} is killed", node.name));
                    fate.wait(300..=15_000).await;
                    fate.note(format_args!("server {} starts", node.name));
                    if let Err(what) = node.restart() {
                        world.violation(format!("a server does not start: {what}"));
                    }
                });
            }
            3 | 4 if fate.strikes(Trouble::Stop, 1) => {
                node.stop_soon();
                tokio::spawn(async move {
                    fate.wait(100..=25_000).await;
                    node.go_on();
                });
            }
            5 if fate.strikes(Trouble::Partition, 1) => {
                node.set_way(Way::Closed);
                tokio::spawn(async move {
                    fate.wait(500..=60_000).await;
                    node.set_way(Way::Open);
                    fate.shake();
                });
            }
            10 if fate.strikes(Trouble::SilentDatabase, 1) => {
                node.set_way(Way::Silent);
                tokio::spawn(async move {
                    fate.wait(500..=60_000).await;
                    node.set_way(Way::Open);
                    fate.shake();
                });
            }
            6 if fate.strikes(Trouble::Clock, 1) => {
                let ahead = world.around.ahead();
                if fate.one_in(2) {
                    world.around.set_clock(fate.number(0..=ahead), 0);
                } else {
                    let off = i64::try_from(fate.number(0..=60_000)).unwrap_or_default() - 30_000;
                    world.around.set_clock(ahead, off);
                }
            }
            7 | 8 if fate.strikes(Trouble::Database, 1) => world.around.database.crash_soon(),
            9 if fate.strikes(Trouble::Disk, 1) => {
                world.around.database.fail_disk();
                tokio::spawn(async move {
                    fate.wait(500..=20_000).await;
                    world.around.database.mend_disk();
                });
            }
            _ => {}
        }
        sleep(Duration::from_millis(1)).await;
    }
}

/// All servers are down for more than a day, in which money arrives late. Then the gateways refuse their keys for a while.
pub(super) async fn long_night(world: &World) {
    // By then, servers that were about to start have started.
    sleep(Duration::from_secs(60)).await;
    rest(world);
    world.nodes.iter().for_each(|node| node.kill());
    world.fate.wait(90_000_000..=110_000_000).await;
    world.around.stripe.forget_keys();
    for fake in world.around.fakes().into_iter().filter(|fake| fake.name() != "stripe") {
        for attempt in fake.books().into_iter().filter(|it| it.is_refused && it.taken == 0) {
            world.fate.note(format_args!("the money of {} arrives in the night", attempt.id));
            gateway_fakes::at(world.fate.now_seconds(), || fake.take_late(&attempt.id));
        }
    }
    world.around.is_closed.store(true, Ordering::Relaxed);
    mend(world);
    world.fate.wait(60_000..=1_200_000).await;
    world.around.is_closed.store(false, Ordering::Relaxed);
}

/// Lets the database make no more backups.
fn rest(world: &World) {
    for what in world.around.database.backups.rest() {
        world.violation(what);
    }
}

/// Makes everything work again, from now on.
pub(super) fn mend(world: &World) {
    world.fate.shake();
    world.around.set_clock(0, 0);
    world.around.database.mend_disk();
    rest(world);
    for node in &world.nodes {
        node.go_on();
        node.set_way(Way::Open);
        if let Err(what) = node.restart() {
            world.violation(format!("a server does not start: {what}"));
        }
    }
    world.hosts().values().for_each(|receiver| receiver.behave());
}
