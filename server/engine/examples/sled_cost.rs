//! What sled takes for a record, by its key and its length, in batches of 128 and with the settings of this crate:
//!
//! ```sh
//! cargo run --release -p journaled-tree --example sled_cost -- 400000 s1400 r300
//! ```
//!
//! writes 400,000 pairs of records: one of 1,400 bytes under ordered keys (`s`), and one of 300 under random keys
//! (`r`). For each quarter it prints the microseconds for a pair, and at the end the bytes on the disk.

use std::{env, fs, time::Instant};

const BATCH: usize = 128;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = env::args().skip(1);
    let total: usize = arguments.next().ok_or("how many?")?.parse()?;
    let shapes = arguments
        .map(|shape| {
            let (kind, length) = shape.split_at_checked(1).ok_or("no shape")?;
            Ok((kind == "r", length.parse::<usize>()?))
        })
        .collect::<Result<Vec<_>, Box<dyn std::error::Error>>>()?;
    let directory = env::temp_dir().join(format!("sled-cost-{}", std::process::id()));
    let tree = sled::Config::new()
        .path(&directory)
        .cache_capacity(128 * 1024 * 1024)
        .segment_size(8 * 1024 * 1024)
        .flush_every_ms(None)
        .open()?;
    let mut random = fastrand::Rng::with_seed(1);
    let quarter = total / 4 / BATCH * BATCH;
    let mut begun = Instant::now();
    for first in (0..quarter * 4).step_by(BATCH) {
        let mut batch = sled::Batch::default();
        for nth in first..first + BATCH {
            for (shape, (is_random, length)) in shapes.iter().enumerate() {
                let mut key = format!("{shape}/dev_01a1fee0e5a47e88b46cb81208fa502f/test/").into_bytes();
                match is_random {
                    true => key.extend((0..32).map(|_| random.u8(..))),
                    false => key.extend(nth.to_be_bytes()),
                }
                let mut value = vec![0; *length];
                random.fill(&mut value);
                batch.insert(key, value);
            }
        }
        tree.apply_batch(batch)?;
        if (first + BATCH).is_multiple_of(quarter) {
            println!("{:>8}: {:.1} µs", first + BATCH, begun.elapsed().as_secs_f64() * 1e6 / quarter as f64);
            begun = Instant::now();
        }
    }
    tree.flush()?;
    let written: usize = shapes.iter().map(|(_, length)| length * quarter * 4).sum();
    let held = fs::metadata(directory.join("db"))?.len();
    println!("{} MiB of values, {} MiB on the disk", written >> 20, held >> 20);
    drop(tree);
    fs::remove_dir_all(directory)?;
    Ok(())
}
