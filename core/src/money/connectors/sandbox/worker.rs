//! The worker of the sandbox: it leases its commands, answers them, and reports later what follows.

use chrono::{DateTime, Utc};
use rampart_types::{ClientId, OrderKey};
use serde_json::json;
use uuid::Uuid;

use super::purchases::{self, Purchase};
use super::{
    LEASE_SECONDS, NAME, answer, answer_with, checks, lease_now, report_event, report_later, sales,
    transaction_id,
};
use crate::Core;
use crate::money::connectors::commands::CommandKind;
use crate::money::connectors::lease::{Leased, NewLease, lease};
use crate::money::connectors::result::{NewResult, Outcome};
use crate::platform::db::{Connection, retrying_statement};
use crate::platform::error::{Error, Result};
use crate::platform::telemetry::{Span, SpanKind, StoredTrace};
use crate::trading::orders::column::id;
use crate::trading::orders::state::{Cause, OrderStatus};
use crate::trading::orders::status::unless_forbidden;
use crate::trading::sandbox::{Scenario, SimulatedEvent, next};

/// Most commands, and most reports, of one run.
const BATCH: u16 = 50;
/// The sweep in metrics and logs.
const SWEEP: &str = "sandbox";

/// A command that is done, and whose consequence is to be reported.
struct DueReport {
    order: OrderKey,
    command: Uuid,
    kind: String,
    trace: StoredTrace,
    /// The end of this edge's claim on it.
    claimed_until: DateTime<Utc>,
}

impl Core {
    /// Carries out due commands of the sandbox about bought orders, and reports what follows those
    /// that are done, at most [`BATCH`] of each; returns their number. One that fails is logged and
    /// tried again after its lease. Several edges may run it at once.
    ///
    /// # Errors
    /// When they cannot be claimed.
    pub async fn settle_sandbox_orders(&self) -> Result<usize> {
        take_over_steps(self).await?;
        let kinds = CommandKind::ALL.into_iter().filter(|kind| *kind != CommandKind::TransferSend);
        let commands = lease_due(self, kinds).await?;
        // Claimed before commands are carried out: what follows one comes in a later run.
        let reports = claim_reports(self).await?;
        carry_out_all(self, SWEEP, &commands).await?;
        for report in &reports {
            let name = format!("report {}", report.kind);
            let work = Box::pin(follow_up(self, report));
            let done = in_trace(self, &report.trace, name, report.command, work).await;
            if let Err(error) = done {
                let OrderKey { client, order } = report.order;
                self.metrics.row_failed(SWEEP, client.uuid(), &order, error)?;
            }
        }
        Ok(commands.len() + reports.len())
    }
}

/// Takes over what edges of the version before have scheduled.
async fn take_over_steps(core: &Core) -> Result<()> {
    let taken = sqlx::query_scalar!(
        r#"
        with steps as materialized (select take_over_sandbox_steps() as taken)
        select taken as "taken!" from steps
        "#,
    )
    .fetch_one(&core.db)
    .await?;
    if taken > 0 {
        tracing::info!(taken, "the sandbox goes on with orders of the version before");
    }
    Ok(())
}

/// Carries out due commands of the sandbox about sales, as [`Core::settle_sandbox_orders`] those about
/// bought orders; returns their number.
///
/// # Errors
/// When they cannot be leased.
pub(crate) async fn settle_sales(core: &Core, sweep: &'static str) -> Result<usize> {
    let commands = lease_due(core, [CommandKind::TransferSend].into_iter()).await?;
    carry_out_all(core, sweep, &commands).await?;
    Ok(commands.len())
}

async fn carry_out_all(core: &Core, sweep: &'static str, commands: &[Leased]) -> Result<()> {
    for command in commands {
        let name = format!("carry out {}", command.kind);
        let work = Box::pin(carry_out(core, command));
        let done = in_trace(core, &command.trace, name, command.id, work).await;
        if let Err(error) = done {
            core.metrics.row_failed(sweep, command.client, &command.id, error)?;
        }
    }
    Ok(())
}

/// Runs `work` below the trace that its command was written in, if it was in one.
async fn in_trace(
    core: &Core,
    trace: &StoredTrace,
    name: String,
    command: Uuid,
    work: impl Future<Output = Result<()>>,
) -> Result<()> {
    let Some(trace) = trace.context() else { return work.await };
    let mut span = core.telemetry.resume(Some(trace), SpanKind::Internal, name);
    let done = span.as_ref().map(Span::scope).unwrap_or_default().run(work).await;
    if let Some(span) = &mut span {
        span.set("rampart.command_id", &command.to_string());
        if done.is_err() {
            span.fail("it is tried again");
        }
    }
    done
}

