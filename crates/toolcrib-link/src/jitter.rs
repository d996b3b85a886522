//! Pauses that differ a little from one to the next. Pure but for a look at the clock, and never
//! a source of randomness for anything that is to be secret.

use std::time::Duration;

/// Up to a quarter more, so that many followers do not return at once. The clock's low bits are
/// random enough for that.
pub fn jittered(pause: Duration) -> Duration {
    let nanos = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |now| now.subsec_nanos());
    pause + pause.mul_f64(f64::from(nanos % 1_000) / 4_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_only_adds() {
        for _ in 0..100 {
            let pause = jittered(Duration::from_secs(4));
            assert!(pause >= Duration::from_secs(4) && pause <= Duration::from_secs(5));
        }
    }
}
