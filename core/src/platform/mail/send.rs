//! Delivery of the outbox by SMTP (`mail.smtp_url`): at least once, each mail by one edge at a time.
//!
//! A mail is claimed with a lease before it is sent, so the death of an edge only delays it. Every
//! mail has one `Message-ID`, by which a mail server can recognise a duplicate. No address and no
//! text of a mail is ever logged.

use std::error::Error as _;
use std::time::{Duration, SystemTime};

use chrono::{DateTime, TimeDelta, Utc};
use futures::StreamExt as _;
use lettre::message::header::ContentType;
use lettre::message::{Mailbox, Message as Email};
use lettre::transport::smtp::authentication::Credentials;
use lettre::transport::smtp::client::{Tls, TlsParameters};
use lettre::{Address, AsyncSmtpTransport, AsyncTransport as _, Tokio1Executor};
use percent_encoding::percent_decode_str;
use url::{Host, Url};
use uuid::Uuid;

use super::Message;
use super::outcome::SendOutcome;
use crate::Core;
use crate::platform::error::{Error, Result};
use crate::platform::settings;
use rampart_types::ClientId;

/// Most mails claimed at once.
pub const CLAIMED_MAX: usize = 16;
/// Most mails that an edge sends concurrently.
const CONCURRENCY_MAX: usize = 4;
/// Timeout of one SMTP command.
const COMMAND_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of a look at the server.
const CHECK_TIMEOUT: Duration = Duration::from_secs(5);
const MAIL_TIMEOUT: Duration = Duration::from_secs(60);
/// Longest time of sending all mails of one claim.
pub const SENDING_MAX: Duration =
    Duration::from_secs(CLAIMED_MAX.div_ceil(CONCURRENCY_MAX) as u64 * MAIL_TIMEOUT.as_secs());
/// Duration of a claim.
const LEASE: TimeDelta = TimeDelta::minutes(10);
// No other edge sends what is being sent.
const _: () = assert!(SENDING_MAX.as_secs().cast_signed() < LEASE.num_seconds());
/// The worker in metrics and logs.
const SWEEP: &str = "mail";
/// Age above which a mail is not sent any more, because its code or link has expired.
const AGE_MAX: TimeDelta = TimeDelta::hours(24);
/// Most mails of that age that one run ends.
const ENDED_MAX: i64 = 1_000;
/// Backoff after the first failed attempt, which doubles with each one up to the maximum. The alert
/// `RampartMailLate` looks for attempts in 15 minutes.
const BACKOFF: TimeDelta = TimeDelta::seconds(5);
const BACKOFF_MAX: TimeDelta = TimeDelta::minutes(10);

/// The SMTP transport and the sender.
pub struct Mailer {
    transport: AsyncSmtpTransport<Tokio1Executor>,
    from: Mailbox,
}

rampart_types::opaque_debug!(Mailer);

impl Mailer {
    /// The configured mailer, if any. Without `mail.from` it sends from the host of `public_url`.
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

    /// Connects to the server, and logs in where the settings say so; sends nothing.
    ///
    /// # Errors
    /// The reason it cannot be used, without its own words, which may quote the password.
    pub async fn check(&self) -> Result<(), &'static str> {
        match tokio::time::timeout(CHECK_TIMEOUT, self.transport.test_connection()).await {
            Ok(Ok(true)) => Ok(()),
            Ok(Ok(false)) => Err("the mail server closes the connection"),
            Ok(Err(error)) if error.status().is_some() => Err("the mail server refuses us"),
            Ok(Err(error)) if error.is_tls() => Err("no TLS with the mail server"),
            Ok(Err(error)) if error.is_timeout() => Err("the mail server does not answer in time"),
            Ok(Err(_)) => Err("the mail server cannot be reached"),
            Err(_) => Err("the mail server does not answer in time"),
        }
    }

    /// Hands a mail of a partner to the server.
    async fn send(
        &self,
        id: Uuid,
        mail: &Message,
        partner: Option<String>,
        now: DateTime<Utc>,
    ) -> SendOutcome {
        let Some(email) = self.build_email(id, mail, partner, now) else {
            tracing::warn!(mail = %id, "a mail's address is none of SMTP's");
            return SendOutcome::Rejected;
        };
        let sending = self.transport.send(email);
        let (code, text) = match tokio::time::timeout(MAIL_TIMEOUT, sending).await {
            Ok(Ok(_)) => return SendOutcome::Sent,
            // The text may quote the mail, so it is not logged.
            Ok(Err(error)) => {
                (error.status().map(u16::from), error.source().map(ToString::to_string))
            }
            Err(_) => (None, None),
        };
        tracing::warn!(mail = %id, code, "the mail server did not take a mail");
        SendOutcome::refused(code, &text.unwrap_or_default())
    }

    /// Builds the email, under the partner's name if `mail.from` has none; `None` when the address
    /// is invalid for SMTP.
    fn build_email(
        &self,
        id: Uuid,
        mail: &Message,
        partner: Option<String>,
        now: DateTime<Utc>,
    ) -> Option<Email> {
        let to: Address = mail.to.as_str().parse().ok()?;
        let name = self.from.name.clone().or(partner);
        Email::builder()
            .from(Mailbox::new(name, self.from.email.clone()))
            .to(to.into())
            .subject(&*mail.subject)
            .date(SystemTime::from(now))
            .message_id(Some(format!("<{id}@{}>", self.from.email.domain())))
            .header(ContentType::TEXT_PLAIN)
            .body(mail.text.clone())
            .ok()
    }
}

