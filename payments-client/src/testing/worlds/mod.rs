//! Histories of payments, decided by seeds, against a merchant's shop.

mod api;
mod history;
mod input;
mod moves;
mod shrink;
mod words;
mod world;

use std::{fmt, panic::AssertUnwindSafe, time::Duration};

use futures_util::FutureExt as _;

pub(crate) use self::api::Api;
use self::{history::History, shrink::quiet};
pub use self::{
    input::{Input, Order, PlacedOrder, Return, Truth, Webhook},
    world::World,
};
use crate::{inbox::BoxError, platform};

/// Plays histories of payments to a shop, and checks after each what the shop made of it. A seed decides each history:
///
/// - What happens to payments, by the API's own transitions: attempts, late payments, refunds of parts, failed refunds, disputes.
/// - How the shop hears of it: each webhook once, twice, out of order, hours late or never, with a wrong or an old signature,
///   with another event's name in its header; browsers that lie.
/// - What fails: the shop is cut off at any await, handles two inputs at once, and its requests get 429, 503, half a body or no
///   connection.
///
/// No server runs and no socket is opened, so a thousand worlds of a small shop take seconds.
///
/// ```
/// use std::{collections::BTreeSet, sync::Mutex};
///
/// use futures_util::TryStreamExt;
/// use payments_client::{
///     Client, CreatePayment, Event, EventKind,
///     inbox::BoxError,
///     testing::{Input, World, WorldFailure, Worlds},
///     webhook::{Secret, Verifier},
/// };
///
/// struct Shop {
///     client: Client,
///     verifier: Verifier,
///     shipped: Mutex<BTreeSet<String>>, // A real shop has a database.
/// }
///
/// impl Shop {
///     fn new(world: &World) -> Result<Self, BoxError> {
///         let verifier = Verifier::new(Secret::new(world.secret())?);
///         Ok(Self { client: world.client(), verifier, shipped: Mutex::default() })
///     }
///
///     async fn handle(&self, input: Input) -> Result<(), BoxError> {
///         match input {
///             Input::Order(order) => {
///                 let params = CreatePayment::of(order.money)
///                     .success_url("https://shop.example/paid")
///                     .cancel_url("https://shop.example/cart")
///                     .unique_merchant_transaction_id(&order.number);
///                 self.client.payments().create(params).idempotency_key(order.number).await?;
///             }
///             Input::Webhook(webhook) => {
///                 let verified = self.verifier.verify(&webhook.signature, &webhook.body)?;
///                 self.apply(&Event::from_verified(verified)?)?;
///             }
///             Input::Tick => {
///                 let mut events = self.client.events().stream_since(None);
///                 while let Some(event) = events.try_next().await? {
///                     self.apply(&event)?;
///                 }
///             }
///             _ => {} // The browser proves nothing.
///         }
///         Ok(())
///     }
///
///     fn apply(&self, event: &Event) -> Result<(), BoxError> {
///         if *event.kind() == EventKind::PaymentCompleted {
///             self.shipped.lock().unwrap().insert(event.payment()?.merchant_transaction_id);
///         }
///         Ok(())
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), WorldFailure> {
/// Worlds::new()
///     .count(100)
///     .run(async |world| {
///         let shop = Shop::new(&world)?;
///         world.play(|input| shop.handle(input)).await?;
///         for order in world.truth().orders {
///             let is_shipped = shop.shipped.lock().unwrap().contains(&order.number);
///             if is_shipped != order.was_paid() {
///                 return Err(format!("{}: paid {}, shipped {is_shipped}", order.number, order.was_paid()).into());
///             }
///         }
///         Ok(())
///     })
///     .await
/// # }
/// ```
///
/// A failure says its seed and the shortest history found that still fails. [`Worlds::seed`] replays it. A database on a thread
/// of its own is not cut at exactly the same await each time, so a failure of its shop may take several replays.
///
/// What worlds do not cover:
///
/// - Routes other than those for payments, refunds, events and the account: a shop that asks for another one fails.
/// - Test payments, payouts, and a rate limit that lasts.
/// - A webhook that is sent again because the shop refused it; see [`webhooks_arrive`](Self::webhooks_arrive).
/// - A crash within a statement of the database, and what a shop keeps in memory; see [`World::play`].
/// - Time: only the client's and the API's is the world's. A shop that waits, or reads a clock other than [`World::now`], does so
///   in real time, and signatures have the machine's time.
/// - The shop's HTTP and its load. For those, use [`TestServer`](super::TestServer).
#[derive(Debug, Clone)]
#[must_use = "worlds do nothing until `run`"]
pub struct Worlds {
    first: u64,
    count: u64,
    webhooks_arrive: bool,
}

impl Default for Worlds {
    fn default() -> Self {
        Self { first: 1, count: 200, webhooks_arrive: false }
    }
}

impl Worlds {
    /// 200 worlds, of the seeds 1 to 200.
    pub fn new() -> Self {
        Self::default()
    }

    /// The world of one seed.
    pub fn seed(seed: u64) -> Self {
        Self { first: seed, count: 1, ..Self::default() }
    }

    /// Sets how many worlds there are.
    pub fn count(self, worlds: u64) -> Self {
        Self { count: worlds, ..self }
    }

    /// Lets each webhook arrive once more at the end of each world, as if the endpoint had retries and enough of them. For shops
    /// that never ask the API.
    pub fn webhooks_arrive(self) -> Self {
        Self { webhooks_arrive: true, ..self }
    }

    /// Runs the shop in each world. `shop` builds the shop, [plays](World::play) the world to it, and returns an error if the
    /// shop's state is not that of the world's [truth](World::truth). It may also panic.
    ///
    /// # Errors
    /// The first world that fails.
    pub async fn run(self, shop: impl AsyncFn(World) -> Result<(), BoxError>) -> Result<(), WorldFailure> {
        let http = platform::http("worlds".into(), Duration::from_secs(1), true);
        let broken =
            |error: reqwest::Error| WorldFailure { seed: self.first, error: error.to_string(), history: Vec::new() };
        let http = http.map_err(broken)?;
        for seed in self.first..self.first.saturating_add(self.count) {
            let history = History::of(seed);
            let fails = async |history: &History| {
                let world = match World::new(seed, history.clone(), http.clone(), self.webhooks_arrive) {
                    Ok(world) => world,
                    Err(error) => return Some(error.to_string()),
                };
                let outcome = AssertUnwindSafe(quiet(shop(world.clone())));
                let outcome = outcome.catch_unwind().await;
                match (world.unknown_route(), outcome) {
                    (Some(route), _) => Some(format!("the shop asked for {route}, which worlds do not answer")),
                    (None, Ok(outcome)) => outcome.err().map(|error| error.to_string()),
                    (None, Err(panic)) => Some(said(&*panic)),
                }
            };
            if let Some(error) = fails(&history).await {
                let (history, error) = shrink::shortest(history, error, fails).await;
                return Err(WorldFailure { seed, error, history: history.words() });
            }
        }
        Ok(())
    }
}

fn said(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    text.unwrap_or("the shop panicked").to_owned()
}

/// A world that the shop failed. `Debug` shows it as `Display` does, so a test can return it.
#[derive(Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WorldFailure {
    /// The world's seed.
    pub seed: u64,
    /// What the shop's assertion said.
    pub error: String,
    /// The shortest history found that still fails, in words.
    pub history: Vec<String>,
}

impl fmt::Display for WorldFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "the shop fails in the world of seed {}: {}", self.seed, self.error)?;
        for (step, words) in self.history.iter().enumerate() {
            writeln!(f, "{:>4}. {words}", step + 1)?;
        }
        write!(f, "Replay it with Worlds::seed({}) in place of Worlds::new()", self.seed)
    }
}

impl fmt::Debug for WorldFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for WorldFailure {}
