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