/// Builds the SMTP transport. `smtps://` is implicit TLS; `smtp://` requires STARTTLS, unless the
/// server is on this machine.
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
        .timeout(Some(COMMAND_TIMEOUT));
    if let Some(password) = url.password() {
        builder =
            builder.credentials(Credentials::new(decoded(url.username())?, decoded(password)?));
    }
    Some(builder.build())
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

/// The default sender. At an IP address its host is `localhost`: no header is built with a literal.
fn sender(public_url: &str) -> Option<Mailbox> {
    let url = Url::parse(public_url).ok()?;
    let host = match url.host()? {
        Host::Domain(name) => name,
        Host::Ipv4(_) | Host::Ipv6(_) => "localhost",
    };
    Some(Mailbox::new(None, Address::new("no-reply", host).ok()?))
}

/// The time of the next attempt after `attempts`.
fn next_attempt(now: DateTime<Utc>, attempts: i32) -> DateTime<Utc> {
    let doubled = u32::try_from(attempts - 1).ok().and_then(|n| 1_i32.checked_shl(n.min(20)));
    let backoff = doubled.and_then(|factor| BACKOFF.checked_mul(factor)).unwrap_or(BACKOFF_MAX);
    now + backoff.min(BACKOFF_MAX)
}

/// A mail that this edge has leased.
struct ClaimedMail {
    client_id: Uuid,
    mail_id: Uuid,
    sealed: Vec<u8>,
    attempts: i32,
}

