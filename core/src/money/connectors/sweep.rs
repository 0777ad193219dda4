//! Sweeps of orders that nothing holds back any more where no request has commanded what follows:
//! payouts of purchases and transfers of sales.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::payouts::command_payout;
use super::transfers::command_transfer;
use crate::Core;
use crate::platform::db::retrying_statement;
use crate::platform::error::{Error, Result};
use crate::platform::sweeps;
use crate::trading::orders::column::id;
use rampart_types::{ClientId, OrderKey};

/// Orders of one batch: partner by partner in turns, of each the one that has waited longest first.
const BATCH_ORDERS: i64 = 100;
/// Most batches of one run; the rest waits for the next one.
const BATCHES_MAX: u32 = 20;

impl Core {
    /// Commands the payouts of paid orders that nothing holds back any more. Several edges may run it
    /// at once: a payout is commanded once. One that cannot be commanded, or whose order somebody
    /// holds, is passed over.
    ///
    /// # Errors
    /// When the database cannot be used; the next run continues.
    pub async fn command_payouts(&self) -> Result<()> {
        Sweep::Payouts.run(self).await
    }

    /// Commands the transfers of sales whose coins have arrived at an address of the pool, where their
    /// arrival did not, once nothing holds them back any more. Several edges may run it at once, and
    /// it passes over, as [`Core::command_payouts`].
    ///
    /// # Errors
    /// When the database cannot be used; the next run continues.
    pub async fn command_transfers(&self) -> Result<()> {
        Sweep::Transfers.run(self).await
    }
}

/// The kind of command that is due.
#[derive(Clone, Copy)]
enum Sweep {
    Payouts,
    Transfers,
}

/// An order whose command is due.
struct Due {
    updated_at: DateTime<Utc>,
    client_id: Uuid,
    order_id: i64,
}

/// The last order of each partner that a run has passed, in three columns.
#[derive(Default)]
struct Passed {
    clients: Vec<Uuid>,
    updated_at: Vec<DateTime<Utc>>,
    orders: Vec<i64>,
}

impl Passed {
    /// Passes an order, which is behind those of its partner before.
    fn pass(&mut self, due: &Due) {
        match self.clients.iter().position(|client| *client == due.client_id) {
            Some(known) => {
                self.updated_at[known] = due.updated_at;
                self.orders[known] = due.order_id;
            }
            None => {
                self.clients.push(due.client_id);
                self.updated_at.push(due.updated_at);
                self.orders.push(due.order_id);
            }
        }
    }
}

impl Sweep {
    /// The name in metrics and logs.
    const fn name(self) -> &'static str {
        match self {
            Self::Payouts => "payouts",
            Self::Transfers => "transfers",
        }
    }

    async fn run(self, core: &Core) -> Result<()> {
        let mut run = sweeps::Sweep::new(&core.metrics, self.name());
        let mut passed = Passed::default();
        for _ in 0..BATCHES_MAX {
            let due = match self {
                Self::Payouts => payouts_due(core, &passed).await?,
                Self::Transfers => transfers_due(core, &passed).await?,
            };
            let rows = due.iter().map(|row| (row.client_id, row.order_id)).collect();
            run.settle(rows, |client, number| self.command(core, client, number)).await?;
            if due.len() < usize::try_from(BATCH_ORDERS).unwrap_or(usize::MAX) {
                break;
            }
            due.iter().for_each(|row| passed.pass(row));
        }
        Ok(())
    }

    /// Commands what is due for one order, unless something holds it back since it was read. True, as
    /// [`sweeps::Sweep::settle`] asks for: nobody counts them.
    async fn command(self, core: &Core, client: ClientId, number: i64) -> Result<bool> {
        let key = OrderKey { client, order: id(number)? };
        let command = async || {
            let mut tx = core.db.begin().await?;
            match self {
                Self::Payouts => command_payout(&mut tx, core, key).await?,
                Self::Transfers => command_transfer(&mut tx, core, key).await?,
            }
            Ok::<_, Error>(tx.commit().await?)
        };
        retrying_statement(command).await?;
        Ok(true)
    }
}

