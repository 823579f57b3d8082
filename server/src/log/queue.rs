//! Lines of the log that wait for the thread that writes them. Nobody else waits for a slow reader of the log.

use std::{collections::VecDeque, io::Write, time::Duration};

use parking_lot::{Condvar, Mutex};
use prometheus_client::metrics::counter::Counter;

/// How many bytes may wait. Further lines are dropped.
const MAX_BYTES: usize = 1024 * 1024;

pub(super) struct Queue {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    dropped: Counter,
}

#[derive(Default)]
struct Waiting {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    is_writing: bool,
    /// How many lines were dropped since the log last said so.
    unsaid: u64,
}

impl Queue {
    pub(super) fn new(dropped: Counter) -> Self {
        Self { waiting: Mutex::default(), changed: Condvar::new(), dropped }
    }

    /// Adds a line, or drops it if too much waits. Never waits.
    pub(super) fn push(&self, line: &[u8]) {
        let mut waiting = self.waiting.lock();
        if waiting.bytes + line.len() > MAX_BYTES {
            waiting.unsaid += 1;
            self.dropped.inc();
            return;
        }
        waiting.bytes += line.len();
        waiting.lines.push_back(line.to_vec());
        self.changed.notify_all();
    }

    /// Writes the lines, forever. `say` logs how many were dropped, once lines are written again.
    pub(super) fn write_to(&self, mut out: impl Write, say: impl Fn(u64)) -> ! {
        loop {
            let line = self.next();
            let is_written = out.write_all(&line).is_ok();
            if let Some(dropped) = self.wrote(is_written) {
                say(dropped);
            }
        }
    }

    /// Waits until all lines are written, for a while.
    pub(super) fn flush(&self, at_most: Duration) {
        let unwritten = |waiting: &mut Waiting| waiting.is_writing || !waiting.lines.is_empty();
        self.changed.wait_while_for(&mut self.waiting.lock(), unwritten, at_most);
    }

    fn next(&self) -> Vec<u8> {
        let is_empty = |waiting: &mut Waiting| waiting.lines.is_empty();
        let mut waiting = self.waiting.lock();
        self.changed.wait_while(&mut waiting, is_empty);
        waiting.is_writing = true;
        let line = waiting.lines.pop_front().unwrap_or_default();
        waiting.bytes -= line.len();
        line
    }

    /// Ends the writing of a line. Returns how many lines were dropped, if there is room to say so.
    fn wrote(&self, is_written: bool) -> Option<u64> {
        let mut waiting = self.waiting.lock();
        waiting.is_writing = false;
        if !is_written {
            waiting.unsaid += 1;
            self.dropped.inc();
        }
        self.changed.notify_all();
        let is_said = is_written && waiting.unsaid > 0 && waiting.bytes <= MAX_BYTES / 2;
        is_said.then(|| std::mem::take(&mut waiting.unsaid))
    }
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        sync::{
            Arc,
            mpsc::{Receiver, Sender, channel},
        },
        thread,
        time::Instant,
    };

    use super::*;

    /// Writes a line when it is told whether that fails.
    struct Reader {
        fails: Receiver<bool>,
        written: Sender<String>,
    }

    impl Write for Reader {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.fails.recv().unwrap_or(true) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.written.send(String::from_utf8_lossy(bytes).into()).unwrap();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// A queue whose reader is told when to read, and what it read.
    fn queue() -> (Arc<Queue>, Sender<bool>, Receiver<String>) {
        let (queue, (reads, fails), (written, lines)) =
            (Arc::new(Queue::new(Counter::default())), channel(), channel());
        let writer = Arc::clone(&queue);
        thread::spawn(move || {
            let say = |dropped| writer.push(format!("{dropped} dropped").as_bytes());
            writer.write_to(Reader { fails, written }, say)
        });
        (queue, reads, lines)
    }

    #[test]
    fn lines_that_nobody_reads_are_dropped_and_counted_and_the_next_reader_hears_of_it() {
        let (queue, reads, lines) = queue();
        let line = vec![b'x'; MAX_BYTES / 4];
        // One is being written, four wait.
        queue.push(b"first");
        while !queue.waiting.lock().is_writing {
            thread::yield_now();
        }
        (0..7).for_each(|_| queue.push(&line));
        assert_eq!((queue.waiting.lock().lines.len(), queue.dropped.get()), (4, 3));
        (0..6).for_each(|_| reads.send(false).unwrap());
        let read: Vec<String> = lines.iter().take(6).collect();
        assert_eq!((&*read[0], &*read[5], read[4].len()), ("first", "3 dropped", line.len()));
    }

    #[test]
    fn a_line_whose_write_fails_counts_as_dropped() {
        let (queue, reads, lines) = queue();
        queue.push(b"lost");
        queue.push(b"read");
        [true, false, false].into_iter().for_each(|fails| reads.send(fails).unwrap());
        assert_eq!(lines.iter().take(2).collect::<Vec<_>>(), ["read", "1 dropped"]);
        assert_eq!(queue.dropped.get(), 1);
    }

    #[test]
    fn the_last_lines_are_waited_for_but_not_for_ever() {
        let (queue, reads, lines) = queue();
        queue.push(b"last");
        let begun = Instant::now();
        queue.flush(Duration::from_millis(20));
        assert!(begun.elapsed() >= Duration::from_millis(20));
        reads.send(false).unwrap();
        queue.flush(Duration::from_secs(60));
        assert_eq!(lines.try_recv().as_deref(), Ok("last"));
        assert!(begun.elapsed() < Duration::from_secs(30));
    }
}
