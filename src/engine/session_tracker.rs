use std::collections::BTreeMap;

use hashbrown::{HashMap, HashSet};

/// Tells which sessions have not been heard of for longer than their timeout: for the server that serves the clients.
///
/// Times are milliseconds of a clock that never goes back. Sessions are kept in buckets of one interval, as in
/// ZooKeeper: a touch moves a session to a later bucket, and a bucket expires at once, so that a session lives for
/// its timeout and up to one interval more. What is expired is not ended yet: the server proposes a
/// [`CloseSession`](crate::Request::CloseSession) for each, which deletes its ephemeral nodes.
///
/// After a recovery or a change of leader, every session of [`DataTree::sessions`](crate::DataTree::sessions) is to be
/// tracked anew and so gets its full timeout: nobody knows when it was last heard of.
///
/// Source: ZooKeeper's `ExpiryQueue` and `SessionTrackerImpl`.
#[derive(Debug)]
pub struct SessionTracker {
    interval_ms: u64,
    sessions: HashMap<i64, Tracked>,
    /// By the time at which they expire.
    buckets: BTreeMap<u64, HashSet<i64>>,
}

#[derive(Debug)]
struct Tracked {
    timeout_ms: u64,
    expires_ms: u64,
}

impl SessionTracker {
    /// Tracks no session yet. The interval is ZooKeeper's `tickTime`, usually 2,000.
    ///
    /// # Panics
    /// If the interval is zero.
    pub fn new(interval_ms: u64) -> SessionTracker {
        assert!(interval_ms > 0, "buckets of no time");
        SessionTracker { interval_ms, sessions: HashMap::new(), buckets: BTreeMap::new() }
    }

    /// How many sessions are tracked.
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Whether no session is tracked.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// Begins to track a session, or gives one another timeout; it has been heard of now. A timeout below zero counts
    /// as zero.
    pub fn track(&mut self, id: i64, timeout_ms: i32, now_ms: u64) {
        self.forget(id);
        let timeout_ms = u64::try_from(timeout_ms).unwrap_or(0);
        let expires_ms = bucket(now_ms, timeout_ms, self.interval_ms);
        self.sessions.insert(id, Tracked { timeout_ms, expires_ms });
        self.buckets.entry(expires_ms).or_default().insert(id);
    }

    /// Takes note that a session was heard of. False if it is not tracked: it has expired or was closed, and its
    /// client must be told so.
    pub fn touch(&mut self, id: i64, now_ms: u64) -> bool {
        let interval_ms = self.interval_ms;
        let Some(tracked) = self.sessions.get_mut(&id) else { return false };
        let expires_ms = bucket(now_ms, tracked.timeout_ms, interval_ms);
        if expires_ms <= tracked.expires_ms {
            return true;
        }
        let old = std::mem::replace(&mut tracked.expires_ms, expires_ms);
        self.leave(old, id);
        self.buckets.entry(expires_ms).or_default().insert(id);
        true
    }

    /// The same for all sessions that were heard of since the last call, as a learner reports them: at the cost of
    /// one look-up each, and nothing more for those that stay in their bucket. Calls `gone` with those that are not
    /// tracked.
    pub fn touch_all(&mut self, ids: impl IntoIterator<Item = i64>, now_ms: u64, mut gone: impl FnMut(i64)) {
        for id in ids {
            if !self.touch(id, now_ms) {
                gone(id);
            }
        }
    }

    /// No longer tracks a session: it was closed, or has moved to another server.
    pub fn forget(&mut self, id: i64) {
        if let Some(tracked) = self.sessions.remove(&id) {
            self.leave(tracked.expires_ms, id);
        }
    }

    /// Takes out sessions that have expired by now, those of the longest time ago first, at most `max`: of a crowd
    /// that expires at once, the server closes a part at a time and serves others in between.
    pub fn expire(&mut self, now_ms: u64, max: usize) -> Vec<i64> {
        let mut expired = Vec::new();
        while expired.len() < max {
            let first = self.buckets.first_entry().filter(|bucket| *bucket.key() <= now_ms);
            let Some(mut first) = first else { break };
            let room = max - expired.len();
            let taken: Vec<i64> = first.get().iter().copied().take(room).collect();
            for id in &taken {
                first.get_mut().remove(id);
                self.sessions.remove(id);
            }
            if first.get().is_empty() {
                first.remove();
            }
            expired.extend(taken);
        }
        expired
    }

    /// When the next sessions expire, if no more is heard of them: the time to call [`expire`](Self::expire).
    pub fn next_expiry_ms(&self) -> Option<u64> {
        self.buckets.first_key_value().map(|(at, _)| *at)
    }

