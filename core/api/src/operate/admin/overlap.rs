//! The time for which secrets and tokens live on beside what replaces them.

use crate::platform::error::{Denial, Result};

/// Overlap in seconds, unless the call says otherwise: a day.
const OVERLAP_SECONDS: i32 = 86_400;
/// Longest overlap, in seconds: 30 days.
const OVERLAP_SECONDS_MAX: i32 = 30 * 86_400;

/// The overlap of a call, in seconds.
///
/// # Errors
/// 422 when it is out of bounds.
pub(super) fn seconds(wanted: Option<i32>) -> Result<i32> {
    let overlap = wanted.unwrap_or(OVERLAP_SECONDS);
    if (0..=OVERLAP_SECONDS_MAX).contains(&overlap) {
        return Ok(overlap);
    }
    Err(Denial::unprocessable(format!("overlapSeconds: 0 to {OVERLAP_SECONDS_MAX}")).into())
}
