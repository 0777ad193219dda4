//! What stands against a new order, beside its terms.

use rust_decimal::Decimal;

use crate::Core;
use crate::catalogue::{Catalogue, PairStatus};
use crate::error::{Code, Refusal, Result};
use crate::limits;
use crate::quotes::Quote;
use crate::types::{ClientId, UserId};

/// The pair in maintenance (ER008), the method switched off since the quote (ER055), an amount
/// beyond what one of them takes (ER011).
pub(crate) fn market(catalogue: &Catalogue, quote: &Quote, refusal: &mut Refusal) {
    match catalogue.pairs.get(&quote.pair) {
        Some(pair) if pair.buy.status == PairStatus::Enabled => {
            if !(pair.buy.min..=pair.buy.max).contains(&quote.fiat) {
                beyond(refusal, "pair", pair.buy.min, pair.buy.max);
            }
        }
        _ => refusal.add(Code::ER008, None),
    }
    match catalogue.payment_method(&quote.payment_method) {
        Some(method) if method.enabled => {
            if quote.fiat > method.limit {
                beyond(refusal, "payment method", Decimal::ZERO, method.limit);
            }
        }
        _ => refusal.add(Code::ER055, None),
    }
}

fn beyond(refusal: &mut Refusal, whose: &str, min: Decimal, max: Decimal) {
    let (min, max) = (min.normalize(), max.normalize());
    refusal.add(Code::ER011, Some(format!("the {whose} takes {min} to {max}").into()));
}

/// The user's account: disabled (ER124), or gone since the quote (ER709).
pub(crate) async fn account(
    core: &Core,
    client: ClientId,
    user: UserId,
    refusal: &mut Refusal,
) -> Result<()> {
    let row = sqlx::query!(
        r#"
        select disabled_at is not null as "disabled!" from end_user
        where client_id = $1 and user_id = $2 and deleted_at is null
        "#,
        client.uuid(),
        user.uuid(),
    )
    .fetch_optional(&core.db)
    .await?;
    match row {
        None => refusal.add(Code::ER709, None),
        Some(row) if row.disabled => refusal.add(Code::ER124, None),
        Some(_) => {}
    }
    Ok(())
}

/// An amount beyond what the user may still buy for today (ER011).
pub(super) async fn limit(
    core: &Core,
    (client, user): (ClientId, UserId),
    fiat: Decimal,
    refusal: &mut Refusal,
) -> Result<()> {
    let left = limits::left_to_buy(core, client, user).await?;
    if left.is_some_and(|left| fiat > left) {
        refusal.add(Code::ER011, Some("the user's limit for a day leaves less".into()));
    }
    Ok(())
}
