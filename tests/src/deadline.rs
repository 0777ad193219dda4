//! Waiting for what has no event: a look now and then, until it is there or the time is over.
//! The only place where a test pauses.

use std::time::Duration;

/// The pause between two looks.
const POLL: Duration = Duration::from_millis(10);

/// For what takes a moment on an idle machine: patient, because tests share theirs.
pub const SOON: Duration = Duration::from_secs(30);

/// Looks until `look` finds something. Panics with `what` when it has not within `time`.
#[expect(clippy::disallowed_methods, reason = "the one pause of the harness, bounded by `time`")]
pub async fn until<T>(what: &str, time: Duration, mut look: impl AsyncFnMut() -> Option<T>) -> T {
    let looking = async {
        loop {
            if let Some(found) = look().await {
                return found;
            }
            tokio::time::sleep(POLL).await;
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
