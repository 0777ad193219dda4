//! The account that pays, which must be known to be the user's.

use maud::html;

use super::{Content, Visit};
use crate::Core;
use crate::http::form::Form;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::users::accounts::{self, AccountType, PaymentAccount};
use crate::users::verification::card;
use rampart_types::UserId;

/// A card is verified by a button, any other account by a person.
pub(super) async fn show(
    conn: &mut Connection,
    core: &Core,
    visit: &Visit,
    user: UserId,
) -> Result<Content> {
    let account = of_order(conn, core, visit, user).await?;
    let is_card =
        account.is_some_and(|account| account.kind == AccountType::CreditCard && !account.disabled);
    let texts = visit.texts;
    let body = html! {
        @if is_card {
            p { (texts.get("check-account-card")) }
            form method="post" {
                button.main type="submit" name="action" value="verify" {
                    (texts.get("check-account-verify"))
                }
            }
        } @else {
            p { (texts.get("check-account-proof")) }
            p { (visit.support_link("check-support")) }
        }
    };
    Ok(body.into())
}

/// Has the card verified.
pub(super) async fn submit(
    core: &Core,
    visit: &Visit,
    user: UserId,
    _: &Form,
) -> Result<Option<&'static str>> {
    let mut conn = core.db.acquire().await?;
    let account = of_order(&mut conn, core, visit, user).await?;
    drop(conn);
    if let Some(account) = account.filter(|account| account.kind == AccountType::CreditCard) {
        card::verify(core, (&visit.client, user), &account.details.identifier).await?;
    }
    Ok(None)
}

async fn of_order(
    conn: &mut Connection,
    core: &Core,
    visit: &Visit,
    user: UserId,
) -> Result<Option<PaymentAccount>> {
    let named = sqlx::query_scalar!(
        "select account_id from buy_order where client_id = $1 and order_id = $2",
        visit.client.id().uuid(),
        visit.order.number(),
    )
    .fetch_one(&mut *conn)
    .await?;
    let accounts = accounts::list(conn, core, visit.client.id(), user).await?;
    Ok(accounts.into_iter().find(|account| Some(account.id) == named))
}
