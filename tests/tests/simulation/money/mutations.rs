//! The books broken on purpose: a check that finds nothing then is none.

use std::sync::Arc;

use rust_decimal::Decimal;
use sqlx::{AssertSqlSafe, PgPool};

use super::books::Books;
use super::model;
use super::truth::{Fate, Outgoing};
use super::world::World;

/// Tables whose rows nobody may change, with their keys.
const TABLES: [(&str, &str); 6] = [
    ("payment", "payment_id"),
    ("payment_report", "payment_id"),
    ("payment_refund", "refund_id"),
    ("payment_refund_withdrawal", "refund_id"),
    ("ledger_entry", "entry_id"),
    ("ledger_posting", "entry_id, line"),
];

/// A payment of a purchase that nothing refers to but its report and its entry.
const PAYMENT: &str = "(select p.payment_id from payment p join buy_order o using (client_id, order_id) \
    where p.kind = 'received' and p.connector <> 'manual' and not p.suspense \
    and not exists (select from payment_refund r where r.payment_id = p.payment_id) \
    order by p.payment_id limit 1)";
/// An entry that moves coins out for a purchase.
const SENT: &str = "(select entry_id from ledger_entry where kind = 'payout-sent' and order_id in \
    (select order_id from buy_order where order_id not in (select order_id from ledger_entry \
        where kind = 'payout-returned' and order_id is not null)) order by entry_id limit 1)";

/// A way to break the books: its name, its statements, and what must be found.
struct Mutation {
    name: &'static str,
    statements: Vec<String>,
    finding: &'static str,
}

impl Mutation {
    fn new(name: &'static str, finding: &'static str, statements: &[String]) -> Self {
        Self { name, statements: statements.to_vec(), finding }
    }
}

/// Payments that are lost, invented, or booked wrongly.
fn of_payments() -> Vec<Mutation> {
    let of_payment = format!(
        "(select entry_id from ledger_entry where payment_id = {PAYMENT} \
        and kind = 'received')"
    );
    let entries = format!("(select entry_id from ledger_entry where payment_id = {PAYMENT})");
    vec![
        Mutation::new(
            "a payment left out of the books",
            "entries moved",
            &[
                format!("delete from ledger_posting where entry_id = {of_payment}"),
                format!("delete from ledger_entry where entry_id = {of_payment}"),
            ],
        ),
        Mutation::new(
            "a payment lost",
            "was told, and is no payment",
            &[
                format!("create temporary table lost on commit drop as select {PAYMENT} as id"),
                format!("delete from ledger_posting where entry_id in {entries}"),
                format!("delete from ledger_entry where entry_id in {entries}"),
                "delete from payment_report where payment_id = (select id from lost)".to_owned(),
                "delete from payment where payment_id = (select id from lost)".to_owned(),
            ],
        ),
        Mutation::new(
            "a payment invented",
            "was never told",
            &[format!(
                "insert into payment (client_id, payment_id, connector, provider_reference, kind, amount, currency, \
             suspense, actor, occurred_at) select client_id, gen_random_uuid(), connector, 'invented', \
             'dispute-lost', amount, currency, true, actor, now() from payment where payment_id = {PAYMENT}"
            )],
        ),
        Mutation::new(
            "a payment booked at twice its amount",
            "entries moved",
            &[format!(
                "update ledger_posting set amount = amount * 2 where entry_id = {of_payment}"
            )],
        ),
        Mutation::new(
            "an entry moved to nobody",
            "order",
            &[format!("update ledger_entry set order_id = null where entry_id = {of_payment}")],
        ),
        Mutation::new(
            "more given back than came",
            "more is given back",
            &[format!(
                "insert into payment_refund (client_id, refund_id, payment_id, amount, actor) \
             select client_id, gen_random_uuid(), payment_id, amount + 1, 'test' from payment \
             where payment_id = {PAYMENT}"
            )],
        ),
    ]
}

/// Payouts that are booked wrongly.
fn of_payouts() -> Vec<Mutation> {
    vec![
        Mutation::new(
            "a posting deleted",
            "does not balance",
            &[format!("delete from ledger_posting where entry_id = {SENT} and line = 1")],
        ),
        Mutation::new(
            "a payout booked twice",
            "the facts say",
            &[
                format!(
                    "insert into ledger_entry (client_id, entry_id, kind, order_id, payment_id, occurred_at) \
                select client_id, 'ffffffff-ffff-7fff-bfff-ffffffffffff', kind, order_id, payment_id, occurred_at \
                from ledger_entry where entry_id = {SENT}"
                ),
                format!(
                    "insert into ledger_posting (client_id, entry_id, line, account_id, amount) \
                select client_id, 'ffffffff-ffff-7fff-bfff-ffffffffffff', line, account_id, amount \
                from ledger_posting where entry_id = {SENT}"
                ),
            ],
        ),
        Mutation::new(
            "an entry moved to another order",
            "the facts say",
            &[format!(
                "update ledger_entry e set order_id = (select order_id from buy_order o \
             where o.client_id = e.client_id and o.order_id <> e.order_id limit 1) where entry_id = {SENT}"
            )],
        ),
    ]
}

