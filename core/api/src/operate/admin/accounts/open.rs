//! `POST /admin/v1/users/{uuid}/accounts`

use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{AccountView, Change, EXAMPLE};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Shape};
use crate::endpoint::{Body, Created, Endpoint};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::operate::admin::operator::Operator;
use crate::operate::admin::users::{UUID, find, lock};
use crate::platform::error::{Denial, Result};
use crate::users::accounts::{
    self, AccountDetails, AccountType, HOLDER_CHARS_MAX, IDENTIFIER_BYTES_MAX, NewAccount,
    OpenOutcome,
};
use rampart_types::{Iban, JsonDecimal, plain_text};

/// Digits that a card's identifier may have; a whole card number has more.
const CARD_DIGITS_MAX: usize = 10;

/// `POST /admin/v1/users/{uuid}/accounts`
pub struct OpenAccount;

impl Endpoint for OpenAccount {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/admin/v1/users/{uuid}/accounts";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const ROLES: &'static [Role] = &[Role::Compliance];
    const APPROVAL: bool = true;
    const RETRIED: bool = true;
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Open an account for a user",
        details: "409 if the user has it already, has too many, or is deleted.",
        path: &[UUID],
        body: Shape::of::<Members>(),
        request: r#"{"type": "bankTransfer", "identifier": "NL91 ABNA 0417 1643 00",
            "name": "A. Lovelace", "verified": true, "limitRaised": true, "limit": 7500}"#,
        answer: EXAMPLE,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Opening;
    type Response = Created<AccountView>;

    fn read(input: &Input, _: &Operator) -> Result<Opening> {
        let new: Members = strict::body(input)?;
        let Members { verified, disabled, limit_raised, limit, fast_access_enabled, .. } = new;
        let limit = limit.map(Some);
        let change = Change {
            verified,
            disabled,
            limit_raised,
            limit,
            fast_access_enabled,
            version: None,
            reason: None,
        };
        change.check()?;
        let details = new.details()?;
        Ok(Opening { user: input.param("uuid").to_owned(), kind: new.kind, details, change })
    }

    async fn needs_approval(core: &Core, _: &Operator, new: &Opening) -> Result<bool> {
        if !new.change.raises_limit(None) {
            return Ok(false);
        }
        let mut conn = core.db.acquire().await?;
        find(&mut conn, &new.user).await?;
        Ok(true)
    }

    async fn call(core: &Core, operator: Operator, new: Opening) -> Result<Created<AccountView>> {
        let Opening { user, kind, details, change } = new;
        let mut tx = core.db.begin().await?;
        let user = lock(&mut tx, &user).await?;
        let account = NewAccount { kind, details, is_stored_card: false, verified: false };
        let account = match accounts::open(&mut tx, core, user, account).await? {
            OpenOutcome::Created(account) => account,
            OpenOutcome::Existing(_) => {
                return Err(Denial::conflict("the user has this account already").into());
            }
            OpenOutcome::LimitReached => {
                return Err(Denial::conflict("the user has too many accounts").into());
            }
        };
        let shown = change.apply(&mut tx, core, user, &account, operator, "account.open").await?;
        tx.commit().await?;
        Ok(Created(shown))
    }
}

/// An account to be opened.
#[derive(Debug)]
pub struct Opening {
    user: String,
    kind: AccountType,
    details: AccountDetails,
    change: Change,
}

/// An account to be opened for a user.
#[derive(Deserialize, JsonSchema)]
#[schemars(rename = "NewAccount")]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Members {
    #[serde(rename = "type")]
    kind: AccountType,
    /// IBAN, masked card number, or the provider's id; 1 to 255 bytes.
    identifier: String,
    /// Name of the holder, at most 100 characters; empty if unknown, except for a bank account.
    name: String,
    /// `true` if it is proven to be the user's; `false` if left out.
    verified: Option<bool>,
    /// `true` has it pay and receive nothing; `false` if left out.
    disabled: Option<bool>,
    /// `true` frees it of the limits of accounts that are not raised; `false` if left out.
    limit_raised: Option<bool>,
    /// Its own limit a day, of purchases and sales together, in `limits.currency`; not below zero.
    limit: Option<JsonDecimal>,
    /// Sales can be paid out to the card at once; only for cards.
    fast_access_enabled: Option<bool>,
}

impl Members {
    /// The part that is sealed.
    fn details(&self) -> Result<AccountDetails, Denial> {
        let identifier = self.identifier.trim();
        if identifier.is_empty() || identifier.len() > IDENTIFIER_BYTES_MAX {
            return Err(Denial::unprocessable("identifier: 1 to 255 bytes"));
        }
        match self.kind {
            AccountType::BankTransfer if identifier.parse::<Iban>().is_err() => {
                return Err(Denial::unprocessable("identifier: not an IBAN"));
            }
            AccountType::BankTransfer if self.name.trim().is_empty() => {
                return Err(Denial::unprocessable("name: a bank account needs its holder's name"));
            }
            AccountType::CreditCard if digits(identifier) > CARD_DIGITS_MAX => {
                return Err(Denial::unprocessable("identifier: mask the card's number"));
            }
            _ => {}
        }
        let holder = match self.name.trim() {
            "" => Some(String::new()),
            name => plain_text(name, HOLDER_CHARS_MAX),
        };
        let holder = holder.ok_or_else(|| Denial::unprocessable("name: at most 100 characters"))?;
        Ok(AccountDetails { identifier: identifier.to_owned(), holder, token: None })
    }
}

fn digits(text: &str) -> usize {
    text.chars().filter(char::is_ascii_digit).count()
}
