//! Whole servers in one thread: several of them on one database, with merchants, customers, an operator and the gateways.
//!
//! Time, randomness, disk and network are simulated, so a seed decides everything that happens, and a run with the same
//! seed is the same run. The HTTP server above its sockets is real, as are all use cases, rules and workers, the
//! gateways' clients, the layout of the store, and the embedded store's engine. There are no sockets, no TLS and no
//! PostgreSQL. [`journaled_tree::simulation`] replaces sled, and the tests' strict fakes replace the gateways.
//!
//! [`run`] plays one world and returns its violations. The tool `simulate` plays many.

mod ask;
mod backups;
mod bank;
mod check;
mod connection;
mod coverage;
mod customer;
mod dashboard;
mod database;
mod endpoints;
mod fate;
mod gateway_notices;
mod gateways;
mod life;
mod merchant;
mod node;
mod notes;
mod operator;
mod panics;
mod payouts;
mod settlements;
mod shop;
mod trace;
mod troubles;
mod unknown;
mod world;

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use tokio::{runtime::Builder, task::JoinSet, time::timeout};

use payments_server::parts::Reference;
use payments_store::planted::is_planted;
pub use payments_store::planted::{Planted, plant};

use self::{merchant::Merchant, world::World};

/// The setup of a world.
#[derive(Debug, Clone)]
pub struct Setup {
    /// Decides everything that is left to chance.
    pub seed: u64,
    /// How many servers work on the database.
    pub servers: usize,
    /// How many merchants there are, each with a key for each environment and several endpoints.
    pub merchants: usize,
    /// The merchants stop after this many requests...
    pub operations: u64,
    /// ...or after this many simulated seconds, whichever comes first.
    pub seconds: u64,
    /// The mean time between two requests of a merchant, in milliseconds.
    pub pace_millis: u64,
    /// What may go wrong.
    pub troubles: Vec<Trouble>,
}

/// A kind of trouble.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    /// A server is killed, and starts again.
    Kill,
    /// A server stands still for a while, and goes on.
    Stop,
    /// A server runs but does not reach the database for a while.
    Partition,
    /// The database accepts a server's connections and is silent for a while: each request waits until the server gives it up.
    SilentDatabase,
    /// The clock steps, forward or back.
    Clock,
    /// The database crashes, in the middle of a write or between two, with or without its power. Now and then only its
    /// journal and a backup are left.
    Database,
    /// Calls on files fail, or the disk is full.
    Disk,
    /// Requests to the database are late or lost, or their answers are.
    DatabaseLink,
    /// Requests to the API are lost, or their answers are.
    ClientLink,
    /// Webhooks are lost, or their answers are.
    EndpointLink,
    /// Calls of gateways fail, before or after their effect.
    GatewayLink,
    /// A gateway takes the money of an attempt after it had failed.
    LateMoney,
    /// A person refunds payments in the card processor's dashboard, and refunds take long or fail late.
    Dashboard,
    /// Customers' banks dispute payments.
    Disputes,
    /// All servers are down for more than a day. When they start, the gateways refuse their keys for a while.
    LongNight,
}

impl Trouble {
    /// All kinds of trouble.
    pub const ALL: [Self; 15] = [
        Self::Kill,
        Self::Stop,
        Self::Partition,
        Self::SilentDatabase,
        Self::Clock,
        Self::Database,
        Self::Disk,
        Self::DatabaseLink,
        Self::ClientLink,
        Self::EndpointLink,
        Self::GatewayLink,
        Self::LateMoney,
        Self::Dashboard,
        Self::Disputes,
        Self::LongNight,
    ];

    /// The trouble's name on the command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Kill => "kill",
            Self::Stop => "stop",
            Self::Partition => "partition",
            Self::SilentDatabase => "silent-database",
            Self::Clock => "clock",
            Self::Database => "database",
            Self::Disk => "disk",
            Self::DatabaseLink => "database-link",
            Self::ClientLink => "client-link",
            Self::EndpointLink => "endpoint-link",
            Self::GatewayLink => "gateway-link",
            Self::LateMoney => "late-money",
            Self::Dashboard => "dashboard",
            Self::Disputes => "disputes",
            Self::LongNight => "long-night",
        }
    }
}

