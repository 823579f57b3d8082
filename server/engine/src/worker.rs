//! A worker: a thread that does work in pieces. On a simulated disk there are no threads: the simulation steps the worker.

use std::{
    io,
    sync::{Mutex, PoisonError},
    thread::{self, JoinHandle},
};

/// Work that comes in pieces.
pub(crate) trait Work: Send + 'static {
    /// Waits for a piece and does it. Returns false if none will come.
    fn wait(&mut self) -> bool;

    /// Does a waiting piece. Returns false if there is none.
    fn step(&mut self) -> bool;

    /// Ends the work after the last piece.
    fn end(&mut self) {}
}

/// Does work on a thread, or step by step.
pub(crate) enum Worker<W: Work> {
    Thread,
    Stepped(Mutex<W>),
}

impl<W: Work> Worker<W> {
    /// Starts a worker. Also returns its thread, if it has one.
    pub(crate) fn start(name: &str, has_threads: bool, mut work: W) -> io::Result<(Self, Option<JoinHandle<()>>)> {
        if !has_threads {
            return Ok((Self::Stepped(Mutex::new(work)), None));
        }
        let run = move || {
            while work.wait() {}
            work.end();
        };
        Ok((Self::Thread, Some(thread::Builder::new().name(name.into()).spawn(run)?)))
    }

    /// Does a piece of work, unless a thread does the work. Returns false if no piece waits.
    pub(crate) fn step(&self) -> bool {
        match self {
            Self::Thread => false,
            Self::Stepped(work) => work.lock().unwrap_or_else(PoisonError::into_inner).step(),
        }
    }
}

impl<W: Work> Drop for Worker<W> {
    /// Does what a thread would do at its end.
    fn drop(&mut self) {
        if let Self::Stepped(work) = self {
            let work = work.get_mut().unwrap_or_else(PoisonError::into_inner);
            while work.step() {}
            work.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, mpsc};

    use super::*;

    /// Notes the worker's pieces, and 0 at its end.
    struct Noting {
        pieces: mpsc::Receiver<u32>,
        done: Arc<Mutex<Vec<u32>>>,
    }

    impl Noting {
        fn note(&self, piece: Option<u32>) -> bool {
            self.done.lock().unwrap().extend(piece);
            piece.is_some()
        }
    }

    impl Work for Noting {
        fn wait(&mut self) -> bool {
            self.note(self.pieces.recv().ok())
        }

        fn step(&mut self) -> bool {
            self.note(self.pieces.try_recv().ok())
        }

        fn end(&mut self) {
            self.note(Some(0));
        }
    }

    #[test]
    fn a_thread_does_its_pieces_in_order_then_ends() {
        let (sender, pieces) = mpsc::channel();
        let done = Arc::default();
        let work = Noting { pieces, done: Arc::clone(&done) };
        let (worker, thread) = Worker::start("noting", true, work).unwrap();
        (1..=3).for_each(|piece| sender.send(piece).unwrap());
        assert!(!worker.step());
        drop(sender);
        thread.unwrap().join().unwrap();
        assert_eq!(*done.lock().unwrap(), [1, 2, 3, 0]);
    }

    #[test]
    fn without_threads_a_step_does_a_piece_and_the_last_owner_does_the_rest() {
        let (sender, pieces) = mpsc::channel();
        let done = Arc::default();
        let work = Noting { pieces, done: Arc::clone(&done) };
        let (worker, thread) = Worker::start("noting", false, work).unwrap();
        assert!(thread.is_none());
        assert!(!worker.step());
        (1..=3).for_each(|piece| sender.send(piece).unwrap());
        assert!(done.lock().unwrap().is_empty());
        assert!(worker.step());
        assert_eq!(*done.lock().unwrap(), [1]);
        drop(worker);
        assert_eq!(*done.lock().unwrap(), [1, 2, 3, 0]);
    }
}
