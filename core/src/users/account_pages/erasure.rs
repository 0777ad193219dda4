//! The erasure of an account by its user: a page that says in numbers what it does, and the proof
//! that it is the user, by the password or a passkey.

use http::StatusCode;
use maud::{Markup, html};
use serde_json::json;

use super::passkey;
use super::view::View;
use crate::Core;
use crate::http::form::Form;
use crate::http::html::components::{Field, Tone, field, toast};
use crate::http::html::form_errors::FormErrors;
use crate::http::reply::Reply;
use crate::platform::audit::{self, Entry};
use crate::platform::db::{self, Connection};
use crate::platform::error::{Code, Result};
use crate::users::account::{self, RowLock};
use crate::users::erase::erase;
use crate::users::passkeys::lock_visit;
use crate::users::session::{Login, verify_login};
use rampart_types::UserKey;

/// Refusal that stands above the form.
enum Refused {
    Nothing,
    /// The password is not the user's.
    Password,
    /// The passkey could not be verified.
    Passkey,
}

/// Numbers of what the erasure of a user deletes and keeps.
struct Met {
    accounts: i64,
    documents: i64,
    second_factors: i64,
    plans: i64,
    orders: i64,
    /// Those that have not ended, without which nobody is erased on the page.
    open_orders: i64,
    has_password: bool,
}

impl Met {
    async fn count(conn: &mut Connection, UserKey { client, user }: UserKey) -> Result<Self> {
        let met = sqlx::query_as!(
            Met,
            r#"
            with traded as materialized (
                select status from buy_order where client_id = $1 and user_id = $2
                union all
                select status from sell_order where client_id = $1 and user_id = $2
            )
            select
                (select count(*) from payment_account
                    where client_id = $1 and user_id = $2) as "accounts!",
                (select count(*) from user_document
                    where client_id = $1 and user_id = $2 and media_type is not null)
                    as "documents!",
                (select count(*) from passkey where client_id = $1 and user_id = $2)
                    + (select count(*) from authenticator_app where client_id = $1 and user_id = $2
                        and confirmed_at is not null)
                    as "second_factors!",
                (select count(*) from dca_plan where client_id = $1 and user_id = $2) as "plans!",
                (select count(*) from traded) as "orders!",
                (select count(*) from traded where status in ('pending', 'in progress', 'blocked'))
                    as "open_orders!",
                password_hash is not null as "has_password!"
            from end_user where client_id = $1 and user_id = $2
            "#,
            client.uuid(),
            user.uuid(),
        )
        .fetch_one(conn)
        .await?;
        Ok(met)
    }
}

/// The page that asks for the proof.
///
/// # Errors
/// When the database cannot be used.
pub(super) async fn ask(view: &View<'_>) -> Result<Reply> {
    confirmation(view, StatusCode::OK, &Refused::Nothing).await
}

/// Erases the account if the form proves the user, and none of the orders is open.
///
/// # Errors
/// Code 920 after too many attempts; ER700 when the visit of the page has ended meanwhile; when the
/// database cannot be used.
pub(super) async fn submit(view: &View<'_>, form: &Form) -> Result<Reply> {
    let (core, key) = (view.invited.core, view.account.key());
    let refused = match form.get("credential").is_empty() {
        true => (!proves_password(view, form).await?).then_some(Refused::Password),
        false => (!passkey::proves_erasure(core, view.invited.client, key.user, form).await?)
            .then_some(Refused::Passkey),
    };
    if let Some(refused) = refused {
        return confirmation(view, StatusCode::BAD_REQUEST, &refused).await;
    }
    if !db::retrying_statement(|| erase_unless_open(core, key, view.challenge)).await? {
        return confirmation(view, StatusCode::CONFLICT, &Refused::Nothing).await;
    }
    let note = toast(Tone::Good, &view.texts().get("erase-done"));
    Ok(view.page(StatusCode::OK, &note))
}