/// How much happened.
#[derive(Debug, Clone, Default)]
pub struct Counts {
    /// Requests to the API, and how many were refused.
    pub operations: u64,
    /// Answers with a status from 400 on.
    pub refused: u64,
    /// Webhooks received.
    pub received: u64,
    /// Payments at the end.
    pub payments: u64,
    /// Payouts at the end, by status.
    pub payouts: BTreeMap<String, u64>,
    /// Rows of statements at the end that are payments' of ours.
    pub settled: u64,
    /// Endless loops of servers that ask the database.
    pub endless: u64,
    /// Troubles that struck.
    pub troubles: BTreeMap<Trouble, u64>,
    /// Backups that were made.
    pub backups: u64,
    /// How often the database was restored from a backup and its journal.
    pub restored: u64,
    /// What happened to payments, by kind.
    pub moves: BTreeMap<String, u64>,
    /// How often payments went from one internal status to another. Those that the rules allow and nobody saw have a zero.
    pub transitions: BTreeMap<String, u64>,
}

/// The outcome of a world.
#[derive(Debug)]
pub struct Outcome {
    /// The violations; none in a sound world.
    pub violations: Vec<String>,
    /// How much happened.
    pub counts: Counts,
    /// How much simulated time passed, in milliseconds.
    pub millis: u64,
    /// A hash of everything that happened. Two runs of one seed have the same.
    pub trace_hash: u64,
    /// The last things that happened, each a line.
    pub story: Vec<String>,
}

/// Plays a world on this thread.
///
/// # Errors
/// If the simulation itself cannot be made.
pub fn run(setup: &Setup) -> Result<Outcome, String> {
    // A gateway's client reads the system's certificates, which takes as long as a thousand requests.
    thread_local! {
        static HTTP: reqwest::Client = reqwest::Client::new();
        static REFERENCE: Arc<Reference> = Arc::new(Reference::new(node::BASE_URL));
    }
    panics::catch();
    let runtime = Builder::new_current_thread().enable_time().start_paused(true).build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    runtime.block_on(play(setup.clone(), HTTP.with(Clone::clone), REFERENCE.with(Arc::clone)))
}

/// How long a world may take to end once no trouble strikes any more.
const ENDS_WITHIN: Duration = Duration::from_secs(2 * 60 * 60);

async fn play(setup: Setup, http: reqwest::Client, reference: Arc<Reference>) -> Result<Outcome, String> {
    let world = World::new(setup, http, reference)?;
    troubles::set_clock_ahead(&world);
    let mut database = tokio::spawn(Arc::clone(&world.around.database).run());
    let story = async {
        for number in 0..world.setup.merchants {
            Merchant::arrive(&world, number).await;
        }
        world.fate.trouble(&world.setup.troubles);
        let mut troubles = JoinSet::new();
        troubles.spawn(troubles::strike(Arc::clone(&world)));
        troubles.spawn(operator::work(Arc::clone(&world)));
        troubles.spawn(gateway_notices::bring(Arc::clone(&world)));
        troubles.spawn(dashboard::work(Arc::clone(&world)));
        troubles.spawn(bank::work(Arc::clone(&world)));
        troubles.spawn(payouts::work(Arc::clone(&world)));
        troubles.spawn(settlements::work(Arc::clone(&world)));
        let mut merchants = JoinSet::new();
        for merchant in world.merchants() {
            merchants.spawn(merchant.trade(Arc::clone(&world)));
        }
        while let Some(ended) = merchants.join_next().await {
            if let Err(error) = ended {
                world.violation(format!("a merchant ended early: {error}"));
            }
        }
        let is_night = world.fate.strikes(Trouble::LongNight, 3);
        // Peace begins: no trouble strikes any more.
        world.fate.trouble(&[]);
        if is_night {
            troubles::long_night(&world).await;
        }
        troubles::mend(&world);
        if timeout(ENDS_WITHIN, check::until_quiet(&world)).await.is_err() {
            world.violation(format!("not everything ended within {} s of peace", ENDS_WITHIN.as_secs()));
            check::name_unfinished(&world);
        }
        settlements::finish(&world).await;
        check::check_keys(&world).await;
        check::check(&world);
        if world.fate.counts().endless > 0 {
            world.violation("a server asks the database without end");
        }
    };
    tokio::select! {
        biased;
        ended = &mut database => {
            world.violation(ended.unwrap_or_else(|error| format!("the database ended: {error}")));
        }
        () = story => {}
    }
    for what in panics::take() {
        world.violation(format!("a panic: {what}"));
    }
    let (counts, fate) = (world.fate.counts(), &world.fate);
    Ok(Outcome {
        violations: world.violations(),
        counts,
        millis: fate.elapsed_millis(),
        trace_hash: fate.trace_hash(),
        story: fate.story(),
    })
}
