//! Money that waits, as metrics: commands, payments, orders, connectors, and the check of the books.

use std::collections::BTreeMap;

use rust_decimal::prelude::ToPrimitive as _;

use crate::Core;
use crate::money::connectors::commands::CommandKind;
use crate::platform::counted::counted;
use crate::platform::error::Result;
use crate::platform::metrics::{Measurement, Metrics};
use crate::tenancy::tenants::Mode;
use rampart_types::JsonDecimal;

/// Most rows of a kind that are counted.
const COUNTED_MAX: i64 = 10_000;
/// Most orders of a class, side and state whose gate is asked, the oldest first.
const GATED_ORDERS_MAX: i64 = 5_000;
/// States of payments that wait for an operator.
const WAITING: [&str; 2] = ["unmatched", "suspense"];
/// States in which an order may be stuck.
const OPEN: [&str; 2] = ["in progress", "blocked"];
/// States of orders that are not final.
const COUNTED: [&str; 3] = ["pending", OPEN[0], OPEN[1]];
/// Sides of orders, seen from the user.
const SIDES: [&str; 2] = ["buy", "sell"];
/// Classes of partners.
const CLASSES: [Mode; 2] = [Mode::Test, Mode::Live];
/// Age of the last check of the books beyond which `/readyz` warns, in seconds: six hours.
const CHECK_AGE_MAX: i64 = 6 * 60 * 60;

impl Core {
    /// Measures what waits in the database, of all edges together.
    ///
    /// # Errors
    /// When something cannot be read; its metrics stay as they are, until they are too old, and the
    /// others are measured.
    pub async fn measure_money(&self) -> Result<()> {
        // Whatever one of them fails at: the state of the books has an alert of its own.
        let measured = [
            self.measure_commands().await,
            self.measure_payments().await,
            self.measure_orders().await,
            self.count_orders().await,
            self.measure_connectors().await,
            self.measure_books().await,
        ];
        measured.into_iter().collect()
    }

    /// Commands that wait for connectors outside: all are read, so that however many of one kind hide
    /// none of another.
    async fn measure_commands(&self) -> Result<()> {
        let found = sqlx::query!(
            r#"
            select kind as "kind!", least(count(*), $1) as "waiting!",
                greatest(extract(epoch from now() - min(created_at)), 0)::bigint as "age!"
            from command
            where state = 'open' and connector is distinct from 'sandbox'
            group by kind
            "#,
            COUNTED_MAX,
        )
        .fetch_all(&self.db)
        .await?;
        self.measured(Measurement::Commands);
        for kind in CommandKind::ALL.map(CommandKind::as_str) {
            let row = found.iter().find(|row| row.kind == kind);
            let (waiting, age) = row.map_or((0, 0), |row| (row.waiting, row.age));
            self.metrics.commands_open.with_label_values(&[kind]).set(waiting);
            self.metrics.command_age.with_label_values(&[kind]).set(age);
        }
        Ok(())
    }

    async fn measure_payments(&self) -> Result<()> {
        let found = sqlx::query!(
            r#"
            select case when order_id is null then 'unmatched' else 'suspense' end as "state!",
                least(count(*), $1) as "waiting!",
                greatest(extract(epoch from now() - min(since)), 0)::bigint as "age!"
            from money_waiting()
            group by 1
            "#,
            COUNTED_MAX,
        )
        .fetch_all(&self.db)
        .await?;
        self.measured(Measurement::Payments);
        for state in WAITING {
            let row = found.iter().find(|row| row.state == state);
            let (waiting, age) = row.map_or((0, 0), |row| (row.waiting, row.age));
            self.metrics.payments_waiting.with_label_values(&[state]).set(waiting);
            self.metrics.payment_age.with_label_values(&[state]).set(age);
        }
        Ok(())
    }

