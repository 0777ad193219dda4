//! Waiting for what has no event: a look now and then, until it is there or the time is over.
//! The only place where a test pauses.

use std::time::Duration;

/// The pause between the first two looks. A look may cost an edge and its test more than that, while
/// other tests want the processors: each pause is a twentieth longer than the one before.
const PAUSE: Duration = Duration::from_millis(10);
/// The longest pause, reached after some 800 ms.
const PAUSE_MAX: Duration = Duration::from_millis(50);

/// For what takes a moment on an idle machine: patient, because tests share theirs.
pub const SOON: Duration = Duration::from_secs(30);

/// Looks until `look` finds something. Panics with `what` when it has not within `time`.
#[expect(clippy::disallowed_methods, reason = "the one pause of the harness, bounded by `time`")]
pub async fn until<T>(what: &str, time: Duration, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let looking = async {
        let mut pause = PAUSE;
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(pause).await;
            pause = PAUSE_MAX.min(pause + pause / 20);
        }
    };
    match tokio::time::timeout(time, looking).await {
        Ok(found) => found,
        Err(_) => panic!("not within {time:?}: {what}"),
    }
}

/// Returns after `time`: for a fault that comes at a moment of its own.
#[expect(clippy::disallowed_methods, reason = "as above: the pause is what is wanted")]
pub async fn after(time: Duration) {
    tokio::time::sleep(time).await;
}
