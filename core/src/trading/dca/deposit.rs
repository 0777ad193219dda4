//! A deposit becomes an order: bought at once at the price of the moment, for what has arrived.

use std::iter;

use rust_decimal::Decimal;
use serde_json::Value;
use uuid::Uuid;

use crate::Core;
use crate::auth::caller::{Client, ClientMaybeUser, Credential};
use crate::money::connectors::commands::{Command, CommandKind, SealedCommand, Target};
use crate::money::connectors::screening::{SealedScreening, Wallet};
use crate::money::payments::catch_up::hold_if_taken_back;
use crate::money::payments::locks::{hold_books, hold_for_order};
use crate::money::payments::matching::match_to;
use crate::money::payments::store::MANUAL;
use crate::platform::db::Connection;
use crate::platform::error::{Code, Denial, Error, Refusal, Result};
use crate::tenancy::house::house;
use crate::tenancy::tenants::Tenant;
use crate::trading::limits;
use crate::trading::orders::confirm::checks;
use crate::trading::orders::insert::{InsertOutcome, NewOrderRow, insert_one};
use crate::trading::orders::status::{Cause, NotApplied, OrderEvent, apply_in};
use crate::trading::quotes::Quote;
use crate::trading::quotes::create::{self, Request};
use rampart_types::{ClientId, CurrencyCode, OrderId, OrderKey, UserId, UserKey};

/// The payment method of every deposit.
const METHOD: &str = "bankTransfer";
/// The actor in the timeline of its order.
const ACTOR: &str = "edge";

/// The plan that a deposit is for.
#[derive(Debug)]
pub struct DepositPlan {
    /// Partner of the plan.
    pub client: ClientId,
    /// Code of the plan.
    pub code: String,
    /// User of the plan.
    pub user: UserId,
    /// Currency that is bought.
    pub crypto_currency: CurrencyCode,
    /// Address that the coins are sent to.
    pub wallet_address: String,
    /// Tag or memo that goes with the address.
    pub destination_tag: Option<String>,
}

/// A received bank transfer.
#[derive(Debug)]
pub struct Deposit<'a> {
    /// Amount that arrived.
    pub amount: Decimal,
    /// Its currency.
    pub currency: CurrencyCode,
    /// The bank's own name for it.
    pub reference: &'a str,
}

/// Quotes a deposit at the current price, by the rules of every quote.
///
/// # Errors
/// As a quote and a confirm of it: the pair is unknown or closed, the amount is beyond its bounds,
/// the user is disabled or gone.
pub async fn quote(
    core: &Core,
    plan: &DepositPlan,
    deposit: &Deposit<'_>,
    request_id: &str,
) -> Result<Quote> {
    let snapshot = core.snapshots.current();
    let tenant = snapshot.tenants.get(&plan.client).cloned();
    let client = Client {
        tenant: tenant.ok_or_else(|| Error::invariant("find the client of a savings plan"))?,
        catalogue: snapshot.catalogue.clone(),
        credential: Credential::Token,
        request_id: request_id.into(),
    };
    let catalogue = client.catalogue.clone();
    let pair =
        catalogue.pair(plan.crypto_currency, deposit.currency).ok_or(Code::CurrencyPairUnknown)?;
    let method = catalogue.payment_method(METHOD).ok_or(Code::PaymentMethodUnavailable)?;
    let request = Request::purchase(pair.clone(), method.clone(), deposit.amount);
    let caller = ClientMaybeUser { client, user: Some(plan.user) };
    let quote = create::quote(core, &caller, &request).await?;
    let mut refusal = Refusal::new();
    checks::market(&caller.client, &quote, core.clock.now(), &mut refusal);
    if limits::limit_amount(core, &catalogue, &quote).is_none() {
        checks::no_limit_rate(&mut refusal);
    }
    let user = UserKey { client: plan.client, user: plan.user };
    checks::user(core, user, &mut refusal).await?;
    if refusal.is_empty() { Ok(quote) } else { Err(refusal.into()) }
}

/// The outcome of a deposit.
#[derive(Clone, Debug)]
pub enum Bought {
    /// The order is made, and paid.
    Now {
        /// Its number.
        order: OrderId,
        /// The payment that was in suspense and is the order's now.
        payment: Option<Uuid>,
        /// The causes of its changes of state, to be counted after the commit.
        causes: Vec<Cause>,
    },
    /// The deposit was reported before: the transaction must be given up.
    Before,
    /// The quote is void, as its price was corrected: the transaction must be given up.
    QuoteVoid,
}

