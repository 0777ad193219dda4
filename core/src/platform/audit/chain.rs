//! The chain of the audit's rows, and its verification.

use chrono::{DateTime, Utc};
use serde::Serialize;
use uuid::Uuid;

use crate::Core;
use crate::platform::crypto::{MasterKey, Purpose, constant_time_eq};
use crate::platform::error::Result;

/// Rows of one statement.
const PAGE_ROWS: i64 = 2_000;

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Anchor {
    pub(crate) position: i64,
    pub(crate) mac: Vec<u8>,
}

impl Anchor {
    /// The reason why a row with this MAC does not come next; `None` if it does.
    fn refuses(
        &self,
        keys: &MasterKey,
        row: &ChainedRow<'_>,
        mac: &[u8],
    ) -> Result<Option<&'static str>> {
        if row.position != self.position + 1 {
            return Ok(Some("the row was taken out"));
        }
        let is_chained = constant_time_eq(&row.mac(keys, &self.mac)?, mac);
        Ok((!is_chained).then_some("the row was changed, or put in"))
    }
}

/// The first place where the chain does not hold.
#[derive(Debug, PartialEq, Eq, Serialize, schemars::JsonSchema)]
#[schemars(rename = "AuditBreak")]
#[serde(rename_all = "camelCase")]
pub(crate) struct Break {
    /// Its place in the chain.
    pub(super) position: i64,
    /// The finding, in words.
    pub(super) reason: &'static str,
}

/// The result of a verification.
#[derive(Debug)]
pub(crate) struct Verified {
    /// Rows that hold.
    pub(crate) rows: i64,
    /// The last one that does.
    pub(crate) end: Anchor,
    /// True if that is the end of the chain.
    pub(crate) complete: bool,
    /// The first place that does not hold.
    pub(crate) broken: Option<Break>,
}

impl Verified {
    fn broken_at(self, position: i64, reason: &'static str) -> Self {
        Self { broken: Some(Break { position, reason }), ..self }
    }
}

/// Verifies the rows behind `start`, at most `rows_max`.
pub(crate) async fn verify(core: &Core, start: Anchor, rows_max: i64) -> Result<Verified> {
    let mut tx = core.db.begin().await?;
    sqlx::query!("set transaction isolation level repeatable read, read only")
        .execute(&mut *tx)
        .await?;
    let head = sqlx::query!(
        r#"
        select position, mac, unchained,
            (select count(*) from audit where position is null) as "found_unchained!",
            (select max(position) from audit) as last,
            (select mac from audit where position = $1) as start_mac
        from audit_head
        "#,
        start.position,
    )
    .fetch_one(&mut *tx)
    .await?;
    let mut verified = Verified { rows: 0, end: start, complete: false, broken: None };
    if head.unchained != head.found_unchained {
        return Ok(verified.broken_at(0, "a row from before the chain was put in or taken out"));
    }
    if head.last.unwrap_or(0) != head.position {
        return Ok(
            verified.broken_at(head.position, "the end of the chain was taken out or put in")
        );
    }
    let begins_at = head.start_mac.unwrap_or_default();
    if !constant_time_eq(&begins_at, &verified.end.mac) {
        let position = verified.end.position;
        return Ok(verified.broken_at(position, "the row is not the one of this MAC"));
    }
    while verified.rows < rows_max && verified.end.position < head.position {
        let rows = sqlx::query!(
            r#"
            select position as "position!", mac as "mac!", audit_id, at, actor, action, target,
                detail::text as "detail!"
            from audit where position > $1 order by position limit $2
            "#,
            verified.end.position,
            PAGE_ROWS.min(rows_max - verified.rows),
        )
        .fetch_all(&mut *tx)
        .await?;
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
                let position = verified.end.position + 1;
                return Ok(verified.broken_at(position, reason));
            }
            verified.end = Anchor { position: row.position, mac: row.mac };
            verified.rows += 1;
        }
    }
    verified.complete = verified.end.position == head.position;
    if verified.complete && !constant_time_eq(&verified.end.mac, &head.mac) {
        return Ok(verified.broken_at(head.position, "the end of the chain was changed"));
    }
    Ok(verified)
}