impl Core {
    /// Marks mails that are too old as failed, then sends due ones if there is a mail server. How
    /// many it attempted is the answer.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub async fn send_mail(&self) -> Result<usize> {
        self.end_old_mail().await?;
        let Some(mailer) = &self.mailer else { return Ok(0) };
        let now = self.clock.now();
        let claimed = self.claim_mail().await?;
        let count = claimed.len();
        // They are leased whatever fails from here on.
        if let Err(error) = self.refresh_for(claimed.iter().map(|row| row.client_id.into())).await {
            tracing::warn!(%error, "keys of new tenants cannot be read");
        }
        let sending = claimed.into_iter().map(|row| async move {
            let client = ClientId::from(row.client_id);
            let partner = self.snapshots.current().tenants.get(&client).map(|one| one.name.clone());
            let (outcome, opened) = match Message::open(self, client, row.mail_id, &row.sealed) {
                Ok(mail) => (mailer.send(row.mail_id, &mail, partner, now).await, Ok(())),
                // Another edge may have the key, or this one when it has loaded it.
                Err(error) => (SendOutcome::Deferred, Err(error)),
            };
            let recorded = self.record_outcome(client, row.mail_id, outcome, row.attempts).await;
            (client, row.mail_id, recorded.and(opened))
        });
        let mut results = futures::stream::iter(sending).buffer_unordered(CONCURRENCY_MAX);
        while let Some((client, mail, result)) = results.next().await {
            if let Err(error) = result {
                self.metrics.row_failed(SWEEP, client.uuid(), &mail, error)?;
            }
        }
        Ok(count)
    }

    /// Ends mails that nobody sends any more, so that they neither count as waiting nor are read by
    /// every claim. One that an edge is sending is left to it.
    async fn end_old_mail(&self) -> Result<()> {
        let ended = sqlx::query!(
            "with overdue as materialized ( \
                 select client_id, mail_id from mail_outbox \
                 where state = 'pending' and next_attempt_at <= rampart_now() \
                     and created_at <= rampart_now() - $1::bigint * interval '1 second' \
                 order by created_at limit $2 for update skip locked) \
             update mail_outbox m set state = 'failed' from overdue o \
             where m.client_id = o.client_id and m.mail_id = o.mail_id",
            AGE_MAX.num_seconds(),
            ENDED_MAX,
        )
        .execute(&self.db)
        .await?;
        if ended.rows_affected() > 0 {
            tracing::warn!(mails = ended.rows_affected(), "mails became too old to be sent");
        }
        Ok(())
    }

    /// Claims due mails, partner by partner in turns: a hundred thousand of one delay nobody else's. Of a
    /// partner's, links to set a password come first, then codes: somebody waits for them. Other edges
    /// skip claimed rows.
    async fn claim_mail(&self) -> Result<Vec<ClaimedMail>> {
        let claimed = sqlx::query_as!(
            ClaimedMail,
            r#"
            with recursive lane as (
                (
                    select client_id, kind from mail_outbox where state = 'pending'
                    order by client_id, kind limit 1
                )
                union all
                select next.client_id, next.kind
                from lane l cross join lateral (
                    select client_id, kind from mail_outbox
                    where state = 'pending' and (client_id, kind) > (l.client_id, l.kind)
                    order by client_id, kind limit 1
                ) next
            ), due as materialized (
                select d.client_id, d.mail_id, d.next_attempt_at, row_number() over (
                    partition by d.client_id
                    order by case when d.kind in ('reset-password', 'staff-password') then 0
                        when d.kind = 'email-code' then 1 else 2 end, d.next_attempt_at, d.mail_id
                ) as turn
                from lane l cross join lateral (
                    select client_id, mail_id, kind, next_attempt_at from mail_outbox
                    where client_id = l.client_id and kind = l.kind and state = 'pending'
                        and next_attempt_at <= rampart_now()
                        and created_at > rampart_now() - $2::bigint * interval '1 second'
                    order by next_attempt_at, mail_id limit $3
                    for update skip locked
                ) d
            ), chosen as materialized (
                select client_id, mail_id from due
                order by turn, next_attempt_at, mail_id limit $3
            )
            update mail_outbox m set attempts = m.attempts + 1,
                next_attempt_at = rampart_now() + $1::bigint * interval '1 second'
            -- of arrays the planner expects few rows, and looks each up
            from unnest(array(select client_id from chosen), array(select mail_id from chosen))
                as picked (client_id, mail_id)
            where m.client_id = picked.client_id and m.mail_id = picked.mail_id
            returning m.client_id, m.mail_id, m.sealed, m.attempts
            "#,
            LEASE.num_seconds(),
            AGE_MAX.num_seconds(),
            i64::try_from(CLAIMED_MAX).unwrap_or(i64::MAX),
        )
        .fetch_all(&self.db)
        .await?;
        Ok(claimed)
    }

    async fn record_outcome(
        &self,
        client: ClientId,
        mail: Uuid,
        outcome: SendOutcome,
        attempts: i32,
    ) -> Result<()> {
        let now = self.clock.now();
        let (state, next) = match outcome {
            SendOutcome::Sent => ("sent", now),
            SendOutcome::Rejected => ("failed", now),
            SendOutcome::Deferred | SendOutcome::Unavailable => {
                ("pending", next_attempt(now, attempts))
            }
        };
        self.metrics.mail_attempts.with_label_values(&[outcome.as_str()]).inc();
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
    use crate::platform::crypto::Secret;

    #[test]
    fn backoff_doubles_up_to_ten_minutes() {
        let now = DateTime::UNIX_EPOCH;
        let seconds = |attempts| (next_attempt(now, attempts) - now).num_seconds();
        assert_eq!([1, 2, 3, 7, 8, 1_000].map(seconds), [5, 10, 20, 320, 600, 600]);
    }

    #[test]
    fn only_smtp_urls_are_accepted() {
        for good in ["smtp://localhost:2525", "smtps://a:b@mail.example.com", "smtp://[::1]:25"] {
            assert!(transport(good).is_some(), "{good}");
        }
        for bad in ["", "mail.example.com", "http://mail.example.com", "smtp://"] {
            assert!(transport(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn the_default_sender_is_at_the_public_host_or_at_localhost() {
        for (url, address) in [
            ("https://pay.example.com/x", "no-reply@pay.example.com"),
            ("https://127.0.0.1:8443", "no-reply@localhost"),
            ("https://[::1]:8443", "no-reply@localhost"),
        ] {
            assert_eq!(sender(url).unwrap().to_string(), address);
        }
    }

    #[test]
    fn a_sender_with_an_address_literal_is_refused_at_start() {
        let smtp_url = Some(Secret::new("smtp://localhost:2525".to_owned()));
        for from in ["no-reply@[127.0.0.1]", "no-reply@[IPv6:::1]"] {
            let settings = settings::Mail { smtp_url: smtp_url.clone(), from: Some(from.into()) };
            let error = Mailer::new(&settings, "https://pay.example.com").unwrap_err();
            assert!(error.starts_with("mail.from is not an address"), "{from}: {error}");
        }
    }
}
