//! The present, as files of payments name it.

use chrono::{DateTime, Utc};

/// The present.
#[expect(clippy::disallowed_methods, reason = "the one place where the connector reads a clock")]
pub(crate) fn now() -> DateTime<Utc> {
    Utc::now()
}
