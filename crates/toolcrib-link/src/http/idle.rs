//! When the silence of a change stream means that it is broken.
//!
//! A connection whose other end is gone without a word is found by TCP keep-alives, unless a proxy
//! in between holds it open. Servers are encouraged to send comments as keep-alives (specification,
//! basic/patterns/subscriptions); from one that did at a steady pace, a long silence is a sign. One
//! that never did may be silent for ever. Pure: the time is an argument.

use std::time::Duration;

use tokio::time::Instant;

/// So many keep-alives make a pace.
const STEADY: u32 = 3;
/// The silence that is a sign, in the longest gaps there were.
const GAPS: u32 = 4;
/// The least part of the floor that a gap has to be: what comes at once is no pace.
const LEAST_GAP: u32 = 60;

/// What is known of the pace of one stream.
#[derive(Debug)]
pub(super) struct Idle {
    floor: Duration,
    last: Instant,
    longest: Duration,
    beats: u32,
}

impl Idle {
    /// A stream that was opened `now`; no silence shorter than `floor` is a sign.
    pub(super) const fn new(floor: Duration, now: Instant) -> Self {
        Self { floor, last: now, longest: Duration::ZERO, beats: 0 }
    }

    /// Something came; `empty` when it was no event, and so a keep-alive.
    pub(super) fn heard(&mut self, empty: bool, now: Instant) {
        let gap = now.saturating_duration_since(self.last);
        self.last = now;
        if gap < self.floor / LEAST_GAP {
            return;
        }
        self.longest = self.longest.max(gap);
        self.beats = self.beats.saturating_add(u32::from(empty));
    }

    /// When the stream counts as broken, if nothing comes before; `None` while it has no pace.
    pub(super) fn ends(&self) -> Option<Instant> {
        let steady = self.beats >= STEADY;
        steady.then(|| self.last + self.floor.max(self.longest.saturating_mul(GAPS)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLOOR: Duration = Duration::from_secs(60);

    #[test]
    fn only_a_stream_that_had_a_pace_can_break_it() {
        let check = |gaps_s: &[u64], empty: bool, expect_s: Option<u64>| {
            let mut now = Instant::now();
            let mut idle = Idle::new(FLOOR, now);
            for gap in gaps_s {
                now += Duration::from_secs(*gap);
                idle.heard(empty, now);
            }
            let silence = idle.ends().map(|end| (end - now).as_secs());
            assert_eq!(silence, expect_s, "{gaps_s:?}");
        };
        check(&[], true, None);
        check(&[15, 15], true, None);
        check(&[15, 15, 15], true, Some(60));
        check(&[30, 25, 30], true, Some(120));
        check(&[0, 0, 0, 0], true, None);
        check(&[15, 15, 15], false, None);
    }
}