/// Makes the order, paid, in the caller's transaction: by the payment in suspense that has the
/// deposit's reference, or else by a new payment by hand. It waits if its money was taken back before.
///
/// # Errors
/// 409 when another payment has its reference; ER124 or ER709 when the user was disabled or erased since
/// the quote; when the database refuses or cannot be reached.
pub async fn make_order(
    conn: &mut Connection,
    core: &Core,
    plan: &DepositPlan,
    deposit: &Deposit<'_>,
    quote: &Quote,
    actor: &str,
) -> Result<Bought> {
    // The order of locks: references of payments, partners, users, orders.
    hold_for_order(conn, MANUAL, deposit.reference).await?;
    let reported = ReportedPayment::hold(conn, deposit.reference).await?;
    hold_user(conn, UserKey { client: plan.client, user: plan.user }).await?;
    let order = OrderId::from_entropy(core.clock.random_u64()?);
    match insert_one(conn, &row(core, plan, quote, order)?).await? {
        InsertOutcome::Placed => {}
        InsertOutcome::QuoteExpired => return Ok(Bought::QuoteVoid),
        _ => return Err(Error::invariant("place the order of a deposit")),
    }
    let noted = sqlx::query_scalar!(
        r#"
        insert into dca_deposit (client_id, reference, code, amount, currency, order_id, created_at)
        values ($1, $2, $3, $4, $5, $6, $7)
        on conflict (client_id, reference) do nothing returning order_id
        "#,
        plan.client.uuid(),
        deposit.reference,
        plan.code,
        deposit.amount,
        deposit.currency.as_str(),
        order.number(),
        core.clock.now(),
    )
    .fetch_optional(&mut *conn)
    .await?;
    if noted.is_none() {
        return Ok(Bought::Before);
    }
    let (payment, paid) = match reported {
        Some(reported) => {
            let payment = reported.id_for(plan, deposit)?;
            (Some(payment), match_to(conn, core, payment, order, actor).await?)
        }
        None => (None, pay_by_hand(conn, core, plan, deposit, order).await?),
    };
    let causes = [Cause::Confirmed].into_iter().chain(paid).collect();
    Ok(Bought::Now { order, payment, causes })
}

/// Pays an order by a payment by hand. Gives the causes of its changes of state.
async fn pay_by_hand(
    conn: &mut Connection,
    core: &Core,
    plan: &DepositPlan,
    deposit: &Deposit<'_>,
    order: OrderId,
) -> Result<Vec<Cause>> {
    let reference = Some(deposit.reference.to_owned());
    let paid = OrderEvent::PaymentReceived { amount: None, reference };
    let key = OrderKey { client: plan.client, order };
    let paid = apply_in(conn, core, key, &paid, ACTOR).await.map_err(refusal)?;
    let held = hold_if_taken_back(conn, core, key, deposit.reference, ACTOR).await;
    let held = held.map_err(refusal)?;
    Ok(iter::once(paid).chain(held).map(|applied| applied.cause).collect())
}

/// A payment that was reported before the deposit, under its reference: by a connector, by a statement
/// or by hand.
struct ReportedPayment {
    id: Uuid,
    client: ClientId,
    amount: Decimal,
    currency: String,
    /// No other one has its reference.
    is_only: bool,
}

impl ReportedPayment {
    /// The payment of this reference, or one of them, whose book stays locked until the transaction
    /// ends.
    async fn hold(conn: &mut Connection, reference: &str) -> Result<Option<Self>, sqlx::Error> {
        let mut rows = sqlx::query!(
            "select payment_id, client_id, connector, amount, currency from payment \
             where kind = 'received' and provider_reference = $1 \
                 and connector in (select name from connector union all select $2) limit 2",
            reference,
            MANUAL,
        )
        .fetch_all(&mut *conn)
        .await?;
        let Some(row) = rows.pop() else { return Ok(None) };
        let is_only = rows.is_empty();
        let client = ClientId::from(row.client_id);
        hold_books(conn, Some(client), &row.connector, reference).await?;
        let (id, amount, currency) = (row.payment_id, row.amount, row.currency);
        Ok(Some(Self { id, client, amount, currency, is_only }))
    }

