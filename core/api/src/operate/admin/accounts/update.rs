//! `PATCH /admin/v1/users/{uuid}/accounts/{accountIdentifier}`

use http::{Method, StatusCode};
use uuid::Uuid;

use super::{AccountView, Change, EXAMPLE};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Kind, Shape, required};
use crate::endpoint::{Body, Endpoint, Json};
use crate::http::fields::strict;
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::operate::admin::approvals::{self, Held};
use crate::operate::admin::operator::Operator;
use crate::operate::admin::users::{UUID, lock};
use crate::platform::db::Connection;
use crate::platform::error::{Denial, Result};
use crate::users::accounts::{self, PaymentAccount};
use rampart_types::UserKey;

/// `PATCH /admin/v1/users/{uuid}/accounts/{accountIdentifier}`
pub struct UpdateAccount;

impl Endpoint for UpdateAccount {
    const METHOD: Method = Method::PATCH;
    const PATH: &'static str = "/admin/v1/users/{uuid}/accounts/{accountIdentifier}";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const ROLES: &'static [Role] = &[Role::Compliance];
    const APPROVAL: bool = true;
    const RETRIED: bool = true;
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Update a user's account",
        details: "Verifies or disables it, or raises its limit. Members that are left out stay as \
                  they are; a deleted user is 409. `reason` is for the audit alone. Send the \
                  account's `version` with `verified`: its user can name another holder until \
                  then.",
        path: &[
            UUID,
            required("accountIdentifier", Kind::Text, "The account's identifier, or its id."),
        ],
        body: Shape::of::<Change>(),
        request: r#"{"verified": true, "reason": "the statement names the holder"}"#,
        answer: EXAMPLE,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Update;
    type Response = Json<AccountView>;

    fn read(input: &Input, _: &Operator) -> Result<Update> {
        let change: Change = strict::body(input)?;
        change.check()?;
        let account = input.param("accountIdentifier").to_owned();
        Ok(Update { user: input.param("uuid").to_owned(), account, change })
    }

    async fn hold(
        core: &Core,
        input: &Input,
        operator: &Operator,
        update: &Update,
    ) -> Result<Option<Reply>> {
        if !update.change.has_limits() {
            return Ok(None);
        }
        let (UserKey { user, .. }, account) =
            update.find(&mut *core.db.begin().await?, core).await?;
        if !update.change.raises_limit(Some(&account)) {
            return Ok(None);
        }
        // An account's identifier is personal, such as an IBAN: the call is kept with its id.
        let path = format!("/admin/v1/users/{user}/accounts/{}", account.id);
        let call = Held::of::<Self>(input, &[]).at(&path);
        approvals::hold_as(core, input, call, operator).await
    }

    async fn call(core: &Core, operator: Operator, update: Update) -> Result<Json<AccountView>> {
        let mut tx = core.db.begin().await?;
        let (user, account) = update.find(&mut tx, core).await?;
        if update.change.raises_limit(Some(&account)) {
            approvals::require(&operator)?;
        }
        let (change, action) = (update.change, "account.change");
        let shown = change.apply(&mut tx, core, user, &account, operator, action).await?;
        tx.commit().await?;
        Ok(Json(shown))
    }
}

/// A change of one account.
#[derive(Debug)]
pub struct Update {
    user: String,
    account: String,
    change: Change,
}

impl Update {
    /// The account that is changed, and whose it is. The user's row is locked from then on.
    ///
    /// # Errors
    /// 404 without such a user or account; 409 when the user is deleted, or the account has another
    /// version than the call says.
    async fn find(&self, conn: &mut Connection, core: &Core) -> Result<(UserKey, PaymentAccount)> {
        let user = lock(conn, &self.user).await?;
        let account = named(conn, core, user, &self.account).await?;
        if self.change.version.as_ref().is_some_and(|seen| *seen != account.version) {
            let reason = "the account has another holder or card session by now: look at it again";
            return Err(Denial::conflict(reason).into());
        }
        Ok((user, account))
    }
}

/// The account that a path names, by its identifier or by its id.
async fn named(
    conn: &mut Connection,
    core: &Core,
    user: UserKey,
    name: &str,
) -> Result<PaymentAccount> {
    if let Some(account) = accounts::find(conn, core, user, name).await? {
        return Ok(account);
    }
    let id: Option<Uuid> = name.parse().ok();
    let all = accounts::list(conn, core, user).await?;
    let found = all.into_iter().find(|account| Some(account.id) == id);
    found.ok_or_else(|| Denial::not_found("account").into())
}
