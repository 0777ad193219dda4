//! The account that a confirm names: the one that a purchase is paid from, or that a sale is paid
//! out to.

use uuid::Uuid;

use crate::Core;
use crate::platform::error::{Code, Refusal, Result};
use crate::trading::payment_methods::families::Family;
use crate::trading::quotes::Quote;
use crate::users::accounts::{self, PaymentAccount};
use rampart_types::{ClientId, UserId, UserKey};

/// The member that names it.
const MEMBER: &str = "accountIdentifier";

/// The payment account named in a confirm.
#[derive(Debug)]
pub(crate) enum NamedAccount {
    /// Nothing.
    None,
    /// One that the user does not have; another user's is as unknown.
    Unknown,
    /// One of the user's.
    Known(PaymentAccount),
}

impl NamedAccount {
    /// Looks the account up, among those of the user that the order will be of.
    pub(crate) async fn find(
        core: &Core,
        client: ClientId,
        user: Option<UserId>,
        identifier: Option<&str>,
    ) -> Result<Self> {
        let Some(identifier) = identifier else { return Ok(Self::None) };
        let Some(user) = user else { return Ok(Self::Unknown) };
        let mut conn = core.db.acquire().await?;
        let key = UserKey { client, user };
        let account = accounts::find(&mut conn, core, key, identifier).await?;
        Ok(account.map_or(Self::Unknown, Self::Known))
    }

    /// Adds every reason why the account cannot pay for the quote to `refusal`.
    pub(crate) fn check(&self, quote: &Quote, refusal: &mut Refusal) {
        let account = match self {
            Self::None => return,
            Self::Unknown => return refusal.add_of_member(Code::AccountNotFound, MEMBER),
            Self::Known(account) => account,
        };
        let fits = Family::for_kind(account.kind).contains(&quote.payment_method);
        let checks = [
            (account.disabled, Code::AccountDisabled),
            (!fits, Code::AccountTypeUnsupported),
            (!account.verified, Code::AccountNotVerified),
        ];
        for (_, code) in checks.into_iter().filter(|(stands, _)| *stands) {
            refusal.add_of_member(code, MEMBER);
        }
    }

    /// Its id, for the order.
    pub(crate) fn id(&self) -> Option<Uuid> {
        match self {
            Self::Known(account) => Some(account.id),
            Self::None | Self::Unknown => None,
        }
    }

    /// The account's part of the digest that a repeated confirm must match. It holds no personal
    /// value, because the digest is unkeyed.
    pub(crate) fn term(&self) -> Option<String> {
        match self {
            Self::None => None,
            Self::Unknown => Some("unknown".to_owned()),
            Self::Known(account) => Some(account.id.to_string()),
        }
    }
}
