//! The shopper of a checkout: signed in, or a guest. Nothing is stored in the browser: the forms
//! carry the shopper, sealed for one checkout.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::stored::Checkout;
use crate::Core;
use crate::platform::crypto::Purpose;
use crate::platform::error::{Error, Result};
use crate::tenancy::tenants::GuestOrders;
use rampart_types::UserId;

/// Time for which a sign-in on the page holds.
const LIFETIME: TimeDelta = TimeDelta::minutes(30);
/// Longest text that is opened, in bytes; a sealed one has some 250.
const TEXT_BYTES_MAX: usize = 1_024;

/// The buyer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shopper {
    /// Nobody yet: the partner wants a user.
    Unknown,
    /// Without an account, where the partner lets guests buy.
    Guest,
    /// The user whom the partner has made the checkout for.
    Named(UserId),
    /// A user of the partner, who has signed in at this time.
    User(UserId, DateTime<Utc>),
}

/// The sealed content.
#[derive(Deserialize, Serialize)]
struct Claims {
    user: Uuid,
    /// Absent in forms of edges of the version before.
    #[serde(default)]
    signed_in_at: Option<DateTime<Utc>>,
    #[serde(with = "chrono::serde::ts_seconds")]
    expires_at: DateTime<Utc>,
}

impl Shopper {
    /// The shopper before anybody signs in.
    pub(super) fn initial(checkout: &Checkout) -> Self {
        match (checkout.user, checkout.client.tenant.guest_orders) {
            (Some(user), _) => Self::Named(user),
            (None, GuestOrders::Refused) => Self::Unknown,
            (None, GuestOrders::UpTo(_) | GuestOrders::Allowed) => Self::Guest,
        }
    }

    /// The shopper that a form carries: a signed-in one, or the initial one if it carries none. What
    /// ends the user's sessions, such as another password, ends the sign-in; so does an operator
    /// who disables the user.
    pub(super) async fn open(core: &Core, checkout: &Checkout, text: &str) -> Result<Self> {
        if let Some((user, signed_in_at)) = read(core, checkout, text)
            && holds(core, checkout, user, signed_in_at).await?
        {
            return Ok(Self::User(user, signed_in_at));
        }
        Ok(match Self::initial(checkout) {
            // Whose sign-in is over is no guest: an order would not be in the account.
            Self::Guest if !text.is_empty() => Self::Unknown,
            initial => initial,
        })
    }

    /// The user, if it is one.
    pub(super) fn user(self) -> Option<UserId> {
        match self {
            Self::Named(user) | Self::User(user, _) => Some(user),
            Self::Unknown | Self::Guest => None,
        }
    }

    /// Seals a shopper for the forms of this checkout; empty unless the shopper has signed in.
    ///
    /// # Errors
    /// Without entropy.
    pub(super) fn seal(self, core: &Core, checkout: &Checkout) -> Result<String> {
        let Self::User(user, signed_in_at) = self else {
            return Ok(String::new());
        };
        let claims = Claims {
            user: user.uuid(),
            signed_in_at: Some(signed_in_at),
            expires_at: core.clock.now() + LIFETIME,
        };
        let plain = serde_json::to_vec(&claims)
            .map_err(|error| Error::internal("write a shopper's session", error))?;
        let key = core.keys.sealing_key(Purpose::Identifiers)?;
        Ok(URL_SAFE_NO_PAD.encode(key.seal(&core.clock, &context(checkout), &plain)?))
    }
}

/// The user in a form, and the time of the sign-in.
fn read(core: &Core, checkout: &Checkout, text: &str) -> Option<(UserId, DateTime<Utc>)> {
    let text = Some(text).filter(|text| text.len() <= TEXT_BYTES_MAX)?;
    let key = core.keys.sealing_key(Purpose::Identifiers).ok()?;
    let plain = key.open(&context(checkout), &URL_SAFE_NO_PAD.decode(text).ok()?).ok()?;
    let claims: Claims = serde_json::from_slice(&plain).ok()?;
    let signed_in_at = claims.signed_in_at.unwrap_or(claims.expires_at - LIFETIME);
    (core.clock.now() < claims.expires_at).then(|| (claims.user.into(), signed_in_at))
}

/// True unless the user's sessions were ended since this time, or the user is disabled.
async fn holds(
    core: &Core,
    checkout: &Checkout,
    user: UserId,
    signed_in_at: DateTime<Utc>,
) -> Result<bool> {
    let holds = sqlx::query_scalar!(
        r#"
        select exists (select from end_user
            where client_id = $1 and user_id = $2 and tokens_valid_from <= $3
                and disabled_at is null) as "holds!"
        "#,
        checkout.client.id().uuid(),
        user.uuid(),
        signed_in_at,
    )
    .fetch_one(&core.db)
    .await?;
    Ok(holds)
}

fn context(checkout: &Checkout) -> String {
    format!("checkout shopper/{}/{}", checkout.client.id(), checkout.offer)
}
