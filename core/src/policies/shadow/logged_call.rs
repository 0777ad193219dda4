//! Lines that policies log in live calls, stored for operators and the partner's staff.

use std::sync::atomic::Ordering;

use rampart_plugins::LogLine;
use rampart_plugins::contract::PolicyKind;
use serde_json::{Value, json};

use super::{Job, SLOT_TRIES_MAX};
use crate::Core;
use crate::auth::caller::Client;
use crate::platform::error::{Error, Result};
use crate::policies::dry_run::report::level;
use crate::policies::evaluate::redaction::redacted;
use crate::policies::runtime::{ActivePolicy, SAMPLES_MAX};
use rampart_types::ClientId;

/// Lines that a live call logged.
pub(super) struct LoggedCall {
    pub(super) client: ClientId,
    kind: PolicyKind,
    version: i64,
    request_id: String,
    lines: Vec<LogLine>,
    lines_dropped: u32,
    calls_dropped: u64,
}

/// Queues the lines of a live call to be stored, at the rate of the policy's throttle.
pub(crate) fn queue_log(
    core: &Core,
    client: &Client,
    active: &ActivePolicy,
    lines: Vec<LogLine>,
    lines_dropped: u32,
) {
    if !active.stored_log.allows(core.clock.monotonic_ms()) {
        active.log_calls_dropped.fetch_add(1, Ordering::Relaxed);
        return;
    }
    let calls_dropped = active.log_calls_dropped.swap(0, Ordering::Relaxed);
    let job = Job::Log(LoggedCall {
        client: client.id(),
        kind: active.kind,
        version: active.version,
        request_id: client.request_id.to_string(),
        lines,
        lines_dropped,
        calls_dropped,
    });
    if !core.policy_shadows.push(client.id(), job) {
        // This call is one of those that the next one tells of.
        active.log_calls_dropped.fetch_add(calls_dropped + 1, Ordering::Relaxed);
    }
}

impl Core {
    /// Stores the lines of a call in a free slot, or in place of the oldest, unless another edge has just
    /// taken it: then in the next one. They are the partner's text, so words that may identify somebody are
    /// left out.
    pub(super) async fn write_log(&self, logged: LoggedCall) -> Result<()> {
        let line =
            |line: &LogLine| json!({"level": level(line.level), "text": redacted(&line.text)});
        let lines: Value = logged.lines.iter().map(line).collect();
        for _ in 0..SLOT_TRIES_MAX {
            let written = sqlx::query!(
                "insert into policy_log (client_id, kind, slot, version, request_id, lines, \
                     lines_dropped, calls_dropped, at) \
                 select $1, $2, n::smallint, $3, $4, $5, $6, $7, now() \
                 from generate_series(0, $8::int - 1) n \
                     left join policy_log l on l.client_id = $1 and l.kind = $2 and l.slot = n \
                 order by l.at nulls first, n limit 1 \
                 on conflict (client_id, kind, slot) do update set version = excluded.version, \
                     request_id = excluded.request_id, lines = excluded.lines, \
                     lines_dropped = excluded.lines_dropped, \
                     calls_dropped = excluded.calls_dropped, at = excluded.at \
                 where policy_log.at = (select seen.at from policy_log seen \
                     where seen.client_id = excluded.client_id and seen.kind = excluded.kind \
                         and seen.slot = excluded.slot)",
                logged.client.uuid(),
                logged.kind.as_str(),
                logged.version,
                logged.request_id,
                lines,
                i64::from(logged.lines_dropped),
                i64::try_from(logged.calls_dropped).unwrap_or(i64::MAX),
                SAMPLES_MAX,
            )
            .execute(&self.db)
            .await?;
            if written.rows_affected() > 0 {
                return Ok(());
            }
        }
        Err(Error::unavailable("find a slot for log lines"))
    }
}
