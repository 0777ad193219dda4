//! Mail to users and partners, written to an outbox in the transaction that causes it. Address and
//! text are sealed; operators read them without what proves the reader (`GET /admin/v1/mail`). A
//! worker sends the outbox if a mail server is configured.

mod outcome;
mod send;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

pub use self::send::Mailer;
pub use self::send::{CLAIMED_MAX, SENDING_MAX};
use crate::Core;
use crate::platform::db::Connection;
use crate::platform::error::{Error, Result};
use rampart_types::{ClientId, EmailAddress, UserId};

/// Text that stands for a code or a token.
const CONCEALED: &str = "…";

/// The purpose of a mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A code that proves the address.
    EmailCode,
    /// A link to set a new password.
    ResetPassword,
    /// A webhook endpoint of the partner was disabled.
    WebhookDisabled,
    /// A link that lets one of the partner's staff join.
    StaffInvitation,
    /// A link to set a new password of one of the partner's staff.
    StaffPassword,
    /// A link to go on with a checkout on another device.
    CheckoutLink,
    /// A change of how the user's account is opened.
    SecurityNotice,
}

rampart_types::named_values! {
    Kind {
        EmailCode = "email-code",
        ResetPassword = "reset-password",
        WebhookDisabled = "webhook-disabled",
        StaffInvitation = "staff-invitation",
        StaffPassword = "staff-password",
        CheckoutLink = "checkout-link",
        SecurityNotice = "security-notice",
    }
}

/// The sealed content of a mail.
#[derive(Serialize, Deserialize)]
pub struct Message {
    /// Recipient.
    pub to: EmailAddress,
    /// Subject line.
    pub subject: String,
    pub(crate) text: String,
    /// The parts of the text that prove its reader: a code, or the token of a link. Operators do not
    /// see them. `None` in mail from before they were told apart.
    #[serde(default)]
    pub(crate) secrets: Option<Vec<String>>,
}

rampart_types::opaque_debug!(Message);

impl Message {
    /// Adds the mail to the outbox. Without a user of this address it is stored as withheld: that takes
    /// the same time, and strangers get no mail.
    pub(crate) async fn enqueue(
        &self,
        conn: &mut Connection,
        core: &Core,
        client: ClientId,
        kind: Kind,
        user: Option<UserId>,
    ) -> Result<()> {
        self.insert(conn, core, client, kind, user, user.is_some()).await
    }

    /// Adds a mail to the partner's own people to the outbox; without an address of theirs, as
    /// withheld.
    pub(crate) async fn enqueue_to_partner(
        &self,
        conn: &mut Connection,
        core: &Core,
        client: ClientId,
        kind: Kind,
        has_address: bool,
    ) -> Result<()> {
        self.insert(conn, core, client, kind, None, has_address).await
    }

    async fn insert(
        &self,
        conn: &mut Connection,
        core: &Core,
        client: ClientId,
        kind: Kind,
        user: Option<UserId>,
        sent: bool,
    ) -> Result<()> {
        let id = core.clock.uuid()?;
        let plain = serde_json::to_vec(self).map_err(|e| Error::internal("write a mail", e))?;
        let (cipher, context) = (core.cipher(client), context(client, id));
        sqlx::query!(
            "insert into mail_outbox \
             (client_id, mail_id, user_id, kind, sealed, state, created_at) \
             values ($1, $2, $3, $4, case when exists (select from user_key_master_seal) \
                 then $8::bytea else $5::bytea end, $6, $7)",
            client.uuid(),
            id,
            user.map(UserId::uuid),
            kind.as_str(),
            cipher.seal(&context, &plain)?,
            if sent { "pending" } else { "withheld" },
            core.clock.now(),
            cipher.seal_twice(&context, &plain)?,
        )
        .execute(conn)
        .await?;
        Ok(())
    }

    /// The text as operators may see it; nothing of a mail that does not say what to conceal.
    pub fn concealed(&self) -> String {
        let Some(secrets) = &self.secrets else { return String::new() };
        secrets.iter().fold(self.text.clone(), |text, secret| text.replace(secret, CONCEALED))
    }

    /// Opens the mail of a row.
    ///
    /// # Errors
    /// When it belongs to another row or was altered.
    pub fn open(core: &Core, client: ClientId, id: Uuid, sealed: &[u8]) -> Result<Self> {
        let plain = core.cipher(client).open(&context(client, id), sealed)?;
        serde_json::from_slice(&plain).map_err(|_| Error::invariant("read a mail"))
    }
}

/// The context that a mail is sealed for.
pub fn context(client: ClientId, id: Uuid) -> String {
    format!("mail_outbox/{client}/{id}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_do_not_see_what_proves_the_reader() {
        let mail = |secrets: Option<&[&str]>| Message {
            to: "ada@example.com".parse().unwrap(),
            subject: "Your code".to_owned(),
            text: "Your code is 123456.".to_owned(),
            secrets: secrets.map(|secrets| secrets.iter().map(ToString::to_string).collect()),
        };
        assert_eq!(mail(Some(&["123456"])).concealed(), "Your code is ….");
        assert_eq!(mail(Some(&[])).concealed(), "Your code is 123456.");
        assert_eq!(mail(None).concealed(), "");
    }
}