/// Carries out a command at once in the caller's transaction, unless an edge's worker has it already.
///
/// # Errors
/// When the database cannot be used.
pub(crate) async fn carry_out_now(
    conn: &mut Connection,
    core: &Core,
    kind: CommandKind,
    command: Uuid,
) -> Result<()> {
    if let Some(leased) = lease_now(conn, core, kind, command).await? {
        carry_out_in(conn, core, &leased).await?;
    }
    Ok(())
}

/// Leases due commands of these kinds.
async fn lease_due(core: &Core, kinds: impl Iterator<Item = CommandKind>) -> Result<Vec<Leased>> {
    let kinds: Vec<String> = kinds.map(|kind| kind.as_str().to_owned()).collect();
    let new =
        NewLease { connector: NAME, kinds: &kinds, max: BATCH, seconds: LEASE_SECONDS, only: None };
    lease(core, &new).await
}

/// Claims due reports, partner by partner in turns: many of one delay nobody else's.
async fn claim_reports(core: &Core) -> Result<Vec<DueReport>> {
    let rows = sqlx::query!(
        r#"
        with recursive lane as (
            (
                select client_id from command where report_due_at is not null
                order by client_id limit 1
            )
            union all
            select next.client_id
            from lane l cross join lateral (
                select client_id from command
                where report_due_at is not null and client_id > l.client_id
                order by client_id limit 1
            ) next
        ), found as materialized (
            select d.client_id, d.command_id, d.report_due_at
            from (select client_id from lane order by random()) l
            cross join lateral (
                select client_id, command_id, report_due_at from command
                where client_id = l.client_id and report_due_at <= rampart_now()
                order by report_due_at limit $1 for update skip locked
            ) d
            limit $1 * 4
        ), due as (
            select client_id, command_id from (
                select client_id, command_id, row_number() over (
                    partition by client_id order by report_due_at, command_id) as turn
                from found) placed
            order by turn, random() limit $1
        )
        update command c set report_due_at = rampart_now() + make_interval(secs => $2::int)
        from due where c.client_id = due.client_id and c.command_id = due.command_id
        returning c.client_id, c.order_id as "order_id!", c.command_id, c.kind,
            c.report_due_at as "claimed_until!", c.traceparent, c.tracestate
        "#,
        i64::from(BATCH),
        i32::from(LEASE_SECONDS),
    )
    .fetch_all(&core.db)
    .await?;
    let reports = rows.into_iter().map(|row| {
        let order = id(row.order_id)?;
        Ok(DueReport {
            order: OrderKey { client: row.client_id.into(), order },
            command: row.command_id,
            kind: row.kind,
            trace: StoredTrace { traceparent: row.traceparent, tracestate: row.tracestate },
            claimed_until: row.claimed_until,
        })
    });
    reports.collect()
}

/// Carries out a leased command, with all that follows at once, in one transaction.
async fn carry_out(core: &Core, command: &Leased) -> Result<()> {
    let attempt = async || {
        let mut tx = core.db.begin().await?;
        let causes = Box::pin(carry_out_in(&mut tx, core, command)).await?;
        tx.commit().await?;
        Ok::<_, Error>(causes)
    };
    Cause::count(core, retrying_statement(attempt).await?);
    Ok(())
}

async fn carry_out_in(conn: &mut Connection, core: &Core, command: &Leased) -> Result<Vec<Cause>> {
    let client = ClientId::from(command.client);
    let order = command.order.map(id).transpose()?.map(|order| OrderKey { client, order });
    match (CommandKind::from_name(&command.kind), order) {
        (Some(CommandKind::PayoutSend), Some(order)) => pay_out(conn, core, command, order).await,
        (Some(CommandKind::TransferSend), Some(sale)) => {
            sales::pay_out(conn, core, command, sale).await
        }
        (Some(CommandKind::PaymentRefund), _) => give_back(conn, core, command).await,
        (Some(CommandKind::CardVerify), _) => {
            let (outcome, result, reason) = checks::card(conn, core, command).await?;
            let new = NewResult::of_sandbox(command.lease_token, outcome, result);
            let causes = answer_with(conn, core, command, new.with_reason(reason)).await?;
            Ok(causes.unwrap_or_default())
        }
        (Some(CommandKind::WalletProviderVerify), _) => {
            let (outcome, result) = checks::wallet_account(command);
            Ok(answer(conn, core, command, outcome, result).await?.unwrap_or_default())
        }
        _ => {
            let causes = answer(conn, core, command, Outcome::Done, json!({})).await?;
            Ok(causes.unwrap_or_default())
        }
    }
}

