//! The command line.

use clap::Parser;
use simulate::{Setup, Trouble};

/// Plays worlds of payments servers, one from each seed, and tells what went wrong.
#[derive(Debug, Clone, Parser)]
#[command(name = "simulate")]
pub(crate) struct Arguments {
    /// How many worlds to play, each from another seed: 100, or one if --seed is given.
    #[arg(long)]
    pub(crate) seeds: Option<u64>,
    /// The seed of the first world; a random one if it is not given.
    #[arg(long)]
    pub(crate) seed: Option<u64>,
    /// Print what happened last in each world.
    #[arg(long)]
    pub(crate) trace: bool,
    /// Print what the servers log, on standard error.
    #[arg(long)]
    pub(crate) log: bool,
    /// Servers of a world.
    #[arg(long, default_value_t = 3)]
    pub(crate) servers: usize,
    /// Merchants of a world.
    #[arg(long, default_value_t = 2)]
    pub(crate) merchants: usize,
    /// Requests after which the merchants stop.
    #[arg(long, default_value_t = 1_000)]
    pub(crate) operations: u64,
    /// Simulated seconds after which the merchants stop in any case.
    #[arg(long, default_value_t = 100_000)]
    pub(crate) seconds: u64,
    /// The mean time between two requests of a merchant, in milliseconds.
    #[arg(long, default_value_t = 600)]
    pub(crate) pace_millis: u64,
    /// How many worlds are played at once, each on a thread.
    #[arg(long, default_value_t = 1)]
    pub(crate) jobs: usize,
    /// Stop after this many real seconds, even if not all worlds were played.
    #[arg(long)]
    pub(crate) within_seconds: Option<u64>,
    /// Play each seed twice, and compare what happened.
    #[arg(long)]
    pub(crate) twice: bool,
    /// What may go wrong, separated by commas: all kinds by default.
    #[arg(long, value_delimiter = ',', value_parser = trouble)]
    pub(crate) troubles: Option<Vec<Trouble>>,
    /// Plant each known fault in the servers, or those whose description has these words, and see whether the worlds show it.
    #[arg(long, num_args = 0..=1, value_name = "WORDS")]
    pub(crate) planted: Option<Option<String>>,
    /// Stop after this many worlds have failed.
    #[arg(long, default_value_t = 3)]
    pub(crate) most_failures: usize,
    /// How long to look for a smaller world that fails as well, in seconds.
    #[arg(long, default_value_t = 60)]
    pub(crate) minimize_seconds: u64,
    /// How many of the last lines of a failing world to print.
    #[arg(long, default_value_t = 80)]
    pub(crate) lines: usize,
}

impl Arguments {
    /// The world of a seed.
    pub(crate) fn setup(&self, seed: u64) -> Setup {
        Setup {
            seed,
            servers: self.servers,
            merchants: self.merchants,
            operations: self.operations,
            seconds: self.seconds,
            pace_millis: self.pace_millis,
            troubles: self.troubles.clone().unwrap_or_else(|| Trouble::ALL.to_vec()),
        }
    }
}

fn trouble(name: &str) -> Result<Trouble, String> {
    let found = Trouble::ALL.into_iter().find(|trouble| trouble.name() == name);
    found.ok_or_else(|| format!("no such trouble; there are {}", Trouble::ALL.map(Trouble::name).join(", ")))
}
