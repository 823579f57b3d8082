//! A worker: does the pieces of work that it is sent, one after the other, on a thread of its own.
//!
//! Where the disk is simulated there are no threads; whoever runs the simulation steps the worker.

use std::{
    io,
    sync::mpsc,
    thread::{self, JoinHandle},
};

#[cfg(feature = "simulation")]
use std::{
    collections::VecDeque,
    sync::{Mutex, PoisonError},
};

/// Does a piece of work. False if the worker ends with it.
type Do<W> = Box<dyn FnMut(W) -> bool + Send>;

/// The sender's end. The worker ends, with all work done, when this is dropped.
pub(crate) enum Worker<W> {
    Thread(mpsc::SyncSender<W>),
    #[cfg(feature = "simulation")]
    Stepped(Mutex<Stepped<W>>),
}

impl<W: Send + 'static> Worker<W> {
    /// Starts a worker for which at most `waiting` pieces of work wait.
    pub(crate) fn start(
        name: &str,
        waiting: usize,
        has_threads: bool,
        mut work: Do<W>,
    ) -> io::Result<(Self, Option<JoinHandle<()>>)> {
        #[cfg(feature = "simulation")]
        if !has_threads {
            let stepped = Stepped { waiting: VecDeque::new(), at_most: waiting, work, has_ended: false };
            return Ok((Self::Stepped(Mutex::new(stepped)), None));
        }
        debug_assert!(has_threads, "only a simulation has no threads");
        let (sender, received) = mpsc::sync_channel(waiting);
        let run = move || {
            for piece in received {
                if !work(piece) {
                    break;
                }
            }
        };
        let thread = thread::Builder::new().name(name.into()).spawn(run)?;
        Ok((Self::Thread(sender), Some(thread)))
    }

    /// Sends a piece of work; waits while too many wait. False if the worker has ended.
    pub(crate) fn send(&self, piece: W) -> bool {
        match self {
            Self::Thread(sender) => sender.send(piece).is_ok(),
            #[cfg(feature = "simulation")]
            Self::Stepped(stepped) => stepped.lock().unwrap_or_else(PoisonError::into_inner).send(piece),
        }
    }

    /// Where there are no threads, does a piece of work. False if none waits.
    #[cfg(feature = "simulation")]
    pub(crate) fn step(&self) -> bool {
        match self {
            Self::Thread(_) => false,
            Self::Stepped(stepped) => stepped.lock().unwrap_or_else(PoisonError::into_inner).step(),
        }
    }
}

/// A worker without a thread.
#[cfg(feature = "simulation")]
pub(crate) struct Stepped<W> {
    waiting: VecDeque<W>,
    at_most: usize,
    work: Do<W>,
    has_ended: bool,
}

#[cfg(feature = "simulation")]
impl<W> Stepped<W> {
    fn send(&mut self, piece: W) -> bool {
        self.waiting.push_back(piece);
        while self.waiting.len() > self.at_most + 1 {
            self.step();
        }
        !self.has_ended
    }

    fn step(&mut self) -> bool {
        let Some(piece) = self.waiting.pop_front() else { return false };
        if !self.has_ended {
            self.has_ended = !(self.work)(piece);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    type Done = Arc<Mutex<Vec<u32>>>;

    /// A worker that notes its pieces and ends with the piece 0; at most two wait.
    fn noting(done: &Done, has_threads: bool) -> (Worker<u32>, Option<JoinHandle<()>>) {
        let noted = Arc::clone(done);
        let work = Box::new(move |piece| {
            noted.lock().unwrap().push(piece);
            piece != 0
        });
        Worker::start("noting", 2, has_threads, work).unwrap()
    }

    #[test]
    fn a_thread_does_its_pieces_in_order_until_one_ends_it() {
        let done = Done::default();
        let (worker, thread) = noting(&done, true);
        for piece in [1, 2, 0] {
            assert!(worker.send(piece));
        }
        thread.unwrap().join().unwrap();
        assert!(!worker.send(3));
        assert_eq!(*done.lock().unwrap(), [1, 2, 0]);
    }

    #[cfg(feature = "simulation")]
    #[test]
    fn without_threads_a_step_does_a_piece_and_a_sender_those_that_are_too_many() {
        let done = Done::default();
        let (worker, thread) = noting(&done, false);
        assert!(thread.is_none());
        assert!(!worker.step());
        for piece in [1, 2, 3] {
            assert!(worker.send(piece));
        }
        assert!(done.lock().unwrap().is_empty());
        assert!(worker.send(4));
        assert_eq!(*done.lock().unwrap(), [1]);
        assert!(worker.step());
        assert_eq!(*done.lock().unwrap(), [1, 2]);
        assert!(worker.step() && worker.step() && !worker.step());
        assert!(worker.send(0) && worker.step());
        assert!(!worker.send(5));
        // It takes the piece and does nothing with it.
        assert!(worker.step() && !worker.step());
        assert_eq!(*done.lock().unwrap(), [1, 2, 3, 4, 0]);
    }
}
