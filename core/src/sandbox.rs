//! Simulated settlement (section 10 of the contract): a test client's order that is paid goes on
//! by itself, as a live one does by what the payment provider and the chain report.
//!
//! The step that comes next is a row written in the transaction of the step before ([`follow`]),
//! so that a settlement neither stops nor doubles when an edge dies. It goes through the same
//! state machine as an operator's event: what happens to the order in between wins.

pub mod order_event;
pub mod settle;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;

use crate::clock::{Clock, NoEntropy};
use crate::orders::status::OrderStatus;
use crate::types::{ClientId, OrderId};

/// Bytes of a Bitcoin transaction's id, whose form the simulated ones have.
const TRANSACTION_ID_BYTES: usize = 32;
/// Who did it, in the order's timeline.
const ACTOR: &str = "sandbox";

/// An id that no transaction of a chain has.
fn transaction_id(clock: &Clock) -> Result<String, NoEntropy> {
    Ok(hex::encode(clock.random_bytes::<TRANSACTION_ID_BYTES>()?))
}

/// What comes next by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    CoinsSent,
    ConfirmedOnChain,
}

impl Step {
    const fn as_str(self) -> &'static str {
        match self {
            Self::CoinsSent => "coins-sent",
            Self::ConfirmedOnChain => "confirmed-on-chain",
        }
    }

    /// The step after which nothing but a chain is waited for; `None` while people are.
    const fn after(status: OrderStatus, coins_sent: bool) -> Option<Self> {
        match status {
            OrderStatus::InProgress if coins_sent => Some(Self::ConfirmedOnChain),
            OrderStatus::InProgress => Some(Self::CoinsSent),
            _ => None,
        }
    }
}

/// An order has come to `status`: what follows by itself, at `due_at`, takes the place of what was
/// to follow before. Nothing follows for live clients.
///
/// # Errors
/// The database's.
pub(crate) async fn follow(
    conn: &mut PgConnection,
    client: ClientId,
    order: OrderId,
    status: OrderStatus,
    coins_sent: bool,
    due_at: DateTime<Utc>,
) -> Result<(), sqlx::Error> {
    let Some(step) = Step::after(status, coins_sent) else {
        sqlx::query!(
            "delete from sandbox_step where client_id = $1 and order_id = $2",
            client.uuid(),
            order.number(),
        )
        .execute(conn)
        .await?;
        return Ok(());
    };
    sqlx::query!(
        r#"
        insert into sandbox_step (client_id, order_id, event, due_at)
        select client_id, $2, $3, $4 from client where client_id = $1 and mode = 'test'
        on conflict (client_id, order_id)
            do update set event = excluded.event, due_at = excluded.due_at, leased_until = null
        "#,
        client.uuid(),
        order.number(),
        step.as_str(),
        due_at,
    )
    .execute(conn)
    .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_order_in_progress_goes_on_by_itself() {
        for status in OrderStatus::ALL {
            for coins_sent in [false, true] {
                let goes_on = Step::after(status, coins_sent).is_some();
                assert_eq!(goes_on, status == OrderStatus::InProgress, "{status:?}");
            }
        }
        assert_eq!(Step::after(OrderStatus::InProgress, false), Some(Step::CoinsSent));
        assert_eq!(Step::after(OrderStatus::InProgress, true), Some(Step::ConfirmedOnChain));
    }
}
