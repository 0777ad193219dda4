//! Replays: the facts of a run, told to a fresh database in another order that keeps each provider's
//! own, must give the same books.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use rampart_core::money::payments::{PaymentKind, Report, record};
use rampart_tests::test_context::TestContext;
use rampart_types::{ClientId, OrderId};
use rust_decimal::Decimal;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, PgPool};
use uuid::Uuid;

use super::books::{Books, Order, Payment};
use super::dice::Dice;
use super::world::PARTNERS;

/// Orders of a run before anything has happened to them, and the facts.
pub(crate) struct Recorded {
    /// Rows by table, with the partner's slug.
    orders: Vec<(&'static str, Value, String)>,
    facts: Vec<(Payment, String)>,
    /// Orders whose books depend on which provider was first, by their facts.
    unordered: BTreeSet<i64>,
}

/// Balances by partner, order, kind of account and currency.
pub(crate) type Balances = BTreeMap<(String, Option<i64>, String, String), Decimal>;

impl Recorded {
    pub(crate) async fn of(db: &PgPool) -> Self {
        let books = Books::read(db).await;
        let slugs = slugs(db).await;
        let mut orders = Vec::new();
        for table in ["buy_order", "sell_order"] {
            let query = format!("select client_id, to_jsonb({table}) from {table}");
            let rows: Vec<(Uuid, Value)> =
                sqlx::query_as(AssertSqlSafe(query)).fetch_all(db).await.unwrap();
            let rows = rows.into_iter().map(|(client, row)| (table, row, slugs[&client].clone()));
            orders.extend(rows);
        }
        let unordered = books.orders.iter().filter(|order| is_unordered(&books.payments, order));
        let unordered = unordered.map(|order| order.order_id).collect();
        let facts = books.payments.into_iter().map(|fact| {
            let slug = slugs[&fact.client_id].clone();
            (fact, slug)
        });
        Self { orders, facts: facts.collect(), unordered }
    }

    /// Numbers of orders, and of those whose books are compared.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.orders.len(), self.orders.len() - self.unordered.len())
    }

    /// The facts as they were recorded, or with the providers' own orders interleaved anew.
    fn interleaved(&self, dice: Option<&mut Dice>) -> Vec<&(Payment, String)> {
        let Some(dice) = dice else { return self.facts.iter().collect() };
        let mut streams = BTreeMap::<&str, VecDeque<_>>::new();
        for fact in &self.facts {
            streams.entry(&fact.0.connector).or_default().push_back(fact);
        }
        let (mut streams, mut facts) = (Vec::from_iter(streams.into_values()), Vec::new());
        while !streams.is_empty() {
            let one = dice.below(streams.len());
            // Several at once, so that one provider may be far behind another.
            for _ in 0..1 + dice.below(40) {
                facts.extend(streams[one].pop_front());
            }
            streams.retain(|stream| !stream.is_empty());
        }
        facts
    }

    /// The balances that the facts give in a fresh database, and those of holdings alone, of all
    /// orders.
    pub(crate) async fn replay(&self, dice: Option<&mut Dice>) -> (Balances, Balances) {
        let context = Box::pin(TestContext::start()).await;
        for slug in PARTNERS {
            let body = json!({"slug": slug, "name": slug, "mode": "live"});
            Box::pin(context.partner_of(body)).await;
        }
        let clients: BTreeMap<String, Uuid> =
            slugs(context.db()).await.into_iter().map(|(id, slug)| (slug, id)).collect();
        for (table, row, slug) in &self.orders {
            insert(context.db(), table, pending(row.clone(), clients[slug])).await;
        }
        let core = context.core();
        for (fact, slug) in self.interleaved(dice) {
            let report = report(fact, clients[slug].into());
            let mut tx = core.db.begin().await.unwrap();
            let recorded = Box::pin(record(&mut tx, core, &report)).await.unwrap();
            assert!(!recorded.duplicate, "{fact:?}");
            tx.commit().await.unwrap();
        }
        let mut all = balances(context.db()).await;
        let mut holdings = all.clone();
        holdings.retain(|(_, _, kind, _), _| kind == "provider" || kind == "treasury");
        all.retain(|(_, order, ..), _| order.is_none_or(|order| !self.unordered.contains(&order)));
        (all, holdings)
    }
}

async fn slugs(db: &PgPool) -> BTreeMap<Uuid, String> {
    let rows: Vec<(Uuid, String)> =
        sqlx::query_as("select client_id, slug from client").fetch_all(db).await.unwrap();
    rows.into_iter().collect()
}

