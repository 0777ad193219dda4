//! The account that pays a purchase or is paid for a sale, which must be known to be the user's.

use maud::html;

use super::documents::{PROOF, proof_form, read_image};
use super::{Content, Visit};
use crate::Core;
use crate::http::form::Form;
use crate::http::html::form_errors::FormErrors;
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::trading::quotes::Side;
use crate::users::accounts::{self, AccountType, PaymentAccount};
use crate::users::verification::card;
use crate::users::verification::iban_photo::{count_proofs, prove};
use rampart_types::UserId;

/// A card is verified by a button, a bank account by an image that an operator looks at, and any other
/// account by support.
pub(super) async fn show(
    conn: &mut Connection,
    core: &Core,
    visit: &Visit,
    user: UserId,
    errors: &FormErrors,
) -> Result<Content> {
    let texts = visit.texts;
    let account = of_order(conn, core, visit, user).await?;
    let is_sale = visit.order.as_ref().is_some_and(|order| order.side == Side::Sell);
    match account.as_ref().map(|account| account.kind) {
        Some(AccountType::CreditCard) => Ok(html! {
            p { (texts.get("check-account-card")) }
            form method="post" {
                button.main type="submit" name="action" value="verify" {
                    (texts.get("check-account-verify"))
                }
            }
        }
        .into()),
        Some(AccountType::BankTransfer) => {
            let key = visit.client.key_of(user);
            let is_sent = match &account {
                Some(account) => count_proofs(conn, key, account).await? > 0,
                None => false,
            };
            let intro = match (is_sent, is_sale) {
                (true, _) => "check-account-received",
                (false, true) => "check-account-proof-sale",
                (false, false) => "check-account-proof",
            };
            Ok(proof_form(visit, intro, "check-account-image", errors))
        }
        Some(AccountType::Walletpay) | None => {
            let intro =
                if is_sale { "check-account-support-sale" } else { "check-account-support" };
            Ok(html! {
                p { (texts.get(intro)) }
                p { (visit.support_link("check-support")) }
            }
            .into())
        }
    }
}

/// Has the card verified, or takes the proof of the bank account.
pub(super) async fn submit(
    core: &Core,
    visit: &Visit,
    user: UserId,
    form: &Form,
) -> Result<FormErrors> {
    let mut conn = core.db.acquire().await?;
    let account = of_order(&mut conn, core, visit, user).await?;
    drop(conn);
    let Some(account) = account else { return Ok(FormErrors::default()) };
    match account.kind {
        AccountType::CreditCard => {
            card::verify(core, &visit.client, user, &account.details.identifier).await?;
        }
        AccountType::BankTransfer => match read_image(visit, form, PROOF) {
            Ok(proof) => prove(core, &visit.client, user, &account, proof).await?,
            Err(text) => return Ok(FormErrors::one(PROOF, text)),
        },
        AccountType::Walletpay => {}
    }
    Ok(FormErrors::default())
}

/// The order's account, unless it is disabled.
async fn of_order(
    conn: &mut Connection,
    core: &Core,
    visit: &Visit,
    user: UserId,
) -> Result<Option<PaymentAccount>> {
    let Some(order) = &visit.order else { return Ok(None) };
    let named = sqlx::query_scalar!(
        r#"
        select account_id as "account_id?" from (
            select client_id, order_id, false as is_sale, account_id from buy_order
            union all
            select client_id, order_id, true, account_id from sell_order
        ) as traded where client_id = $1 and order_id = $2 and is_sale = $3
        "#,
        visit.client.id().uuid(),
        order.id.number(),
        order.side == Side::Sell,
    )
    .fetch_optional(&mut *conn)
    .await?
    .flatten();
    let key = visit.client.key_of(user);
    let accounts = accounts::list(conn, core, key).await?;
    let is_named = |account: &PaymentAccount| Some(account.id) == named && !account.disabled;
    Ok(accounts.into_iter().find(is_named))
}
