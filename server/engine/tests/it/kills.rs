//! Kills: a process that commits is killed at any moment, starts included, over and over on the same directory.
//!
//! `KILLS` says how often.

use std::{
    io::{BufRead as _, BufReader},
    process::Stdio,
    sync::mpsc,
    thread,
    time::Duration,
};

use crate::workload::{ARGUMENTS, Model, acknowledged, check_and_go_on, in_memory, process, this_program};

#[tokio::test]
async fn kills_at_any_moment_lose_nothing_acknowledged() {
    let kills: u64 = std::env::var("KILLS").map_or(30, |text| text.parse().unwrap());
    let directory = in_memory();
    let (mut model, mut count) = (Model::default(), 0);
    for kill in 0..kills {
        let mut command = process(this_program(), directory.path(), 1_000_000, false);
        let mut process = command.args(ARGUMENTS).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let (answers, first) = mpsc::channel();
        let reader = thread::spawn(move || {
            let numbers = lines.map_while(Result::ok).filter_map(|line| acknowledged(&line));
            // Nobody waits for the later ones.
            numbers.inspect(|number| _ = answers.send(*number)).max()
        });
        // Every second kill may come before the first commit; the others come after it, however slow the machine is.
        if kill % 2 > 0 {
            first.recv_timeout(Duration::from_secs(60)).unwrap();
        }
        thread::sleep(Duration::from_millis(kill * 37 % 250));
        process.kill().unwrap();
        process.wait().unwrap();
        let last = reader.join().unwrap().unwrap_or(count);
        // Every third start finds what two kills left.
        if kill % 3 > 0 {
            count = check_and_go_on(&directory.path().join("data"), &mut model, &format!("kill {kill}")).await + 1;
            assert!(count > last, "kill {kill}: {count} commits are there, {last} were acknowledged");
        } else {
            count = last;
        }
    }
    assert!(count > kills, "only {count} commits were made");
}
