//! The chain of the audit's rows, and its verification.

use chrono::{DateTime, Utc};
use serde::Serialize;
use uuid::Uuid;

use super::archive::archived_end;
use crate::Core;
use crate::platform::crypto::{MasterKey, Purpose, constant_time_eq};
use crate::platform::db::Connection;
use crate::platform::error::Result;

/// Rows of one statement.
const PAGE_ROWS: i64 = 2_000;

/// The reason where a position has no row.
const TAKEN_OUT: &str = "the row was taken out";

/// A row with its place in the chain.
#[derive(Debug)]
pub(crate) struct ChainedRow<'a> {
    pub(super) position: i64,
    pub(super) id: Uuid,
    pub(super) at: DateTime<Utc>,
    pub(super) actor: &'a str,
    pub(super) action: &'a str,
    pub(super) target: &'a str,
    pub(super) detail: &'a str,
}

impl ChainedRow<'_> {
    /// The MAC of this row behind one with the MAC `previous`.
    ///
    /// # Errors
    /// As [`MasterKey::mac`].
    pub(super) fn mac(&self, keys: &MasterKey, previous: &[u8]) -> Result<Vec<u8>> {
        let (position, at) = (self.position.to_be_bytes(), self.at.timestamp_micros());
        let parts: [&[u8]; 8] = [
            previous,
            &position,
            self.id.as_bytes(),
            &at.to_be_bytes(),
            self.actor.as_bytes(),
            self.action.as_bytes(),
            self.target.as_bytes(),
            self.detail.as_bytes(),
        ];
        let mut message = Vec::new();
        for part in parts {
            message.extend((part.len() as u64).to_be_bytes());
            message.extend(part);
        }
        Ok(keys.mac(Purpose::Audit, &message)?.as_ref().to_vec())
    }
}

/// A place in the chain: the MAC there stands for every row up to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Anchor {
    /// Position of the last row that it covers.
    pub position: i64,
    /// MAC of that row.
    pub mac: Vec<u8>,
}

impl Anchor {
    /// The reason why a row with this MAC does not come next; `None` if it does.
    fn refuses(
        &self,
        keys: &MasterKey,
        row: &ChainedRow<'_>,
        mac: &[u8],
    ) -> Result<Option<&'static str>> {
        if row.position <= self.position {
            return Ok(Some("the row before was put in twice"));
        }
        if row.position != self.position + 1 {
            return Ok(Some(TAKEN_OUT));
        }
        let is_chained = constant_time_eq(&row.mac(keys, &self.mac)?, mac);
        Ok((!is_chained).then_some("the row was changed, or put in"))
    }
}

/// The first place where the chain does not hold.
#[derive(Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "AuditBreak")]
#[serde(rename_all = "camelCase")]
pub struct Break {
    /// Its place in the chain.
    pub(super) position: i64,
    /// The finding, in words.
    pub(super) reason: &'static str,
}

/// The result of a verification.
#[derive(Debug)]
pub struct Verified {
    /// The last row that is archived; zero if none is.
    pub archived: i64,
    /// Rows that hold.
    pub rows: i64,
    /// The last one that does.
    pub end: Anchor,
    /// True if that is the end of the chain.
    pub complete: bool,
    /// The first place that does not hold.
    pub broken: Option<Break>,
}

impl Verified {
    fn broken_at(self, position: i64, reason: &'static str) -> Self {
        Self { broken: Some(Break { position, reason }), ..self }
    }
}

/// Verifies the rows behind `start`, at most `rows_max`; where that is archived, the first ones left.
pub async fn verify(core: &Core, start: Anchor, rows_max: i64) -> Result<Verified> {
    let mut tx = core.db.begin().await?;
    sqlx::query!("set transaction isolation level repeatable read, read only")
        .execute(&mut *tx)
        .await?;
    let head = sqlx::query!(
        r#"
        select position, mac, unchained,
            (select count(*) from audit where position is null) as "found_unchained!",
            (select min(position) from audit) as first,
            (select max(position) from audit) as last,
            (select mac from audit where position = $1 limit 1) as start_mac
        from audit_head
        "#,
        start.position,
    )
    .fetch_one(&mut *tx)
    .await?;
    let archived = match head.first {
        Some(first) if first > 1 => archived_end(&mut tx, first).await?.unwrap_or_default(),
        Some(_) | None => Anchor::default(),
    };
    let is_left = start.position > archived.position;
    let begins_at = if is_left { head.start_mac.unwrap_or_default() } else { archived.mac.clone() };
    let mut verified = Verified {
        archived: archived.position,
        rows: 0,
        end: if start.position < archived.position { archived } else { start },
        complete: false,
        broken: None,
    };
    if head.unchained != head.found_unchained {
        return Ok(verified.broken_at(0, "a row from before the chain was put in or taken out"));
    }
    if head.last.unwrap_or(0) != head.position {
        return Ok(
            verified.broken_at(head.position, "the end of the chain was taken out or put in")
        );
    }
    if !constant_time_eq(&begins_at, &verified.end.mac) {
        let position = verified.end.position;
        return Ok(verified.broken_at(position, "the row is not the one of this MAC"));
    }
    while verified.rows < rows_max && verified.end.position < head.position {
        let rows = PAGE_ROWS.min(rows_max - verified.rows);
        if let Some(found) = verify_page(core, &mut tx, &mut verified, rows).await? {
            return Ok(verified.broken_at(found.position, found.reason));
        }
    }
    verified.complete = verified.end.position == head.position;
    if verified.complete && !constant_time_eq(&verified.end.mac, &head.mac) {
        return Ok(verified.broken_at(head.position, "the end of the chain was changed"));
    }
    Ok(verified)
}

/// Verifies the next rows, at most `rows_max`. Returns the first that does not hold.
async fn verify_page(
    core: &Core,
    conn: &mut Connection,
    verified: &mut Verified,
    rows_max: i64,
) -> Result<Option<Break>> {
    // One more than there may be: only within a month is a position unique.
    let rows = sqlx::query!(
        r#"
        select position as "position!", mac as "mac!", audit_id, at, actor, action, target,
            detail::text as "detail!"
        from audit where position > $1 and position <= $1 + $2 order by position limit $2 + 1
        "#,
        verified.end.position,
        rows_max,
    )
    .fetch_all(conn)
    .await?;
    if rows.is_empty() {
        let position = verified.end.position + 1;
        return Ok(Some(Break { position, reason: TAKEN_OUT }));
    }
    for row in rows {
        let chained = ChainedRow {
            position: row.position,
            id: row.audit_id,
            at: row.at,
            actor: &row.actor,
            action: &row.action,
            target: &row.target,
            detail: &row.detail,
        };
        if let Some(reason) = verified.end.refuses(&core.keys, &chained, &row.mac)? {
            return Ok(Some(Break { position: verified.end.position + 1, reason }));
        }
        verified.end = Anchor { position: row.position, mac: row.mac };
        verified.rows += 1;
    }
    Ok(None)
}
