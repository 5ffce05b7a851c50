//! A connection on which nothing moves although something should.
//!
//! TCP itself gives up after a quarter of an hour; keepalive (`TcpKeepalive`) says nothing while sent bytes are not
//! acknowledged, and TCP_USER_TIMEOUT does not tell a dead server from one whose buffers are full. Here **pending** are
//! bytes that we hold or that the peer's system has not taken yet; any of them that leaves is progress, and so is what
//! arrives. A server that has taken everything may think about it as long as it likes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::wait::Broken;
use crate::outcome::lock;

/// When each process of the server was last seen at work by somebody who asks the server: then it is only slow.
#[derive(Clone, Default)]
pub struct SeenAtWork(Arc<Mutex<HashMap<i32, Instant>>>);

impl SeenAtWork {
    /// These processes are at work now.
    pub fn add(&self, processes: &[i32]) {
        let now = Instant::now();
        lock(&self.0).extend(processes.iter().map(|&process| (process, now)));
    }

    fn last(&self, process: i32) -> Option<Instant> {
        lock(&self.0).get(&process).copied()
    }
}

/// Watches one connection.
pub struct Watch {
    limit: Option<Duration>,
    /// When something moved last, or nothing was pending.
    moved: Instant,
    /// Bytes that the peer's system had not taken when we looked last.
    untaken: usize,
    server: Option<(SeenAtWork, i32)>,
}

impl Watch {
    /// Gives up after `limit` without progress; never without a limit.
    pub fn new(limit: Option<Duration>) -> Self {
        Watch { limit, moved: Instant::now(), untaken: 0, server: None }
    }

    /// Goes on as long as this process of the server is seen at work.
    pub fn trust(&mut self, seen: SeenAtWork, process: i32) {
        self.server = Some((seen, process));
    }

    /// Whether anybody needs to look.
    pub fn is_on(&self) -> bool {
        self.limit.is_some()
    }

    /// Bytes have come or gone.
    pub fn moved(&mut self) {
        self.moved = Instant::now();
    }

    /// Bytes have come or gone, if so.
    pub fn moved_if(&mut self, moved: bool) {
        if moved {
            self.moved();
        }
    }

    /// Fails when nothing has moved for too long. `untaken`: bytes that the peer's system has not taken yet; `held`: whether
    /// we hold more of them.
    pub fn check(&mut self, untaken: usize, held: bool) -> Result<(), Broken> {
        let Some(limit) = self.limit else { return Ok(()) };
        if untaken < self.untaken || (untaken == 0 && !held) {
            self.moved();
        }
        self.untaken = untaken;
        if self.moved.elapsed() < limit {
            return Ok(());
        }
        let seen = self.server.as_ref().and_then(|(seen, process)| seen.last(*process));
        match seen.filter(|seen| *seen > self.moved && seen.elapsed() < limit) {
            Some(seen) => {
                self.moved = seen;
                Ok(())
            }
            None => Err(Broken::Stalled(limit)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(1);

    /// A watch on which nothing has moved for that long, with bytes that nobody takes.
    fn after(waited: Duration) -> Watch {
        let mut watch = Watch::new(Some(LIMIT));
        watch.untaken = 10;
        watch.moved = Instant::now().checked_sub(waited).unwrap();
        watch
    }

    #[test]
    fn only_pending_bytes_count() {
        assert!(after(LIMIT / 2).check(10, true).is_ok());
        assert!(matches!(after(2 * LIMIT).check(10, false), Err(Broken::Stalled(LIMIT))), "sent, not taken");
        assert!(matches!(after(2 * LIMIT).check(10, true), Err(Broken::Stalled(LIMIT))), "not sent");
        assert!(after(2 * LIMIT).check(0, false).is_ok(), "the server thinks");
        assert!(after(2 * LIMIT).check(9, true).is_ok(), "it takes bytes");
        let mut off = after(2 * LIMIT);
        off.limit = None;
        assert!(off.check(10, true).is_ok());
        let mut moved = after(2 * LIMIT);
        moved.moved();
        assert!(moved.check(10, true).is_ok());
    }

    #[test]
    fn a_server_at_work_is_waited_for() {
        let seen = SeenAtWork::default();
        let mut watch = after(2 * LIMIT);
        watch.trust(seen.clone(), 7);
        seen.add(&[8]);
        assert!(watch.check(10, true).is_err(), "another process");
        seen.add(&[7]);
        assert!(watch.check(10, true).is_ok());
        watch.moved = Instant::now().checked_sub(3 * LIMIT).unwrap();
        let long_ago = Instant::now().checked_sub(2 * LIMIT).unwrap();
        lock(&seen.0).insert(7, long_ago);
        assert!(watch.check(10, true).is_err(), "not seen since");
    }
}