    fn leave(&mut self, bucket: u64, id: i64) {
        if let Some(ids) = self.buckets.get_mut(&bucket) {
            ids.remove(&id);
            if ids.is_empty() {
                self.buckets.remove(&bucket);
            }
        }
    }
}

/// The end of the interval in which the timeout ends.
fn bucket(now_ms: u64, timeout_ms: u64, interval_ms: u64) -> u64 {
    ((now_ms.saturating_add(timeout_ms)) / interval_ms).saturating_add(1).saturating_mul(interval_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_lives_for_its_timeout_and_up_to_an_interval_more() {
        for now in [0, 1, 999, 1000, 1001, 5432] {
            let mut tracker = SessionTracker::new(1000);
            tracker.track(7, 3000, now);
            let expires = tracker.next_expiry_ms().unwrap();
            assert!(expires > now + 3000 && expires <= now + 4000, "{now}: {expires}");
            assert!(tracker.expire(expires - 1, 10).is_empty());
            assert_eq!(tracker.expire(expires, 10), [7]);
            assert!(tracker.is_empty() && !tracker.touch(7, expires));
        }
    }

    #[test]
    fn touched_and_forgotten_sessions_do_not_expire() {
        let mut tracker = SessionTracker::new(100);
        for id in 0..10 {
            tracker.track(id, 1000, 0);
        }
        tracker.forget(3);
        let mut gone = Vec::new();
        tracker.touch_all([1, 3, 5, 99], 500, |id| gone.push(id));
        assert_eq!(gone, [3, 99]);
        let mut expired = tracker.expire(1100, 100);
        expired.sort_unstable();
        assert_eq!(expired, [0, 2, 4, 6, 7, 8, 9]);
        assert_eq!(tracker.len(), 2);
        // An old touch that comes late takes nothing away.
        assert!(tracker.touch(1, 100));
        assert!(tracker.expire(1599, 100).is_empty());
        assert_eq!(tracker.expire(1600, 100).len(), 2);
        assert_eq!(tracker.next_expiry_ms(), None);
    }

    #[test]
    fn a_crowd_expires_a_part_at_a_time() {
        let mut tracker = SessionTracker::new(100);
        for id in 0..1000 {
            tracker.track(id, 500, 0);
        }
        let mut all = Vec::new();
        for _ in 0..10 {
            let part = tracker.expire(10_000, 100);
            assert_eq!(part.len(), 100);
            all.extend(part);
        }
        all.sort_unstable();
        assert!(all.iter().copied().eq(0..1000) && tracker.expire(10_000, 100).is_empty());
        assert!(tracker.buckets.is_empty());
    }

    #[test]
    fn a_session_that_is_tracked_anew_has_its_new_timeout_alone() {
        let mut tracker = SessionTracker::new(100);
        tracker.track(1, 1000, 0);
        tracker.track(1, 5000, 0);
        assert_eq!((tracker.len(), tracker.next_expiry_ms()), (1, Some(5100)));
        assert!(tracker.expire(5099, 9).is_empty() && tracker.touch(1, 0));
        assert_eq!(tracker.expire(5100, 9), [1]);
        tracker.track(2, 1000, 0);
        tracker.forget(2);
        assert_eq!(tracker.next_expiry_ms(), None, "nobody is woken for a session that has gone");
    }

    #[test]
    fn no_more_expire_at_once_than_are_asked_for_and_the_oldest_go_first() {
        let mut tracker = SessionTracker::new(100);
        for (id, timeout_ms) in [(1, 500), (2, 500), (3, 900), (4, 900)] {
            tracker.track(id, timeout_ms, 0);
        }
        let first = tracker.expire(10_000, 3);
        assert!(first.len() == 3 && first.contains(&1) && first.contains(&2), "{first:?}");
        assert_eq!((tracker.len(), tracker.next_expiry_ms()), (1, Some(1000)));
        assert_eq!(tracker.expire(10_000, 1).len(), 1);
        assert_eq!(tracker.next_expiry_ms(), None);
    }

    #[test]
    fn extreme_timeouts_do_not_wrap() {
        let mut tracker = SessionTracker::new(u64::MAX);
        tracker.track(1, i32::MAX, u64::MAX);
        tracker.track(2, i32::MIN, 0);
        assert!(tracker.touch(1, u64::MAX) && tracker.touch(2, 0));
        assert_eq!(tracker.expire(u64::MAX, 9).len(), 2);
    }
}
