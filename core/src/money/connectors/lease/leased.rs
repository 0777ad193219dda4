//! Leased commands, as the database has them and as connectors get them.

use chrono::{DateTime, Utc};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::Core;
use crate::money::connectors::cancellations;
use crate::money::connectors::commands::{self, CommandKind, body_context};
use crate::platform::db::Connection;
use crate::platform::error::{Error, Result};
use crate::platform::telemetry::{SpanKind, StoredTrace};

/// A leased command as stored.
pub(super) struct LeasedRow {
    pub(super) client_id: Uuid,
    pub(super) order_id: Option<i64>,
    pub(super) user_id: Option<Uuid>,
    pub(super) command_id: Uuid,
    pub(super) kind: String,
    pub(super) attempt: i32,
    pub(super) created_at: DateTime<Utc>,
    pub(super) leased_until: DateTime<Utc>,
    pub(super) checkpoint: Option<String>,
    pub(super) sealed_body: Vec<u8>,
    pub(super) traceparent: Option<String>,
    pub(super) tracestate: Option<String>,
}

impl LeasedRow {
    /// # Errors
    /// When it cannot be opened, or the database cannot be read.
    pub(super) async fn open(
        self,
        conn: &mut Connection,
        core: &Core,
        lease_token: Uuid,
    ) -> Result<Leased> {
        let checkpoint = self.checkpoint.as_deref().map(serde_json::from_str).transpose();
        let context = body_context(self.client_id, self.command_id);
        let mut body =
            commands::open(&core.cipher(self.client_id.into()), &context, &self.sealed_body)?;
        if self.kind == CommandKind::PaymentCancel.as_str() {
            cancellations::name_payment(conn, core, self.client_id, &mut body).await?;
        }
        Ok(Leased {
            client: self.client_id,
            order: self.order_id,
            user: self.user_id,
            id: self.command_id,
            kind: self.kind,
            attempt: self.attempt,
            created_at: self.created_at,
            lease_token,
            leased_until: self.leased_until,
            checkpoint: checkpoint
                .map_err(|e| Error::internal("read a checkpoint", e))?
                .unwrap_or_default(),
            body,
            trace: StoredTrace { traceparent: self.traceparent, tracestate: self.tracestate },
        })
    }
}

/// A leased command.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "LeasedCommand")]
#[serde(rename_all = "camelCase")]
pub struct Leased {
    #[serde(skip)]
    pub(crate) client: Uuid,
    #[serde(skip)]
    pub(crate) order: Option<i64>,
    #[serde(skip)]
    pub(crate) user: Option<Uuid>,
    /// The command's for good: the idempotency key at a provider.
    pub(crate) id: Uuid,
    /// Such as `payout.send`.
    pub(crate) kind: String,
    /// 1 at its first lease.
    attempt: i32,
    /// When it was commanded.
    pub(super) created_at: DateTime<Utc>,
    /// Proves the lease in the calls that follow.
    pub(crate) lease_token: Uuid,
    /// The end of the lease: another connector of the same name may lease it then.
    leased_until: DateTime<Utc>,
    /// The last checkpoint; null without one.
    #[schemars(with = "Option<Map<String, Value>>")]
    checkpoint: Value,
    /// Members of the command, as its kind has them.
    #[schemars(with = "Map<String, Value>")]
    pub(crate) body: Value,
    #[serde(flatten)]
    pub(crate) trace: StoredTrace,
}

impl Leased {
    /// The same, with the span of its lease as what the connector goes on with.
    pub(super) fn traced(mut self, core: &Core, connector: &str) -> Self {
        let Some(trace) = self.trace.context() else { return self };
        let name = format!("lease {}", self.kind);
        if let Some(mut span) = core.telemetry.resume(Some(trace), SpanKind::Internal, name) {
            span.set("rampart.command_id", &self.id.to_string());
            span.set("rampart.connector", connector);
            span.set_number("rampart.attempt", self.attempt);
            self.trace = StoredTrace::from(span.context());
        }
        self
    }
}
