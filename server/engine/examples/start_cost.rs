//! How long a start takes after a number of records was written once, and after all of them were written again and again:
//!
//! ```sh
//! cargo run --release -p journaled-tree --example start_cost -- 1000000 10
//! ```
//!
//! writes a million records of 700 bytes, and then all of them ten times more in no order. It prints what the tree takes on the
//! disk and how long an opening takes, soon after the import and after each of the rewrites.

use std::{env, error::Error, fs, path::Path, time::Instant};

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
    let mut arguments = env::args().skip(1);
    let mut argument = || arguments.next().and_then(|text| text.parse().ok());
    let (Some(records), Some(rewrites)) = (argument(), argument()) else {
        return Err("how many records and rewrites?".into());
    };
    let directory = env::temp_dir().join(format!("start-cost-{}", std::process::id()));
    let mut random = fastrand::Rng::with_seed(1);
    let mut order: Vec<usize> = (0..records).collect();
    for round in 0..=rewrites {
        write(&directory, &order, &mut random)?;
        let held = fs::metadata(directory.join(TREE_DIRECTORY).join("db"))?.len();
        let begun = Instant::now();
        let (database, closing) = Options::new(&directory, Bytes).open()?;
        println!("{round:>3} rewrites: {:>6} MiB, opened in {:.2} s", held >> 20, begun.elapsed().as_secs_f64());
        drop(database);
        closing.wait();
        random.shuffle(&mut order);
    }
    fs::remove_dir_all(directory)?;
    Ok(())
}

/// Writes all records in this order, in one run of the engine.
fn write(directory: &Path, order: &[usize], random: &mut fastrand::Rng) -> Result<(), Box<dyn Error>> {
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
    drop(database);
    closing.wait();
    Ok(())
}
