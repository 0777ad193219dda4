//! Finding an order by what stands in the path (section 6.7 of the contract).

use sqlx::PgExecutor;
use uuid::Uuid;

use super::Order;
use super::row::{OrderRow, select_orders};
use crate::Core;
use crate::auth::caller::Client;
use crate::endpoint::openapi::doc::{Kind, Member, required};
use crate::http::fields::Fields;
use crate::http::request::Input;
use crate::platform::batch::{BatchJob, Batcher, RunSingly};
use crate::platform::db::{Connection, HeldConnection, Pool};
use crate::platform::error::sqlstate::{is_lost_connection, is_unavailable};
use crate::platform::error::{Code, Error, Result};
use rampart_types::{ClientId, OrderId, PartnerReference, UserId};

/// `{id}` of a path.
pub const ID: Member = required(
    "id",
    Kind::Sized(1, 255),
    "The order's number, or the partner's own identifier, of which the newest order counts.",
);

/// Error codes of an endpoint that finds the order of its path.
pub const ORDER_ERRORS: &[Code] =
    &[Code::OrderIdMissing, Code::OrderIdMalformed, Code::OrderNotFound];

/// An order as a partner names it: all digits may be our number or the partner's own identifier.
#[derive(Debug)]
pub struct OrderName {
    pub(crate) number: Option<OrderId>,
    pub(crate) reference: PartnerReference,
}

impl OrderName {
    /// The `{id}` of the path.
    ///
    /// # Errors
    /// ER033 when it is empty, ER034 when it is too long or holds a control character.
    pub fn read(input: &Input) -> Result<Self> {
        Self::parse(input.param("id")).map_err(Error::from)
    }

    /// The same beside the members of a body, whose violations are collected with its own.
    pub(crate) fn read_with(fields: &mut Fields<'_>, input: &Input) -> Option<Self> {
        let name = Self::parse(input.param("id"));
        name.inspect_err(|code| fields.refuse(*code)).ok()
    }

    fn parse(text: &str) -> Result<Self, Code> {
        if text.is_empty() {
            return Err(Code::OrderIdMissing);
        }
        let reference = text.parse().map_err(|_| Code::OrderIdMalformed)?;
        Ok(Self { number: text.parse().ok(), reference })
    }
}

/// The order of this client, and of `user` where one is given. The number goes before the
/// partner's identifier; of several orders with one identifier the newest answers. One statement
/// whatever is found: nobody learns from the time it takes that somebody else has such an order.
///
/// # Errors
/// ER035 when there is none.
pub async fn find(
    core: &Core,
    client: &Client,
    user: Option<UserId>,
    name: &OrderName,
) -> Result<Order> {
    let asked = OrderQuery {
        client: client.id().uuid(),
        user: user.map(UserId::uuid),
        number: name.number.map(OrderId::number),
        reference: name.reference.as_str().to_owned(),
    };
    let row = core.order_reads.0.submit(asked).await??;
    row.ok_or(Code::OrderNotFound)?.order(&client.catalogue)
}

/// The order of this client with our number; `None` if there is none.
pub(crate) async fn find_by_number(
    core: &Core,
    client: &Client,
    number: OrderId,
) -> Result<Option<Order>> {
    let (client_id, number) = (client.id().uuid(), Some(number.number()));
    // No order has an empty reference.
    let asked = OrderQuery { client: client_id, user: None, number, reference: String::new() };
    let row = core.order_reads.0.submit(asked).await??;
    row.map(|row| row.order(&client.catalogue)).transpose()
}

/// The order of this client with our number, as the caller's transaction has left it.
///
/// # Errors
/// ER035 when there is none.
pub async fn find_in(conn: &mut Connection, client: &Client, number: OrderId) -> Result<Order> {
    let (client_id, number) = (client.id().uuid(), Some(number.number()));
    let asked = OrderQuery { client: client_id, user: None, number, reference: String::new() };
    let row = one(conn, &asked).await?;
    row.ok_or(Code::OrderNotFound)?.order(&client.catalogue)
}

/// The queue of single orders that are about to be read.
#[derive(Debug)]
pub struct OrderReads(Batcher<OrderRead>);

impl OrderReads {
    /// Reads from this database.
    pub(crate) fn start(db: &Pool) -> Self {
        Self(Batcher::start(db, OrderRead))
    }

    /// Items that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.0.waiting()
    }
}

/// An order as it is asked for.
struct OrderQuery {
    client: Uuid,
    user: Option<Uuid>,
    number: Option<i64>,
    reference: String,
}

