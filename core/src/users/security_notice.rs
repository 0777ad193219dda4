//! Mail that tells a user, or one of a partner's staff, of each change of how the account is opened: one
//! that its receiver has not made does not stay unseen (OWASP ASVS 5.0, 6.3.7).

use super::account::Account;
use crate::Core;
use crate::http::language::{Language, Texts};
use crate::platform::db::Connection;
use crate::platform::error::Result;
use crate::platform::mail::{Kind, Message};
use rampart_types::{EmailAddress, UserKey};

/// Most notices of one user in an hour: whoever changes an account over and over fills no mailbox.
const HOUR_MAX: i64 = 20;

/// The change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Changed {
    /// Another e-mail address.
    EmailAddress,
    /// Another password.
    Password,
    /// A new passkey.
    PasskeyAdded,
    /// A passkey less.
    PasskeyRemoved,
    /// A new authenticator app.
    AuthenticatorAppAdded,
    /// The authenticator app removed.
    AuthenticatorAppRemoved,
}

impl Changed {
    const fn text(self) -> &'static str {
        match self {
            Self::EmailAddress => "notice-email",
            Self::Password => "notice-password",
            Self::PasskeyAdded => "notice-passkey-added",
            Self::PasskeyRemoved => "notice-passkey-removed",
            Self::AuthenticatorAppAdded => "notice-app-added",
            Self::AuthenticatorAppRemoved => "notice-app-removed",
        }
    }
}

/// Mails a notice to the address that the user has in this transaction. None goes to an address that
/// is not proven: it may be a stranger's.
///
/// # Errors
/// When the database cannot be used.
pub(crate) async fn mail(
    conn: &mut Connection,
    core: &Core,
    key: UserKey,
    changed: Changed,
) -> Result<()> {
    let Some(account) = Account::load(&mut *conn, core, key).await? else {
        return Ok(());
    };
    let Some(to) = account.personal.email.filter(|_| account.statuses.email == "verified") else {
        return Ok(());
    };
    let Some(shop) = core.snapshots.current().tenants.get(&key.client).map(|one| one.name.clone())
    else {
        return Ok(());
    };
    if sent_in_an_hour(conn, key).await? >= HOUR_MAX {
        return Ok(());
    }
    let texts = Language::of_region(account.region.as_deref()).texts();
    let message = notice(texts, &shop, to, changed);
    message.enqueue(conn, core, key.client, Kind::SecurityNotice, Some(key.user)).await
}

/// The notice to this address about an account with the partner of this name.
pub(crate) fn notice(texts: Texts, shop: &str, to: EmailAddress, changed: Changed) -> Message {
    let shop = [("shop", shop)];
    Message {
        to,
        subject: texts.with("notice-subject", &shop),
        text: format!("{}\n{}\n", texts.get(changed.text()), texts.with("notice-not-you", &shop)),
        secrets: Some(Vec::new()),
    }
}

async fn sent_in_an_hour(conn: &mut Connection, key: UserKey) -> Result<i64> {
    let count = sqlx::query_scalar!(
        r#"
        select count(*) as "count!" from mail_outbox
        where client_id = $1 and user_id = $2 and kind = 'security-notice'
            and created_at > rampart_now() - interval '1 hour'
        "#,
        key.client.uuid(),
        key.user.uuid(),
    )
    .fetch_one(conn)
    .await?;
    Ok(count)
}
