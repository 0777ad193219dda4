//! Finding an order by what stands in the path (section 6.7 of the contract).

use std::sync::Arc;

use sqlx::{PgConnection, PgExecutor, PgPool};
use uuid::Uuid;

use super::Order;
use super::confirm::placing::may_have_run;
use super::row::{OrderRow, select_orders};
use crate::Core;
use crate::auth::caller::Client;
use crate::endpoint::openapi::doc::{Kind, Member, required};
use crate::http::request::Input;
use crate::platform::batch::{Gather, Work};
use crate::platform::db::HeldConnection;
use crate::platform::error::sqlstate::is_unavailable;
use crate::platform::error::{Code, Error, Result};
use rampart_types::{OrderId, PartnerReference, UserId};

/// `{id}` of a path.
pub(crate) const ID: Member = required(
    "id",
    Kind::Sized(1, 255),
    "The order's number, or the partner's own identifier, of which the newest order counts.",
);

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
    pub(crate) fn read(input: &Input) -> Result<Self> {
        let text = input.param("id");
        if text.is_empty() {
            return Err(Code::OrderIdMissing.into());
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
pub(crate) async fn find(
    core: &Core,
    client: &Client,
    user: Option<UserId>,
    name: &OrderName,
) -> Result<Order> {
    let asked = Asked {
        client: client.id().uuid(),
        user: user.map(UserId::uuid),
        number: name.number.map(OrderId::number),
        reference: name.reference.as_str().to_owned(),
    };
    let row = core.order_reads.0.ask(asked).await??;
    row.ok_or(Code::OrderNotFound)?.order(&client.catalogue)
}

/// Reads of single orders. Those that would wait for a connection share a statement.
#[derive(Debug)]
pub struct OrderReads(Arc<Gather<Reading>>);

impl OrderReads {
    /// Reads from this pool.
    pub(crate) fn over(db: &PgPool) -> Self {
        Self(Gather::new(Reading { db: db.clone() }))
    }
}

/// An order as it is asked for.
struct Asked {
    client: Uuid,
    user: Option<Uuid>,
    number: Option<i64>,
    reference: String,
}

struct Reading {
    db: PgPool,
}

impl Work for Reading {
    type Ask = Asked;
    type Answer = Result<Option<OrderRow>>;
    type Tool = HeldConnection;
    const TOGETHER_MAX: usize = 64;
    /// More would take smaller shares, and connections from everybody else.
    const LANES: usize = 2;
    const DOING: &'static str = "read an order";

    async fn run(&self, kept: &mut HeldConnection, asked: Vec<Asked>) -> Vec<Self::Answer> {
        match self.all(kept, &asked).await {
            Ok(rows) => rows.into_iter().map(Ok).collect(),
            Err(error) if is_unavailable(&error) => {
                kept.release();
                tracing::error!(%error, orders = asked.len(), "orders could not be read");
                asked.iter().map(|_| Err(Error::unavailable(Self::DOING))).collect()
            }
            // Whatever is wrong with one of them is not the others' business.
            Err(_) => {
                kept.release();
                let mut answers = Vec::with_capacity(asked.len());
                for alone in &asked {
                    answers.push(one(&self.db, alone).await.map_err(Into::into));
                }
                answers
            }
        }
    }
}

impl Reading {
    /// On the kept connection; on another one when that has broken.
    async fn all(
        &self,
        kept: &mut HeldConnection,
        asked: &[Asked],
    ) -> Result<Vec<Option<OrderRow>>, sqlx::Error> {
        let found = each(kept.connection(&self.db).await?, asked).await;
        if !found.as_ref().is_err_and(may_have_run) {
            return found;
        }
        kept.release();
        each(kept.connection(&self.db).await?, asked).await
    }
}

async fn each(
    connection: &mut PgConnection,
    asked: &[Asked],
) -> Result<Vec<Option<OrderRow>>, sqlx::Error> {
    match asked {
        [alone] => Ok(vec![one(connection, alone).await?]),
        asked => several(connection, asked).await,
    }
}

async fn one(
    executor: impl PgExecutor<'_>,
    asked: &Asked,
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
    asked: &[Asked],
) -> Result<Vec<Option<OrderRow>>, sqlx::Error> {
    let clients: Vec<Uuid> = asked.iter().map(|asked| asked.client).collect();
    let users: Vec<Option<Uuid>> = asked.iter().map(|asked| asked.user).collect();
    let numbers: Vec<Option<i64>> = asked.iter().map(|asked| asked.number).collect();
    let references: Vec<&str> = asked.iter().map(|asked| &*asked.reference).collect();
    let found = select_orders!(
        place "asked.place",
        from "unnest($1::uuid[], $2::uuid[], $3::bigint[], $4::text[]) with ordinality \
              as asked (client, named_user, number, reference, place) cross join lateral ( \
                  select * from buy_order ",
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
