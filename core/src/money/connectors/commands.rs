//! The queue of commands: effects on the outside, written in the transaction that wants them and
//! repeated until a connector has acknowledged them.

use rampart_types::{ClientId, OrderId, UserId};
use serde_json::{Value, json};
use uuid::Uuid;

use super::sandbox::timing::{self, Timing};
use crate::Core;
use crate::platform::crypto::tenant_key::TenantCipher;
use crate::platform::db::Connection;
use crate::platform::error::{Error, Result};
use crate::platform::telemetry::{StoredTrace, TraceScope};
use crate::tenancy::tenants::Tenant;
pub use crate::trading::catalogue::Direction;

/// Kind of a command, and the capability that a connector needs for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, schemars::JsonSchema, serde::Deserialize)]
pub enum CommandKind {
    /// Have a payment made: order, amount, currency, method, URLs, expiry.
    #[serde(rename = "payment.create")]
    PaymentCreate,
    /// Let nobody pay any more.
    #[serde(rename = "payment.cancel")]
    PaymentCancel,
    /// Give a payment back: the original's reference and the amount.
    #[serde(rename = "payment.refund")]
    PaymentRefund,
    /// Send coins: asset, address, tag, amount.
    #[serde(rename = "payout.send")]
    PayoutSend,
    /// Make addresses that coins can be sent to.
    #[serde(rename = "deposit.address")]
    DepositAddress,
    /// Transfer money to a bank account.
    #[serde(rename = "transfer.send")]
    TransferSend,
    /// Begin an identity check: partner, person, checks, locale, return URL, and `shareToken` of a check
    /// elsewhere if the partner has given one.
    #[serde(rename = "identity.start")]
    IdentityStart,
    /// Screen a wallet or a person.
    #[serde(rename = "screening.check")]
    ScreeningCheck,
    /// Verify a card.
    #[serde(rename = "card.verify")]
    CardVerify,
    /// Verify an account at a wallet provider.
    #[serde(rename = "wallet-provider.verify")]
    WalletProviderVerify,
}

rampart_types::named_values! {
    pub CommandKind {
        PaymentCreate = "payment.create",
        PaymentCancel = "payment.cancel",
        PaymentRefund = "payment.refund",
        PayoutSend = "payout.send",
        DepositAddress = "deposit.address",
        TransferSend = "transfer.send",
        IdentityStart = "identity.start",
        ScreeningCheck = "screening.check",
        CardVerify = "card.verify",
        WalletProviderVerify = "wallet-provider.verify",
    }
}

impl CommandKind {
    /// True if it checks a person, a card or a wallet, and moves nothing.
    pub(super) const fn is_check(self) -> bool {
        matches!(
            self,
            Self::IdentityStart
                | Self::ScreeningCheck
                | Self::CardVerify
                | Self::WalletProviderVerify
        )
    }

    /// True if it sends money or coins, which nothing takes back.
    pub(super) const fn sends(self) -> bool {
        matches!(self, Self::PaymentRefund | Self::PayoutSend | Self::TransferSend)
    }

    /// The kind by which a connector moves money, or else coins, in this direction.
    pub const fn of_route(direction: Direction, is_money: bool) -> Self {
        match (direction, is_money) {
            (Direction::In, true) => Self::PaymentCreate,
            (Direction::In, false) => Self::DepositAddress,
            (Direction::Out, true) => Self::TransferSend,
            (Direction::Out, false) => Self::PayoutSend,
        }
    }
}

/// The connector that a command is for.
#[derive(Clone, Debug)]
pub enum Target {
    /// This one, such as the one through which the money came.
    Connector(String),
    /// The one of the route of money by a payment method.
    Method {
        /// Users send it, or it is sent to them.
        direction: Direction,
        /// The payment method's code.
        method: String,
    },
    /// The one of the route of coins.
    Asset {
        /// Users send them, or they are sent to them.
        direction: Direction,
        /// The currency's code.
        asset: String,
    },
    /// This one, about an asset: its pool of deposit addresses.
    Pool {
        /// The connector's name.
        connector: String,
        /// The currency's code.
        asset: String,
    },
    /// Any that has the capability.
    Capability,
}

