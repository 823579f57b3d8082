//! How long a start takes after a number of records was written once, and after all of them were written again and again:
//!
//! ```sh
//! cargo run --release -p journaled-tree --example start_cost -- 1000000 10
//! ```
//!
//! writes a million records of 700 bytes, and then all of them ten more times, in random order. After each time it
//! closes the database, and prints the tree's size on the disk and how long the next opening takes. With `killed` as
//! third argument it ends as if by `kill -9` instead.

use std::{
    env,
    error::Error,
    fs,
    path::Path,
    process::{self, Command},
    time::Instant,
};

use journaled_tree::{Layout, Options, TREE_DIRECTORY, TreeError};

const RECORD_BYTES: usize = 700;
/// How many records a change writes.
const AT_A_TIME: usize = 256;

struct Bytes;

impl Layout for Bytes {
    fn format(&self) -> u32 {
        1
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).and_then(|text| text.parse::<usize>().ok());
    let (Some(records), Some(rewrites)) = (number(0), number(1)) else {
        return Err("how many records and rewrites?".into());
    };
    let is_killed = arguments.get(2).is_some_and(|text| text == "killed");
    if let Some(directory) = arguments.get(3) {
        return write(Path::new(directory), records, rewrites, is_killed);
    }
    let directory = env::temp_dir().join(format!("start-cost-{}", process::id()));
    for round in 0..=rewrites {
        let mut writer = Command::new(env::current_exe()?);
        writer.args([&*records.to_string(), &*round.to_string(), if is_killed { "killed" } else { "closed" }]);
        writer.arg(&directory).status()?;
        let held = fs::metadata(directory.join(TREE_DIRECTORY).join("db"))?.len();
        let begun = Instant::now();
        let (database, closing) = Options::new(&directory, Bytes).open()?;
        println!("{round:>3} rewrites: {:>6} MiB, opened in {:.2} s", held >> 20, begun.elapsed().as_secs_f64());
        drop(database);
        closing.wait();
    }
    fs::remove_dir_all(directory)?;
    Ok(())
}

/// Writes all records in one run of the engine: in their order at first, and then in none.
fn write(directory: &Path, records: usize, round: usize, is_killed: bool) -> Result<(), Box<dyn Error>> {
    let mut random = fastrand::Rng::with_seed(round as u64);
    let mut order: Vec<usize> = (0..records).collect();
    if round > 0 {
        random.shuffle(&mut order);
    }
    let (database, closing) = Options::new(directory, Bytes).open()?;
    for numbers in order.chunks(AT_A_TIME) {
        let entries: Vec<_> = numbers
            .iter()
            .map(|number| {
                let mut value = vec![0; RECORD_BYTES];
                random.fill(&mut value);
                (format!("record/dev_01a1fee0e5a47e88b46cb81208fa502f/test/{number:020}"), value)
            })
            .collect();
        database.commit_blocking(move |view| -> Result<(), TreeError> {
            entries.into_iter().for_each(|(key, value)| view.put(key, value));
            Ok(())
        })?;
    }
    if is_killed {
        process::abort();
    }
    drop(database);
    closing.wait();
    Ok(())
}