/// Erases the account in one transaction, as long as the visit of this challenge lasts; `false` while one
/// of its orders is open.
async fn erase_unless_open(core: &Core, key: UserKey, visit: &str) -> Result<bool> {
    let mut tx = core.db.begin().await?;
    // Another erasure may have come first, which is as good.
    if account::lock(&mut tx, key, RowLock::Update).await? {
        if !lock_visit(&mut tx, key, visit, RowLock::Update).await? {
            return Err(Code::UserCredentialMissing.into());
        }
        let met = Met::count(&mut tx, key).await?;
        if met.open_orders > 0 {
            tx.rollback().await?;
            return Ok(false);
        }
        erase(&mut tx, core, key).await?;
        let (actor, target) = (format!("user:{}", key.user), key.user.to_string());
        let detail = json!({"orders": met.orders});
        let entry = Entry { actor: &actor, action: "user.erase", target: &target, detail };
        audit::record(&mut tx, core, entry).await?;
    }
    tx.commit().await?;
    Ok(true)
}

/// True if the form's password is the user's. Attempts are counted like those of a login.
async fn proves_password(view: &View<'_>, form: &Form) -> Result<bool> {
    let Some(email) = view.account.personal.email.clone() else { return Ok(false) };
    let login = Login::new(email, form.get("password"));
    match verify_login(view.invited.core, view.invited.client, login).await {
        Ok(user) => Ok(user == view.account.user),
        Err(error) if error.is(Code::LoginInvalid) => Ok(false),
        Err(error) => Err(error),
    }
}

async fn confirmation(view: &View<'_>, status: StatusCode, refused: &Refused) -> Result<Reply> {
    let (core, texts) = (view.invited.core, view.texts());
    let mut conn = core.db.acquire().await?;
    let met = Met::count(&mut conn, view.account.key()).await?;
    drop(conn);
    let shop = &view.invited.client.tenant.name;
    let proof = match met.open_orders {
        0 => proof(view, &met, refused).await?,
        count => {
            let count = count.to_string();
            toast(Tone::Warning, &texts.with("erase-open-orders", &[("count", &count)]))
        }
    };
    let body = html! {
        @match refused {
            Refused::Nothing => {}
            Refused::Passkey => (toast(Tone::Bad, &texts.get("passkey-wrong"))),
            Refused::Password => {
                (FormErrors::one("password", texts.get("erase-password-wrong")).summary(texts))
            }
        }
        h2 { (texts.get("erase-title")) }
        p { (texts.with("erase-about", &[("shop", shop)])) }
        (numbers(view, &met))
        (proof)
        (view.button("show", "", &[], &texts.get("erase-not")))
    };
    Ok(view.page(status, &body))
}

/// The numbers in words.
fn numbers(view: &View<'_>, met: &Met) -> Markup {
    let texts = view.texts();
    let years = view.invited.core.settings.privacy.retention_years.to_string();
    let orders = met.orders.to_string();
    let values = [("count", orders.as_str()), ("years", years.as_str())];
    html! {
        dl {
            dt { (texts.get("account-payment-accounts")) } dd { (met.accounts) }
            dt { (texts.get("erase-documents")) } dd { (met.documents) }
            dt { (texts.get("erase-second-factors")) } dd { (met.second_factors) }
            dt { (texts.get("erase-plan-names")) } dd { (met.plans) }
        }
        @if met.orders > 0 { p { (texts.with("erase-kept", &values)) } }
    }
}

/// The form for the password, and the one for an older passkey, of who has them. Who has no password
/// has signed in by a passkey.
async fn proof(view: &View<'_>, met: &Met, refused: &Refused) -> Result<Markup> {
    let texts = view.texts();
    let wrong = texts.get("erase-password-wrong");
    let label = texts.get("password");
    let password = Field {
        kind: "password",
        autocomplete: "current-password",
        error: matches!(refused, Refused::Password).then_some(&*wrong),
        ..Field::text("password", &label)
    };
    let (user, visit) = (view.account.user, view.challenge);
    let by_passkey =
        passkey::erasure_form(view.invited.core, view.invited.client, user, texts, visit).await?;
    Ok(html! {
        @if met.has_password {
            form method="post" {
                (view.challenge_input())
                (field(&password))
                button.danger type="submit" name="action" value="erase" {
                    (texts.get("erase-confirm"))
                }
            }
        }
        @match by_passkey {
            Some(form) => (form),
            None if !met.has_password => p { (texts.get("erase-passkey-new")) },
            None => {}
        }
    })
}
