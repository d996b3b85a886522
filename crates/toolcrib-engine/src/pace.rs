//! When to list again: bursts become one walk, and a list that keeps being announced without
//! changing is asked for ever more rarely.

use std::time::Duration;

use tokio::time::Instant;

/// How long notifications are gathered before a walk begins.
const GATHER: Duration = Duration::from_millis(50);
/// Least pause between two walks of one list.
const FIRST_GAP: Duration = Duration::from_millis(500);
/// Least age of a list before a look at it reads it again, whatever its server says.
const MIN_REFRESH: Duration = Duration::from_secs(1);
/// The pause grows to this while walks bring nothing new.
const LAST_GAP: Duration = Duration::from_secs(60);

/// The pace of one list.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pace {
    last: Option<Instant>,
    gap: Duration,
    /// The change count the last walk began with.
    pub(crate) seen: u64,
}

impl Pace {
    pub(crate) const fn new() -> Self {
        Self { last: None, gap: FIRST_GAP, seen: 0 }
    }

    /// When the next walk may begin, given a change announced `now`.
    pub(crate) fn next(&self, now: Instant) -> Instant {
        let gathered = now + GATHER;
        self.last.map_or(gathered, |last| gathered.max(last + self.gap))
    }

    /// When a list that stays fresh for `ttl` may be walked again because someone looks at it.
    pub(crate) fn stale_at(&self, ttl: Duration) -> Option<Instant> {
        self.last.map(|last| last + ttl.max(MIN_REFRESH))
    }

    /// A walk began at `began`, when `seen` changes had been announced, and ended with or without
    /// a change. The pause grows only by announcements that were for nothing: a list that is read
    /// again because it is looked at must not delay the next announced change.
    pub(crate) fn walked(&mut self, began: Instant, seen: u64, changed: bool) {
        let announced = seen != self.seen;
        self.last = Some(began);
        self.seen = seen;
        if changed {
            self.gap = FIRST_GAP;
        } else if announced {
            self.gap = (self.gap * 2).min(LAST_GAP);
        }
    }
}

/// Pauses between attempts to reach a server, growing.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Backoff {
    pause: Duration,
}

/// First pause after a failure.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
/// Longest pause.
const LAST_PAUSE: Duration = Duration::from_secs(300);

impl Backoff {
    pub(crate) const fn new() -> Self {
        Self { pause: FIRST_PAUSE }
    }

    /// The pause before the next attempt; the one after it is twice as long.
    pub(crate) fn pause(&mut self) -> Duration {
        let pause = self.pause;
        self.pause = (pause * 2).min(LAST_PAUSE);
        pause
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_that_never_changes_is_walked_ever_more_rarely() {
        let begin = Instant::now();
        let mut pace = Pace::new();
        let mut now = begin;
        let mut walks = 0;
        // Announced again the moment each walk begins, as in a chase between list and notification.
        while now < begin + Duration::from_secs(3) {
            pace.walked(now, walks, false);
            walks += 1;
            now = pace.next(now);
        }
        assert!(walks <= 4, "{walks} walks in three seconds");
        for seen in walks..20 {
            pace.walked(now, seen, false);
        }
        assert_eq!(pace.next(now), now + LAST_GAP);
        pace.walked(now, 20, true);
        assert_eq!(pace.next(now), now + FIRST_GAP);
    }

    #[test]
    fn a_list_that_is_looked_at_often_delays_no_change() {
        let now = Instant::now();
        let mut pace = Pace::new();
        for _ in 0..20 {
            pace.walked(now, 3, false);
        }
        // The first of them was announced; the others were not.
        assert_eq!(pace.next(now), now + FIRST_GAP * 2);
    }

    #[test]
    fn pauses_double_up_to_a_bound() {
        let mut backoff = Backoff::new();
        let pauses: Vec<_> = (0..12).map(|_| backoff.pause()).collect();
        assert_eq!(pauses[..3], [500, 1_000, 2_000].map(Duration::from_millis));
        assert_eq!(pauses[11], LAST_PAUSE);
    }
}
