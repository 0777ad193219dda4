//! Sending what is in the outbox (`mail.smtp_url`): at least once, each mail by one edge at a time.
//!
//! A mail is claimed with a lease before it is sent, so an edge that dies with it delays it and no
//! more. Every mail has one `Message-ID`, by which a mail server knows one that it has already. No
//! address and no text of a mail is ever logged.

use std::time::{Duration, SystemTime};

use chrono::{DateTime, TimeDelta, Utc};
use futures::StreamExt as _;
use lettre::message::header::ContentType;
use lettre::message::{Mailbox, Message as Letter};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::{Address, AsyncSmtpTransport, AsyncTransport as _, Tokio1Executor};
use percent_encoding::percent_decode_str;
use url::{Host, Url};
use uuid::Uuid;

use super::Message;
use crate::Core;
use crate::platform::error::{Error, Result};
use crate::platform::settings;
use rampart_types::ClientId;

/// Most mails that one look claims.
const CLAIMED_MAX: i64 = 32;
/// Most mails that an edge sends at a time.
const AT_ONCE_MAX: usize = 4;
/// Time for one answer of the mail server.
const COMMAND_MAX: Duration = Duration::from_secs(10);
/// Time for one mail.
const MAIL_MAX: Duration = Duration::from_secs(60);
/// How long a claimed mail is its edge's: longer than all that were claimed with it may take.
const LEASE: TimeDelta = TimeDelta::minutes(10);
/// How often a mail is tried.
const TRIES_MAX: i32 = 10;
/// Age at which a mail is not worth sending any more: what it brings has ended.
const WORTH: TimeDelta = TimeDelta::hours(24);
/// The pause after the first try that failed; each further one is twice as long, up to the longest.
const PAUSE: TimeDelta = TimeDelta::seconds(5);
const PAUSE_MAX: TimeDelta = TimeDelta::hours(1);

/// Answers of a mail server that are about the mail (RFC 5321, section 4.2.3): it will never be
/// taken. Any other refusal may be about us, and end.
const REFUSED: [u16; 5] = [501, 550, 551, 553, 554];

/// The mail server, and who writes.
pub struct Mailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

impl std::fmt::Debug for Mailer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Mailer(…)")
    }
}

impl Mailer {
    /// The mailer that is configured, if one is. `public_url` names the sender's host unless
    /// `mail.from` does.
    ///
    /// # Errors
    /// A sentence that says which setting is wrong.
    pub fn new(settings: &settings::Mail, public_url: &str) -> Result<Option<Self>, &'static str> {
        let Some(url) = &settings.smtp_url else { return Ok(None) };
        let wrong = "mail.smtp_url is not smtp://user:password@host:port or smtps://…";
        let transport = transport(url.expose()).ok_or(wrong)?;
        let from = match &settings.from {
            Some(from) => from.parse().ok(),
            None => sender(public_url),
        };
        let from = from.ok_or("mail.from is not an address such as no-reply@example.com")?;
        Ok(Some(Self { transport, from }))
    }

    /// Hands a mail to the server.
    async fn send(&self, id: Uuid, mail: &Message, now: DateTime<Utc>) -> Sent {
        let Some(letter) = self.letter(id, mail, now) else { return Sent::Refused };
        match tokio::time::timeout(MAIL_MAX, self.transport.send(letter)).await {
            Ok(Ok(_)) => Sent::Yes,
            Ok(Err(error)) if error.status().is_some_and(|code| REFUSED.contains(&code.into())) => {
                Sent::Refused
            }
            // Its text may repeat what was sent, so it goes nowhere.
            Ok(Err(_)) | Err(_) => Sent::NotNow,
        }
    }

    /// `None` when the address is none that mail can be sent to.
    fn letter(&self, id: Uuid, mail: &Message, now: DateTime<Utc>) -> Option<Letter> {
        let to: Address = mail.to.as_str().parse().ok()?;
        Letter::builder()
            .from(self.from.clone())
            .to(to.into())
            .subject(&*mail.subject)
            .date(SystemTime::from(now))
            .message_id(Some(format!("<{id}@{}>", self.from.email.domain())))
            .header(ContentType::TEXT_PLAIN)
            .body(mail.text.clone())
            .ok()
    }
}

/// What became of a mail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    Yes,
    /// It will never be taken.
    Refused,
    /// It may be taken later.
    NotNow,
}

