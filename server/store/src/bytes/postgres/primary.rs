//! Which host of a URL is the primary, as far as the connections of this process know.
//!
//! The first host that passes the barrier is the primary. From then on the connections to every other host end, so no answer
//! comes from a primary that a failover has left behind. A promotion begins a new timeline: a host of an earlier timeline is
//! a former primary, and no connection goes back to it.

use tokio::sync::watch;

/// What connections know of the primary.
#[derive(Debug, Clone, Copy, Default)]
struct Standing {
    host: Option<usize>,
    timeline: Option<u32>,
    /// How often the host has changed.
    moves: u64,
    /// How often a connection was warned that its reads may be lost.
    doubts: u64,
}

/// What all connections to a database share.
#[derive(Debug, Default)]
pub(super) struct Primary(watch::Sender<Standing>);

/// The host is a former primary: another one was promoted since.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "it is on timeline {its}, and this process has seen {newest}, so another host was promoted since; stop this host, or start \
     this process again if the database was made anew"
)]
pub(super) struct Behind {
    its: u32,
    newest: u32,
}

impl Primary {
    /// The number of the last primary.
    pub(super) fn host(&self) -> Option<usize> {
        self.0.borrow().host
    }

    /// Records that a host has passed the barrier. Connections to other hosts end. Returns whether another host was the
    /// primary.
    pub(super) fn passed(&self, host: usize, timeline: Option<u32>) -> Result<bool, Behind> {
        let (mut outcome, mut before) = (Ok(()), None);
        let has_moved = self.0.send_if_modified(|now| {
            if let Some((its, newest)) = timeline.zip(now.timeline).filter(|(its, newest)| its < newest) {
                outcome = Err(Behind { its, newest });
                return false;
            }
            let is_other = now.host != Some(host);
            before = now.host.replace(host);
            now.timeline = timeline.or(now.timeline);
            now.moves += u64::from(is_other);
            is_other
        });
        outcome.map(|()| has_moved && before.is_some())
    }

    /// Ends all connections, because changes that they have read may be lost.
    pub(super) fn doubt(&self) {
        self.0.send_modify(|now| now.doubts += 1);
    }

    /// Returns when a connection to `host` that begins now must end.
    pub(super) fn ends(&self, host: usize) -> impl Future<Output = ()> + Send + use<> {
        let mut standing = self.0.subscribe();
        let before = *standing.borrow_and_update();
        async move {
            let is_over =
                |now: &Standing| now.doubts != before.doubts || (now.moves != before.moves && now.host != Some(host));
            // Without a sender nobody needs the connection.
            let _ = standing.wait_for(is_over).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn the_first_host_that_passes_ends_the_connections_to_others_and_keeps_its_own() {
        let primary = Primary::default();
        let (mut to_one, mut to_two) = (Box::pin(primary.ends(0)), Box::pin(primary.ends(1)));
        assert_eq!((primary.host(), primary.passed(0, Some(1))), (None, Ok(false)));
        assert_eq!(primary.host(), Some(0));
        assert!((&mut to_one).now_or_never().is_none());
        assert!((&mut to_two).now_or_never().is_some());
        // A connection that begins later is not ended until another host passes.
        let mut to_two = Box::pin(primary.ends(1));
        assert_eq!(primary.passed(0, Some(1)), Ok(false));
        assert!((&mut to_one).now_or_never().is_none() && (&mut to_two).now_or_never().is_none());
        assert_eq!(primary.passed(1, Some(2)), Ok(true));
        assert!((&mut to_one).now_or_never().is_some() && (&mut to_two).now_or_never().is_none());
    }

    #[test]
    fn no_connection_goes_back_to_a_host_of_an_earlier_timeline() {
        let primary = Primary::default();
        primary.passed(1, Some(2)).unwrap();
        let mut to_two = Box::pin(primary.ends(1));
        assert_eq!(primary.passed(0, Some(1)), Err(Behind { its: 1, newest: 2 }));
        assert!((&mut to_two).now_or_never().is_none());
        // A database may not show its timeline.
        assert_eq!(primary.passed(0, None), Ok(true));
        assert_eq!(primary.passed(0, Some(1)), Err(Behind { its: 1, newest: 2 }));
        assert_eq!(primary.passed(0, Some(3)), Ok(false));
    }

    #[test]
    fn a_doubt_ends_every_connection_that_has_begun_even_to_the_primary() {
        let primary = Primary::default();
        let (mut before, ()) = (Box::pin(primary.ends(0)), drop(primary.passed(0, Some(1))));
        primary.doubt();
        let mut after = Box::pin(primary.ends(0));
        assert_eq!(primary.passed(0, Some(1)), Ok(false));
        assert!((&mut before).now_or_never().is_some() && (&mut after).now_or_never().is_none());
    }
}