/// Everything that the production check and the model find.
async fn found(world: &Arc<World>) -> Vec<String> {
    let mut found = world.ledger_check().await;
    let books = Books::read(world.contexts[0].db()).await;
    found.extend(model::problems(&books, &world.truth.lock()));
    found
}

async fn run(db: &PgPool, statements: &[String]) {
    let mut tx = db.begin().await.unwrap();
    for statement in statements {
        let run = sqlx::query(AssertSqlSafe(statement.clone())).execute(&mut *tx).await;
        run.unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
    tx.commit().await.unwrap();
}

/// Breaks the books of a run in every way, one after the other, and demands that each is found.
pub(crate) async fn each_is_found(world: &Arc<World>) {
    let db = world.contexts[0].db();
    assert_eq!(found(world).await, [""; 0]);
    let keep = TABLES.iter().flat_map(|(table, _)| {
        [
            format!("alter table {table} disable trigger user"),
            format!("create table kept_{table} (like {table})"),
            format!("insert into kept_{table} table {table}"),
        ]
    });
    run(db, &keep.collect::<Vec<_>>()).await;
    for mutation in of_payments().into_iter().chain(of_payouts()) {
        run(db, &mutation.statements).await;
        let found = found(world).await;
        let is_found = found.iter().any(|text| text.contains(mutation.finding));
        assert!(is_found, "{}: {found:?}", mutation.name);
        run(db, &restoration()).await;
    }
    a_state_without_its_facts(world).await;
    coins_sent_twice(world).await;
    assert_eq!(found(world).await, [""; 0], "all is as it was");
}

/// Statements that bring back what was there.
fn restoration() -> Vec<String> {
    let delete = TABLES.iter().rev().map(|(table, key)| {
        format!("delete from {table} where ({key}) not in (select {key} from kept_{table})")
    });
    let insert = TABLES
        .iter()
        .map(|(table, _)| format!("insert into {table} table kept_{table} on conflict do nothing"));
    let update = [
        "update ledger_posting p set amount = k.amount from kept_ledger_posting k \
         where k.entry_id = p.entry_id and k.line = p.line and k.amount <> p.amount",
        "update ledger_entry e set order_id = k.order_id from kept_ledger_entry k \
         where k.entry_id = e.entry_id and k.order_id is distinct from e.order_id",
    ];
    delete.chain(insert).chain(update.map(str::to_owned)).collect()
}

async fn a_state_without_its_facts(world: &Arc<World>) {
    let db = world.contexts[0].db();
    for (from, to) in [
        ("cancelled", "in progress"),
        ("cancelled", "completed"),
        ("completed", "in progress"),
        ("completed", "refunded"),
    ] {
        let order: Option<i64> = sqlx::query_scalar(
            "select order_id from buy_order where status = $1 order by order_id limit 1",
        )
        .bind(from)
        .fetch_optional(db)
        .await
        .unwrap();
        let order = order.unwrap_or_else(|| panic!("the run has left no order {from}"));
        let set = |status: &str| {
            vec![format!("update buy_order set status = '{status}' where order_id = {order}")]
        };
        run(db, &set(to)).await;
        let found = found(world).await;
        let is_found = found.iter().any(|text| text.contains(&format!("order {order}")));
        assert!(is_found, "{from} as {to}: {found:?}");
        run(db, &set(from)).await;
    }
}

async fn coins_sent_twice(world: &Arc<World>) {
    let (id, order) = {
        let truth = world.truth.lock();
        let mut sent = truth.outgoing.iter();
        let (id, one) =
            sent.find(|(_, one)| one.command.is_some() && one.fate != Fate::Failed).unwrap();
        (format!("{id}-again"), Outgoing { amount: Decimal::ONE, ..one.clone() })
    };
    let unbooked = Outgoing { told_sent: false, told_arrived: false, ..order };
    world.truth.lock().send(&id, unbooked);
    let found = found(world).await;
    assert!(found.iter().any(|text| text.contains("sent twice")), "{found:?}");
    let mut truth = world.truth.lock();
    truth.outgoing.remove(&id);
    truth.violations.clear();
}
