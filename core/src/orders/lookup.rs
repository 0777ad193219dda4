//! Finding an order by what stands in the path (section 6.7 of the contract).

use super::Order;
use super::row::select_orders;
use crate::Core;
use crate::caller::Client;
use crate::error::{Code, Result};
use crate::exchange::Input;
use crate::openapi::doc::{Kind, Member, required};
use crate::types::{OrderId, PartnerReference, UserId};

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
            return Err(Code::ER033.into());
        }
        let reference = text.parse().map_err(|_| Code::ER034)?;
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
    let row = select_orders!(
        "where client_id = $1 and ($2::uuid is null or user_id = $2) \
         and (order_id = $3 or partner_reference = $4) \
         order by (order_id = $3) desc nulls last, created_at desc, order_id desc limit 1",
        client.id().uuid(),
        user.map(UserId::uuid),
        name.number.map(OrderId::number),
        name.reference.as_str(),
    )
    .fetch_optional(&core.db)
    .await?;
    row.ok_or(Code::ER035)?.order(&client.catalogue)
}