/// The row of an order that waits for its payment, for as long as the replay takes.
fn pending(mut row: Value, client: Uuid) -> Value {
    row["client_id"] = json!(client);
    row["status"] = json!("pending");
    row["expires_at"] = json!("2999-01-01T00:00:00Z");
    row["status_cause"] = json!("confirmed");
    if row.get("is_estimated_quote").is_some() {
        row["is_estimated_quote"] = json!(false);
    }
    for member in [
        "status_reason",
        "transaction_id",
        "paid_amount",
        "received_amount",
        "payment_reference",
        "settles_at",
    ] {
        if row.get(member).is_some() {
            row[member] = Value::Null;
        }
    }
    row
}

async fn insert(db: &PgPool, table: &str, row: Value) {
    let names: Vec<String> = row.as_object().unwrap().keys().cloned().collect();
    let names = names.join(", ");
    let statement = format!(
        "insert into {table} ({names}) select {names} from jsonb_populate_record(null::{table}, $1)"
    );
    sqlx::query(AssertSqlSafe(statement)).bind(row).execute(db).await.unwrap();
}

fn report(fact: &Payment, client: ClientId) -> Report {
    let is_transaction = fact.kind.starts_with("payout") || fact.kind == "deposit-received";
    Report {
        client: Some(client),
        connector: fact.connector.clone(),
        provider_reference: fact.provider_reference.clone(),
        original_reference: None,
        kind: PaymentKind::from_name(&fact.kind).unwrap(),
        amount: fact.amount,
        currency: fact.currency.clone(),
        order: fact.order_id.and_then(OrderId::new),
        transaction_id: is_transaction.then(|| fact.provider_reference.clone()),
        occurred_at: "2026-03-01T12:00:00Z".parse().unwrap(),
        actor: fact.actor.clone(),
        reason: None,
        raw: None,
    }
}

/// True for an order whose books depend on which of two providers was first: of two payments the first
/// one is what it waited for, and what is given back is the payment or, once it has left as coins, a
/// loss. What nobody wanted is given back by its provider whatever has become of the order.
fn is_unordered(facts: &[Payment], order: &Order) -> bool {
    let place = (order.client_id, Some(order.order_id));
    let facts = facts.iter().filter(|fact| (fact.client_id, fact.order_id) == place);
    let (mut arrivals, mut refunds, mut payouts) =
        (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let (mut is_paid, mut unwanted) = (false, BTreeMap::<_, Decimal>::new());
    for Payment { kind, connector, currency, amount, .. } in facts {
        match kind.as_str() {
            "received" | "deposit-received" => {
                arrivals.insert(connector);
                if is_paid || *currency != order.pays {
                    *unwanted.entry((connector, currency)).or_default() += amount;
                }
                is_paid |= *currency == order.pays;
            }
            "refunded" => match unwanted.get_mut(&(connector, currency)) {
                Some(left) if *left >= *amount => *left -= amount,
                _ => drop(refunds.insert(connector)),
            },
            "disputed" | "dispute-won" | "dispute-lost" => {}
            _ => drop(payouts.insert(connector)),
        }
    }
    let is_other = |one| refunds.iter().any(|refund| *refund != one);
    arrivals.len() > 1 || arrivals.iter().chain(&payouts).any(|one| is_other(*one))
}

pub(crate) async fn balances(db: &PgPool) -> Balances {
    let rows: Vec<(String, Option<i64>, String, String, Decimal)> = sqlx::query_as(
        "select c.slug, e.order_id, a.kind, a.currency, sum(l.amount) \
         from ledger_entry e join ledger_posting l using (client_id, entry_id) \
             join ledger_account a using (client_id, account_id) join client c using (client_id) \
         group by 1, 2, 3, 4 having sum(l.amount) <> 0",
    )
    .fetch_all(db)
    .await
    .unwrap();
    let key = |(slug, order, kind, currency, amount): (_, _, _, _, Decimal)| {
        ((slug, order, kind, currency), amount.normalize())
    };
    rows.into_iter().map(key).collect()
}

/// The lines in which two differ.
pub(crate) fn differences(one: &Balances, other: &Balances) -> Vec<String> {
    let keys: BTreeSet<_> = one.keys().chain(other.keys()).collect();
    let amount = |of: &Balances, key| of.get(key).copied().unwrap_or_default();
    let differ = keys.into_iter().filter(|key| amount(one, key) != amount(other, key));
    differ.map(|key| format!("{key:?}: {} and {}", amount(one, key), amount(other, key))).collect()
}