    /// Its id, if it may be the deposit: of the same money, in the book of the plan's partner or of
    /// nobody, and told by no other connector, too.
    ///
    /// # Errors
    /// 409.
    fn id_for(self, plan: &DepositPlan, deposit: &Deposit<'_>) -> Result<Uuid, Denial> {
        let is_ours = self.client == plan.client || self.client == house();
        let is_same = self.amount == deposit.amount && self.currency == deposit.currency.as_str();
        if self.is_only && is_ours && is_same { Ok(self.id) } else { Err(another_payment()) }
    }
}

fn another_payment() -> Denial {
    Denial::conflict("another payment has this reference")
}

/// The answer to a deposit that its own order did not follow.
fn refusal(error: NotApplied) -> Error {
    match error {
        NotApplied::Failed(error) => error,
        // The bank's name for it is another payment's, whoever's that is: it is booked once.
        NotApplied::Refused(reason) => Denial::conflict(reason).into(),
        NotApplied::Forbidden { .. } | NotApplied::NoSuchOrder => {
            Error::invariant("let a deposit pay its own order")
        }
    }
}

/// Locks the user until the transaction ends, and refuses one that may not trade any more. A confirm
/// that waits for the user counts the order of the deposit.
async fn hold_user(conn: &mut Connection, key: UserKey) -> Result<()> {
    let held = limits::hold_traders(conn, &[key.client.uuid()], &[key.user.uuid()]).await?;
    if !held.is_empty() {
        return Ok(());
    }
    let trader = limits::trader(conn, key).await?;
    let is_gone = trader.is_none_or(|trader| trader.deleted);
    let code = if is_gone { Code::UserNotFound } else { Code::UserDisabled };
    Err(code.into())
}

/// The order as it is written. Its rate is fixed: the money is there already. No confirm repeats a
/// deposit, so it has no digest of terms.
fn row(core: &Core, plan: &DepositPlan, quote: &Quote, order: OrderId) -> Result<NewOrderRow> {
    let snapshot = core.snapshots.current();
    let catalogue = &snapshot.catalogue;
    let tenant = snapshot.tenants.get(&plan.client);
    let tenant = tenant.ok_or_else(|| Error::invariant("find the client of a savings plan"))?;
    let asset = plan.crypto_currency.to_string();
    let (address, tag) = (&*plan.wallet_address, plan.destination_tag.as_deref());
    let wallet = Wallet { asset: &asset, address, tag };
    Ok(NewOrderRow {
        client_id: plan.client.uuid(),
        user_id: Some(plan.user.uuid()),
        wallet_address: plan.wallet_address.clone(),
        destination_tag: plan.destination_tag.clone(),
        is_estimated_quote: false,
        is_dca_order: true,
        command: simulated_payment(core, tenant, order)?,
        screening: SealedScreening::of_wallet(core, tenant, order, None, wallet)?,
        ..NewOrderRow::for_quote(core, catalogue, quote, order, None, core.clock.now())?
    })
}

/// The payment of a test client's deposit at the sandbox: it keeps the coins the sandbox's once the
/// client is live. Nobody is asked for the money of a live one.
fn simulated_payment(
    core: &Core,
    tenant: &Tenant,
    order: OrderId,
) -> Result<Option<SealedCommand>> {
    if !tenant.is_test() {
        return Ok(None);
    }
    let command = Command {
        client: tenant.id,
        order: Some(order),
        user: None,
        kind: CommandKind::PaymentCreate,
        idempotency_key: format!("payment/{order}"),
        target: Target::sandbox(),
        // It is done as it is commanded: nobody gets a body.
        body: Value::Null,
    };
    command.seal(core).map(Some)
}

/// Gives the open deposits of a test client the sandbox's payment where they have none, as those of
/// an earlier build, in the transaction that makes the client live.
pub async fn keep_simulated(conn: &mut Connection, slug: &str) -> Result<(), sqlx::Error> {
    sqlx::query_scalar!(
        r#"
        select simulate_deposits(client_id) as "given!" from client
        where slug = $1 and mode = 'test'
        "#,
        slug,
    )
    .fetch_optional(conn)
    .await?;
    Ok(())
}