impl Target {
    /// The sandbox, the connector of test clients.
    pub(crate) fn sandbox() -> Self {
        Self::Connector(timing::NAME.to_owned())
    }

    /// The one that checks a tenant's users, their accounts and their wallets.
    pub(super) fn for_checks(tenant: &Tenant) -> Self {
        if tenant.is_test() { Self::sandbox() } else { Self::Capability }
    }
}

/// A command to be enqueued.
#[derive(Clone, Debug)]
pub struct Command {
    /// The partner.
    pub client: ClientId,
    /// The order that it is about, if it is about one: its commands are carried out in their order.
    pub order: Option<OrderId>,
    /// The person that it is about, if it is about one.
    pub user: Option<UserId>,
    /// Kind.
    pub kind: CommandKind,
    /// The name of the effect, unique for the partner for good: it is commanded once.
    pub idempotency_key: String,
    /// The connector that it is for.
    pub target: Target,
    /// The body that the connector gets: a JSON object.
    pub body: Value,
}

/// A command with its body sealed, ready to be written: by itself, or beside an order or a screening
/// by the statement that writes it.
#[derive(Clone, Debug)]
pub(crate) struct SealedCommand {
    id: Uuid,
    client: Uuid,
    order: Option<i64>,
    user: Option<Uuid>,
    pub(crate) kind: &'static str,
    pub(crate) idempotency_key: String,
    pub(crate) connector: Option<String>,
    pub(crate) direction: Option<&'static str>,
    pub(crate) method: Option<String>,
    pub(crate) asset: Option<String>,
    /// `None` if it is done as it is commanded: no connector gets it.
    pub(crate) sealed_body: Option<Vec<u8>>,
    /// The result of one that is done as it is commanded.
    pub(crate) sealed_result: Option<Vec<u8>>,
    pub(crate) state: &'static str,
    /// Time until it may be leased, in milliseconds.
    pub(crate) delay_ms: i64,
    /// Time until the sandbox reports what follows, in milliseconds.
    pub(crate) report_ms: Option<i64>,
    /// The trace that carrying it out goes on with.
    pub(super) trace: StoredTrace,
}

impl Command {
    /// Seals the body, which may name people and accounts.
    ///
    /// # Errors
    /// Without entropy.
    pub(crate) fn seal(self, core: &Core) -> Result<SealedCommand> {
        let id = core.clock.uuid()?;
        let is_simulated = matches!(&self.target, Target::Connector(name) if name == timing::NAME);
        let timing = Timing::of(core, self.kind, is_simulated);
        let (connector, direction, method, asset) = match self.target {
            Target::Connector(name) => (Some(name), None, None, None),
            Target::Method { direction, method } => (None, Some(direction), Some(method), None),
            Target::Asset { direction, asset } => (None, Some(direction), None, Some(asset)),
            Target::Pool { connector, asset } => (Some(connector), None, None, Some(asset)),
            Target::Capability => (None, None, None, None),
        };
        let sealed_body = if timing.is_done {
            None
        } else {
            let context = body_context(self.client.uuid(), id);
            Some(core.cipher(self.client).seal(&context, self.body.to_string().as_bytes())?)
        };
        Ok(SealedCommand {
            id,
            client: self.client.uuid(),
            order: self.order.map(OrderId::number),
            user: self.user.map(UserId::uuid),
            kind: self.kind.as_str(),
            idempotency_key: self.idempotency_key,
            connector,
            direction: direction.map(Direction::as_str),
            method,
            asset,
            sealed_body,
            sealed_result: None,
            state: if timing.is_done { "done" } else { "open" },
            delay_ms: timing.delay_ms,
            report_ms: None,
            trace: TraceScope::current().stored(),
        })
    }
}