/// Reads batches of orders.
struct OrderRead;

impl BatchJob for OrderRead {
    type Item = OrderQuery;
    type Output = Result<Option<OrderRow>>;
    const BATCH_MAX: usize = 64;
    /// More would make a tenant's batches smaller, and take connections from everybody else.
    const TENANT_BATCHES_MAX: usize = 2;
    /// One more, for other tenants: it idles without a connection.
    const WORKERS: usize = Self::TENANT_BATCHES_MAX + 1;
    const NAME: &'static str = "read an order";

    fn tenant(asked: &OrderQuery) -> ClientId {
        asked.client.into()
    }

    async fn run(
        &self,
        connection: &mut HeldConnection,
        asked: &[OrderQuery],
    ) -> Result<Vec<Self::Output>, RunSingly> {
        let error = match read(connection, asked).await {
            Ok(rows) => return Ok(rows.into_iter().map(Ok).collect()),
            Err(error) => error,
        };
        connection.release();
        if is_unavailable(&error) {
            tracing::error!(%error, orders = asked.len(), "orders could not be read");
            return Ok(asked.iter().map(|_| Err(Error::unavailable(Self::NAME))).collect());
        }
        // An error of one of them is none of the others.
        if asked.len() > 1 || connection.has_waited(&error) {
            return Err(RunSingly);
        }
        Ok(vec![Err(error.into())])
    }
}

/// Reads a batch on the held connection, and on another one when that is broken.
async fn read(
    connection: &mut HeldConnection,
    asked: &[OrderQuery],
) -> Result<Vec<Option<OrderRow>>, sqlx::Error> {
    let found = each(connection.get().await?, asked).await;
    if !found.as_ref().is_err_and(is_lost_connection) {
        return found;
    }
    connection.release();
    each(connection.get().await?, asked).await
}

async fn each(
    connection: &mut Connection,
    asked: &[OrderQuery],
) -> Result<Vec<Option<OrderRow>>, sqlx::Error> {
    match asked {
        [alone] => Ok(vec![one(connection, alone).await?]),
        asked => several(connection, asked).await,
    }
}

async fn one(
    executor: impl PgExecutor<'_>,
    asked: &OrderQuery,
) -> Result<Option<OrderRow>, sqlx::Error> {
    select_orders!(
        "where client_id = $1 and order_id = coalesce( \
             (select order_id from buy_order \
              where client_id = $1 and ($2::uuid is null or user_id = $2) and order_id = $3), \
             (select order_id from buy_order \
              where client_id = $1 and ($2::uuid is null or user_id = $2) \
                  and partner_reference = $4 \
              order by created_at desc, order_id desc limit 1))",
        asked.client,
        asked.user,
        asked.number,
        asked.reference,
    )
    .fetch_optional(executor)
    .await
}

/// The same for each of several.
async fn several(
    executor: impl PgExecutor<'_>,
    asked: &[OrderQuery],
) -> Result<Vec<Option<OrderRow>>, sqlx::Error> {
    let clients: Vec<Uuid> = asked.iter().map(|asked| asked.client).collect();
    let users: Vec<Option<Uuid>> = asked.iter().map(|asked| asked.user).collect();
    let numbers: Vec<Option<i64>> = asked.iter().map(|asked| asked.number).collect();
    let references: Vec<&str> = asked.iter().map(|asked| &*asked.reference).collect();
    let found = select_orders!(
        each of "unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::text[]) with ordinality \
                 as asked (client, named_user, number, reference, place) ",
        "where client_id = asked.client and order_id = coalesce( \
             (select order_id from buy_order \
              where client_id = asked.client \
                  and (asked.named_user is null or user_id = asked.named_user) \
                  and order_id = asked.number), \
             (select order_id from buy_order \
              where client_id = asked.client \
                  and (asked.named_user is null or user_id = asked.named_user) \
                  and partner_reference = asked.reference \
              order by created_at desc, order_id desc limit 1)) \
         limit 1) found",
        &clients,
        &users as &[Option<Uuid>],
        &numbers as &[Option<i64>],
        &references as &[&str],
    )
    .fetch_all(executor)
    .await?;
    let mut rows: Vec<Option<OrderRow>> = asked.iter().map(|_| None).collect();
    for row in found {
        let place = usize::try_from(row.place - 1).ok();
        if let Some(slot) = place.and_then(|place| rows.get_mut(place)) {
            *slot = Some(row);
        }
    }
    Ok(rows)
}