/// Sends the coins of an order, unless its magic value has it held or given back instead: then they
/// have not left.
async fn pay_out(
    conn: &mut Connection,
    core: &Core,
    command: &Leased,
    order: OrderKey,
) -> Result<Vec<Cause>> {
    let purchase = Purchase::lock(conn, order).await?;
    let waits =
        |one: &Purchase| one.status == OrderStatus::InProgress && one.transaction_id.is_none();
    let Some(purchase) = purchase.filter(waits) else {
        let causes = answer(conn, core, command, Outcome::Rejected, json!({})).await?;
        return Ok(causes.unwrap_or_default());
    };
    match next(purchase.scenario(), purchase.cause, false) {
        // Money that has really come in is neither held nor given back by a magic value.
        Some(act @ (SimulatedEvent::Hold | SimulatedEvent::Refund)) if purchase.is_simulated => {
            if answer(conn, core, command, Outcome::Retry, json!({})).await?.is_none() {
                return Ok(Vec::new());
            }
            happen(conn, core, order, &purchase, act).await
        }
        _ => {
            let result = json!({ "transactionId": transaction_id(&core.clock)? });
            let causes = answer(conn, core, command, Outcome::Done, result).await?;
            if causes.is_some() {
                report_later(conn, core, order.client, command.id).await?;
            }
            Ok(causes.unwrap_or_default())
        }
    }
}

/// Gives a payment back.
async fn give_back(conn: &mut Connection, core: &Core, command: &Leased) -> Result<Vec<Cause>> {
    let reference = core.clock.uuid()?;
    let result = json!({ "providerReference": reference });
    let Some(mut causes) = answer(conn, core, command, Outcome::Done, result).await? else {
        return Ok(Vec::new());
    };
    let slug = sqlx::query_scalar!("select slug from client where client_id = $1", command.client);
    let members = json!({
        "partner": slug.fetch_one(&mut *conn).await?,
        "orderId": command.body["orderId"],
        "commandId": command.id,
        "providerReference": reference,
        "amount": command.body["amount"],
        "currency": command.body["currency"],
    });
    causes.extend(report_event(conn, core, "payment.refunded", NAME, members).await?);
    Ok(causes)
}

/// Reports what follows a command that is done: by the order's magic value, the events of its payment;
/// of coins that were sent, that they have arrived.
async fn follow_up(core: &Core, report: &DueReport) -> Result<()> {
    let attempt = async || {
        let mut tx = core.db.begin().await?;
        let causes = Box::pin(follow_up_in(&mut tx, core, report)).await?;
        tx.commit().await?;
        Ok::<_, Error>(causes)
    };
    Cause::count(core, retrying_statement(attempt).await?);
    Ok(())
}

async fn follow_up_in(
    conn: &mut Connection,
    core: &Core,
    report: &DueReport,
) -> Result<Vec<Cause>> {
    let order = report.order;
    let purchase = Purchase::lock(conn, order).await?;
    let claimed = sqlx::query!(
        "update command set report_due_at = null \
         where client_id = $1 and command_id = $2 and report_due_at = $3",
        order.client.uuid(),
        report.command,
        report.claimed_until,
    )
    .execute(&mut *conn)
    .await?;
    let (Some(purchase), 1) = (purchase, claimed.rows_affected()) else { return Ok(Vec::new()) };
    if report.kind == CommandKind::PayoutSend.as_str() {
        return happen(conn, core, order, &purchase, SimulatedEvent::ConfirmedOnChain).await;
    }
    let Some(step) = payment_step(purchase.scenario(), purchase.cause) else {
        return Ok(Vec::new());
    };
    let causes = happen(conn, core, order, &purchase, step).await?;
    if payment_step(purchase.scenario(), step.cause()).is_some() {
        report_later(conn, core, order.client, report.command).await?;
    }
    Ok(causes)
}

/// The next event of an order's payment, by its magic value; `None` where what follows is of its coins.
fn payment_step(scenario: Option<Scenario>, cause: Cause) -> Option<SimulatedEvent> {
    let is_of_payment = matches!(cause, Cause::Confirmed | Cause::PaymentAmountWrong);
    next(scenario, cause, false).filter(|_| is_of_payment)
}

/// Simulates an event of an order, whose row is locked; one that its state forbids does not happen.
async fn happen(
    conn: &mut Connection,
    core: &Core,
    order: OrderKey,
    purchase: &Purchase,
    simulated: SimulatedEvent,
) -> Result<Vec<Cause>> {
    let happened = purchases::happen(conn, core, order, purchase, simulated, NAME).await;
    Ok(unless_forbidden(happened)?.unwrap_or_default())
}
