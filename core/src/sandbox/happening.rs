//! What can happen to a test order, by itself or because its partner asks for it.

use chrono::TimeDelta;

use super::{ACTOR, transaction_id};
use crate::Core;
use crate::error::{Error, Result};
use crate::orders::status::{Applied, Cause, NotApplied, OrderEvent, apply};
use crate::types::{ClientId, OrderId};

/// What can be made to happen. The names are those that operators use and timelines show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Happening {
    /// The exact amount arrives.
    PaymentReceived,
    /// Twice the amount arrives.
    PaymentAmountWrong,
    /// The payment is denied.
    PaymentDenied,
    /// The time to pay ends.
    Expire,
    /// The user calls it off.
    Cancel,
    /// The coins are sent, in a simulated transaction.
    CoinsSent,
    /// That transaction is confirmed.
    ConfirmedOnChain,
    /// The operator holds it.
    Hold,
    /// The operator lets it go on.
    Release,
    /// The payment is given back.
    Refund,
}

impl Happening {
    const ALL: [Self; 10] = [
        Self::PaymentReceived,
        Self::PaymentAmountWrong,
        Self::PaymentDenied,
        Self::Expire,
        Self::Cancel,
        Self::CoinsSent,
        Self::ConfirmedOnChain,
        Self::Hold,
        Self::Release,
        Self::Refund,
    ];

    /// Every name.
    pub(super) const NAMES: [&'static str; 10] = {
        let (mut names, mut index) = ([""; 10], 0);
        while index < names.len() {
            names[index] = Self::ALL[index].as_str();
            index += 1;
        }
        names
    };

    /// In paths and as stored.
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::PaymentReceived => "payment-received",
            Self::PaymentAmountWrong => "payment-amount-wrong",
            Self::PaymentDenied => "payment-denied",
            Self::Expire => "expire",
            Self::Cancel => "cancel",
            Self::CoinsSent => "coins-sent",
            Self::ConfirmedOnChain => "confirmed-on-chain",
            Self::Hold => "hold",
            Self::Release => "release",
            Self::Refund => "refund",
        }
    }

    pub(super) fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|happening| happening.as_str() == name)
    }

    /// What it is judged to be while the order can be paid.
    pub(super) const fn cause(self) -> Cause {
        match self {
            Self::PaymentReceived => Cause::PaymentReceived,
            Self::PaymentAmountWrong => Cause::PaymentAmountWrong,
            Self::PaymentDenied => Cause::PaymentDenied,
            Self::Expire => Cause::Expired,
            Self::Cancel => Cause::Cancelled,
            Self::CoinsSent => Cause::CoinsSent,
            Self::ConfirmedOnChain => Cause::ConfirmedOnChain,
            Self::Hold => Cause::Held,
            Self::Release => Cause::Released,
            Self::Refund => Cause::Refunded,
        }
    }
}

/// Lets it happen to an order of `client`, as the sandbox.
///
/// # Errors
/// As [`apply`].
pub(super) async fn happen(
    core: &Core,
    client: ClientId,
    order: OrderId,
    happening: Happening,
) -> Result<Applied, NotApplied> {
    if happening == Happening::Expire {
        end_time_to_pay(core, client, order).await?;
    }
    let event = match happening {
        Happening::PaymentReceived => OrderEvent::PaymentReceived { amount: None, reference: None },
        Happening::PaymentAmountWrong => twice_the_amount(core, client, order).await?,
        Happening::PaymentDenied => OrderEvent::PaymentDenied { reason: None },
        Happening::Expire => OrderEvent::Expire,
        Happening::Cancel => OrderEvent::Cancel { reason: None },
        Happening::CoinsSent => {
            OrderEvent::CoinsSent { transaction_id: transaction_id(&core.clock)? }
        }
        Happening::ConfirmedOnChain => OrderEvent::ConfirmedOnChain,
        Happening::Hold => OrderEvent::Hold { reason: None },
        Happening::Release => OrderEvent::Release,
        Happening::Refund => OrderEvent::Refund { reason: None },
    };
    apply(core, client, order, &event, ACTOR).await
}

/// Makes a pending order overdue, as every edge's own sweep then sees it too.
async fn end_time_to_pay(core: &Core, client: ClientId, order: OrderId) -> Result<()> {
    sqlx::query!(
        "update buy_order set expires_at = $3 \
         where client_id = $1 and order_id = $2 and status = 'pending'",
        client.uuid(),
        order.number(),
        core.clock.now() - TimeDelta::milliseconds(1),
    )
    .execute(&core.db)
    .await?;
    Ok(())
}

async fn twice_the_amount(
    core: &Core,
    client: ClientId,
    order: OrderId,
) -> Result<OrderEvent, NotApplied> {
    let amount = sqlx::query_scalar!(
        "select fiat_amount from buy_order where client_id = $1 and order_id = $2",
        client.uuid(),
        order.number(),
    )
    .fetch_optional(&core.db)
    .await
    .map_err(Error::from)?
    .ok_or(NotApplied::NoSuchOrder)?;
    let twice = amount.checked_add(amount);
    let twice = twice.ok_or_else(|| Error::broken("double an order's amount"))?;
    Ok(OrderEvent::PaymentReceived { amount: Some(twice), reference: None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_happening_is_found_by_its_own_name_alone() {
        for happening in Happening::ALL {
            assert_eq!(Happening::from_name(happening.as_str()), Some(happening));
        }
        assert_eq!(Happening::from_name(""), None);
        assert_eq!(Happening::from_name("Cancel"), None);
    }
}