impl SealedCommand {
    /// The command's id.
    pub(crate) const fn id(&self) -> Uuid {
        self.id
    }

    /// The same, whose consequence the sandbox reports after so many milliseconds.
    pub(crate) const fn reported_after(mut self, report_ms: Option<i64>) -> Self {
        self.report_ms = report_ms;
        self
    }

    /// The same, with the result of the sandbox.
    ///
    /// # Errors
    /// Without entropy.
    pub(super) fn with_result(mut self, core: &Core, result: &Value) -> Result<Self> {
        let context = result_context(self.client, self.id);
        let text = json!({ "result": result, "reason": null }).to_string();
        self.sealed_result = Some(core.keys.seal(&core.clock, &context, text.as_bytes())?);
        Ok(self)
    }

    /// Writes the command in the caller's transaction. `false` if its effect was commanded before:
    /// then nothing changes.
    ///
    /// # Errors
    /// The database's.
    pub(crate) async fn insert(&self, conn: &mut Connection) -> Result<bool, sqlx::Error> {
        let inserted = sqlx::query!(
            "insert into command (client_id, command_id, kind, order_id, idempotency_key, connector, \
                 direction, payment_method, asset, sealed_body, user_id, due_at, created_at, \
                 state, attempt, finished_at, sealed_result, traceparent, tracestate) \
             select $1::uuid, $2::uuid, $3::text, $4::bigint, $5::text, \
                 coalesce($6::text, route.connector), \
                 $7::text, $8::text, $9::text, $10::bytea, $11::uuid, \
                 rampart_now() + $12::bigint * interval '1 millisecond', clock_timestamp(), \
                 $13::text, case when $13::text = 'done' then 1 else 0 end, \
                 case when $13::text = 'done' then now() end, $14::bytea, $15::text, $16::text \
             from (select 1) one \
             left join leg_route($1::uuid, $7::text, $8::text, $9::text) route on true \
             on conflict on constraint command_idempotency_key_key do nothing",
            self.client,
            self.id,
            self.kind,
            self.order,
            self.idempotency_key,
            self.connector.as_deref(),
            self.direction,
            self.method.as_deref(),
            self.asset.as_deref(),
            self.sealed_body.as_deref(),
            self.user,
            self.delay_ms,
            self.state,
            self.sealed_result.as_deref(),
            self.trace.traceparent.as_deref(),
            self.trace.tracestate.as_deref(),
        )
        .execute(conn)
        .await?;
        Ok(inserted.rows_affected() == 1)
    }
}

/// Enqueues a command in the caller's transaction. `false` if its effect was commanded before: then
/// nothing changes.
///
/// # Errors
/// Without entropy, or when the database cannot be written.
pub async fn enqueue(conn: &mut Connection, core: &Core, command: Command) -> Result<bool> {
    Ok(command.seal(core)?.insert(conn).await?)
}

/// The context that a command's body is sealed for.
pub fn body_context(client: Uuid, command: Uuid) -> String {
    format!("command/{client}/{command}")
}

/// The context that a command's result is sealed for.
pub fn result_context(client: Uuid, command: Uuid) -> String {
    format!("command-result/{client}/{command}")
}

/// A sealed JSON value.
///
/// # Errors
/// When it cannot be opened, which is our fault.
pub fn open(cipher: &TenantCipher<'_>, context: &str, sealed: &[u8]) -> Result<Value> {
    let plain = cipher.open(context, sealed)?;
    serde_json::from_slice(&plain).map_err(|e| Error::internal("read a command", e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_round_trip() {
        for kind in CommandKind::ALL {
            assert_eq!(CommandKind::from_name(kind.as_str()), Some(kind));
            let read: CommandKind = serde_json::from_value(kind.as_str().into()).unwrap();
            assert_eq!(read, kind);
        }
    }
}