/// Selects orders whose command is due, by the tables and conditions that the two kinds do not share:
/// of each partner with orders under way those behind the last one that was passed, and that nobody
/// holds. Partners take turns, so that thousands of orders of one delay nobody else's. `$1` is the
/// gate of live partners.
macro_rules! select_due {
    ($core:ident, $passed:ident, $under_way:literal, $due:literal) => {
        sqlx::query_as!(
            Due,
            "with recursive lane as ( \
                 (select o.client_id from "
                + $under_way
                + " order by o.client_id limit 1) \
                 union all \
                 select next.client_id from lane l cross join lateral ( \
                     select o.client_id from "
                + $under_way
                + " and o.client_id > l.client_id order by o.client_id limit 1) next \
             ), found as materialized ( \
                 select d.* from ( \
                     select l.client_id, coalesce(p.updated_at, '-infinity') as updated_at, \
                         coalesce(p.order_id, 0) as order_id \
                     from lane l left join unnest($3::uuid[], $4::timestamptz[], $5::bigint[]) \
                         as p (client_id, updated_at, order_id) on p.client_id = l.client_id \
                     order by random() \
                 ) passed cross join lateral ( \
                     select o.updated_at, o.client_id, o.order_id "
                + $due
                + " \
                         and o.client_id = passed.client_id and o.status = 'in progress' \
                         and not g.is_held \
                         and (o.updated_at, o.order_id) > (passed.updated_at, passed.order_id) \
                     order by o.updated_at, o.order_id limit $2 \
                     for no key update of o skip locked \
                 ) d \
                 limit $2 * 4 \
             ) \
             select updated_at as \"updated_at!\", client_id as \"client_id!\", \
                 order_id as \"order_id!\" \
             from (select f.*, row_number() over ( \
                 partition by client_id order by updated_at, order_id) as turn from found f) placed \
             order by turn, updated_at, client_id limit $2",
            $core.settings.compliance.gate_of_live().as_str(),
            BATCH_ORDERS,
            &$passed.clients,
            &$passed.updated_at,
            &$passed.orders,
        )
        .fetch_all(&$core.db)
        .await
    };
}

async fn payouts_due(core: &Core, passed: &Passed) -> Result<Vec<Due>, sqlx::Error> {
    select_due!(
        core,
        passed,
        "buy_order o where o.status = 'in progress' and o.transaction_id is null",
        "from buy_order o cross join payout_gate(o.client_id, o.order_id, $1) g \
         where o.transaction_id is null \
             and (o.is_dca_order \
                 or exists (select from command c where c.client_id = o.client_id \
                     and c.order_id = o.order_id and c.kind = 'payment.create') \
                 or exists (select from client k \
                     where k.client_id = o.client_id and k.mode = 'test')) \
             and not exists (select from command c where c.client_id = o.client_id \
                 and c.order_id = o.order_id and c.kind = 'payout.send' and c.state <> 'rejected')"
    )
}

async fn transfers_due(core: &Core, passed: &Passed) -> Result<Vec<Due>, sqlx::Error> {
    select_due!(
        core,
        passed,
        "sell_order o where o.status = 'in progress'",
        "from sell_order o join client k on k.client_id = o.client_id \
         cross join transfer_gate(o.client_id, o.order_id, $1) g \
         where (k.mode = 'test' or exists (select from deposit_address d \
                 where d.taken_by = o.client_id and d.taken_for = o.order_id)) \
             and not exists (select from command c where c.client_id = o.client_id \
                 and c.order_id = o.order_id and c.kind = 'transfer.send' \
                 and c.state <> 'rejected') \
             and least(o.fiat_amount, ( \
                 select p.amount from payment p \
                 where p.client_id = o.client_id and p.order_id = o.order_id \
                     and p.kind = 'transfer-returned' and p.currency = o.fiat_currency \
                 order by p.recorded_at desc, p.payment_id desc limit 1)) \
             <= (select coalesce(-sum(l.amount), 0) from ledger_entry e \
                 join ledger_posting l on l.client_id = e.client_id and l.entry_id = e.entry_id \
                 join ledger_account a \
                     on a.client_id = l.client_id and a.account_id = l.account_id \
                 where e.client_id = o.client_id and e.order_id = o.order_id \
                     and a.kind = 'payout_payable' and a.currency = o.fiat_currency)"
    )
}