    /// The oldest order of each side and state, without those that wait for their user. One whose user is
    /// disabled or whose screening is not clear waits for an operator, and so does a sale whose account is
    /// disabled, or that has none.
    async fn measure_orders(&self) -> Result<()> {
        let found = sqlx::query!(
            r#"
            select o.mode as "mode!", o.side as "side!", o.status as "status!",
                greatest(extract(epoch from now() - min(o.updated_at)), 0)::bigint as "age!"
            from (
                select b.mode, 'buy' as side, b.status, b.updated_at from (
                    select c.mode, b.client_id, b.order_id, b.status, b.updated_at,
                        row_number() over (partition by c.mode, b.status
                            order by b.updated_at) as place
                    from buy_order b join client c on c.client_id = b.client_id
                    where b.status = any ($2)
                        and b.status not in ('pending', 'completed', 'cancelled')
                ) b
                cross join payout_gate(b.client_id, b.order_id, $1) g
                where b.place <= $3 and (b.status = 'blocked' or not g.is_held
                    or g.holds && array['user', 'screening-review'])
                union all
                select l.mode, 'sell', l.status, l.updated_at from (
                    select c.mode, l.client_id, l.order_id, l.status, l.updated_at, l.user_id,
                        l.account_id,
                        row_number() over (partition by c.mode, l.status
                            order by l.updated_at) as place
                    from sell_order l join client c on c.client_id = l.client_id
                    where l.status = any ($2) and l.status not in ('completed', 'cancelled')
                ) l
                cross join transfer_gate(l.client_id, l.order_id, $1) g
                where l.place <= $3 and (l.status = 'blocked' or not g.is_held
                    or g.holds && array['user', 'account', 'screening-review']
                    or is_sale_without_account(l.mode, l.user_id, l.account_id))
            ) o
            group by o.mode, o.side, o.status
            "#,
            self.settings.compliance.gate_of_live().as_str(),
            &OPEN.map(str::to_owned),
            GATED_ORDERS_MAX,
        )
        .fetch_all(&self.db)
        .await?;
        self.measured(Measurement::OrderAges);
        for class in CLASSES.map(Mode::as_str) {
            for (side, status) in SIDES.into_iter().flat_map(|side| OPEN.map(|state| (side, state)))
            {
                let row = found
                    .iter()
                    .find(|row| row.mode == class && row.side == side && row.status == status);
                let age = row.map_or(0, |row| row.age);
                self.metrics.order_age.with_label_values(&[class, side, status]).set(age);
            }
        }
        Ok(())
    }

    /// Orders that are not final, by side and state.
    async fn count_orders(&self) -> Result<()> {
        let found = sqlx::query!(
            r#"
            select s.status as "status!",
                case s.status when 'pending'
                    then (select count(*) from (select from buy_order b
                        where b.status = 'pending' limit $1) pending)
                    else (select count(*) from (select from buy_order b
                        where b.status = s.status
                            and b.status not in ('pending', 'completed', 'cancelled')
                        limit $1) under_way)
                end as "bought!",
                (select count(*) from (select from sell_order l
                    where l.status = s.status and l.status not in ('completed', 'cancelled')
                    limit $1) sold) as "sold!"
            from unnest($2::text[]) s (status)
            "#,
            COUNTED_MAX,
            &COUNTED.map(str::to_owned),
        )
        .fetch_all(&self.db)
        .await?;
        self.measured(Measurement::OrderCounts);
        for row in found {
            for (side, orders) in SIDES.into_iter().zip([row.bought, row.sold]) {
                self.metrics.orders_open.with_label_values(&[side, &row.status]).set(orders);
            }
        }
        Ok(())
    }

    /// Connectors that a route leads to, or that have something to do.
    async fn measure_connectors(&self) -> Result<()> {
        let found = sqlx::query!(
            r#"
            select name, greatest(extract(epoch from
                now() - coalesce(last_contact_at, created_at)), 0)::bigint as "silent!"
            from connector c
            where not c.runs_inside
                and (exists (select from route r where r.connector = c.name)
                    or exists (select from command d
                        where d.connector = c.name and d.state = 'open'))
            "#,
        )
        .fetch_all(&self.db)
        .await?;
        self.measured(Measurement::Connectors);
        self.metrics.connector_silence.reset();
        for row in found {
            self.metrics.connector_silence.with_label_values(&[&row.name]).set(row.silent);
        }
        Ok(())
    }

    pub(crate) async fn measure_books(&self) -> Result<()> {
        let last = sqlx::query!(
            r#"
            select finished_problems, treasury as "treasury: sqlx::types::Json<BTreeMap<String, JsonDecimal>>",
                greatest(extract(epoch from now() - coalesce(finished_at, created_at)), 0)::bigint
                    as "age!"
            from ledger_check
            "#,
        )
        .fetch_one(&self.db)
        .await?;
        let reported = sqlx::query!(
            r#"select asset, sum(amount) as "amount!" from connector_balance group by asset"#,
        )
        .fetch_all(&self.db)
        .await?;
        self.found(Measurement::Books, books_off(last.finished_problems, last.age));
        let Metrics { ledger_check_age, ledger_problems, treasury, .. } = &self.metrics;
        ledger_check_age.with_label_values::<&str>(&[]).set(last.age);
        ledger_problems.with_label_values::<&str>(&[]).set(last.finished_problems);
        treasury.reset();
        for (asset, amount) in &last.treasury.0 {
            let amount = amount.0.to_f64().unwrap_or_default();
            treasury.with_label_values(&[asset.as_str(), "books"]).set(amount);
        }
        for row in reported {
            let amount = row.amount.to_f64().unwrap_or_default();
            treasury.with_label_values(&[row.asset.as_str(), "chain"]).set(amount);
        }
        Ok(())
    }
}

/// The reason the books must be looked at, if they must.
fn books_off(problems: i64, age_seconds: i64) -> Option<String> {
    if problems > 0 {
        let places = counted(problems, "place", "places");
        return Some(format!("degraded: the books are off in {places}"));
    }
    (age_seconds > CHECK_AGE_MAX)
        .then(|| format!("degraded: the books were last checked {age_seconds} s ago"))
}