/// `smtps://` is TLS from the start. `smtp://` becomes TLS by STARTTLS, and nothing is sent without,
/// unless the server is on this machine.
fn transport(text: &str) -> Option<AsyncSmtpTransport<Tokio1Executor>> {
    let url = Url::parse(text).ok()?;
    let host = url.host_str().filter(|host| !host.is_empty())?;
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let parameters = || TlsParameters::builder(bare.to_owned()).build_rustls().ok();
    let (tls, port) = match url.scheme() {
        "smtps" => (Tls::Wrapper(parameters()?), 465),
        "smtp" if is_loopback(bare) => (Tls::None, 25),
        "smtp" => (Tls::Required(parameters()?), 587),
        _ => return None,
    };
    let decoded = |text: &str| percent_decode_str(text).decode_utf8().ok().map(String::from);
    let mut builder = AsyncSmtpTransport::<Tokio1Executor>::builder_dangerous(bare)
        .port(url.port().unwrap_or(port))
        .tls(tls)
        .timeout(Some(COMMAND_MAX));
    if let Some(password) = url.password() {
        builder =
            builder.credentials(Credentials::new(decoded(url.username())?, decoded(password)?));
    }
    Some(builder.build())
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// Who sends where nobody is named. None at an IPv6 address: `Address` knows no such literal.
fn sender(public_url: &str) -> Option<Mailbox> {
    let url = Url::parse(public_url).ok()?;
    let host = match url.host()? {
        Host::Domain(name) => name.to_owned(),
        Host::Ipv4(address) => format!("[{address}]"),
        Host::Ipv6(_) => return None,
    };
    Some(Mailbox::new(None, Address::new("no-reply", host).ok()?))
}

/// When a mail is tried again after so many tries.
fn next_try(now: DateTime<Utc>, attempts: i32) -> DateTime<Utc> {
    let doubled = u32::try_from(attempts - 1).ok().and_then(|n| 1_i32.checked_shl(n.min(20)));
    let pause = doubled.and_then(|factor| PAUSE.checked_mul(factor)).unwrap_or(PAUSE_MAX);
    now + pause.min(PAUSE_MAX)
}

impl Core {
    /// Sends mails that are due; says how many it tried. Nothing without a mail server.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub async fn send_mail(&self) -> Result<usize> {
        let Some(mailer) = &self.mailer else { return Ok(0) };
        let now = self.clock.now();
        let claimed = sqlx::query!(
            "update mail_outbox set attempts = attempts + 1, next_attempt_at = $2 \
             where (client_id, mail_id) in ( \
                 select client_id, mail_id from mail_outbox \
                 where state = 'pending' and next_attempt_at <= $1 and created_at > $3 \
                 order by next_attempt_at limit $4 for update skip locked) \
             returning client_id, mail_id, sealed, attempts",
            now,
            now + LEASE,
            now - WORTH,
            CLAIMED_MAX,
        )
        .fetch_all(&self.db)
        .await?;
        let count = claimed.len();
        let sending = claimed.into_iter().map(|row| async move {
            let client = ClientId::from(row.client_id);
            let sent = match Message::open(self, client, row.mail_id, &row.sealed) {
                Ok(mail) => mailer.send(row.mail_id, &mail, now).await,
                Err(error) => {
                    tracing::error!(%error, mail = %row.mail_id, "a mail cannot be read");
                    Sent::Refused
                }
            };
            self.settle_mail((client, row.mail_id), sent, row.attempts).await
        });
        let mut results = futures::stream::iter(sending).buffer_unordered(AT_ONCE_MAX);
        let mut failed: Result<()> = Ok(());
        while let Some(result) = results.next().await {
            failed = failed.and(result);
        }
        failed.map(|()| count)
    }

    async fn settle_mail(
        &self,
        (client, mail): (ClientId, Uuid),
        sent: Sent,
        attempts: i32,
    ) -> Result<()> {
        let now = self.clock.now();
        let (state, next) = match sent {
            Sent::Yes => ("sent", now),
            Sent::NotNow if attempts < TRIES_MAX => ("pending", next_try(now, attempts)),
            Sent::NotNow | Sent::Refused => ("failed", now),
        };
        if sent != Sent::Yes {
            tracing::warn!(%mail, attempts, state, "a mail was not taken by the mail server");
        }
        sqlx::query!(
            "update mail_outbox set state = $3, next_attempt_at = $4 \
             where client_id = $1 and mail_id = $2 and state = 'pending' and attempts = $5",
            client.uuid(),
            mail,
            state,
            next,
            attempts,
        )
        .execute(&self.db)
        .await
        .map_err(Error::from)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_an_hour() {
        let now = DateTime::UNIX_EPOCH;
        let seconds = |attempts| (next_try(now, attempts) - now).num_seconds();
        assert_eq!([1, 2, 3, 9, 10, 1_000].map(seconds), [5, 10, 20, 1_280, 2_560, 3_600]);
    }

    #[test]
    fn only_mail_urls_are_taken() {
        for good in ["smtp://localhost:2525", "smtps://a:b@mail.example.com", "smtp://[::1]:25"] {
            assert!(transport(good).is_some(), "{good}");
        }
        for bad in ["", "mail.example.com", "http://mail.example.com", "smtp://"] {
            assert!(transport(bad).is_none(), "{bad}");
        }
        assert_eq!(
            sender("https://pay.example.com/x").unwrap().to_string(),
            "no-reply@pay.example.com"
        );
        assert_eq!(sender("https://127.0.0.1:8443").unwrap().to_string(), "no-reply@[127.0.0.1]");
        assert!(sender("https://[::1]:8443").is_none());
    }
}
