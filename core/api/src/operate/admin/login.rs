//! Proof of an operator by a bearer token, their own or the provider's, or by a session. Failed logins
//! are limited per address, logged and counted.

pub(in crate::operate) mod console;
pub(in crate::operate) mod form;
pub(in crate::operate) mod session;

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::StatusCode;

use self::session::Session;
use super::operator::Operator;
use crate::Core;
use crate::auth::client_credentials::bearer;
use crate::auth::oidc::{Person, Provider, Refusal};
use crate::http::request::Head;
use crate::platform::clock::Clock;
use crate::platform::crypto::{Secret, constant_time_eq, sha256};
use crate::platform::error::{Denial, Error, Result};
use crate::platform::rate_limit::{Decision, Gcra};
use crate::platform::telemetry::TraceScope;

/// Beginning of every operator's token. One that begins otherwise costs no statement.
const TOKEN_PREFIX: &str = "rop_";
/// Random bytes of a token: 256 bits.
const TOKEN_BYTES: usize = 32;

/// Generates an operator's token.
///
/// # Errors
/// Without entropy.
pub(super) fn generate_token(clock: &Clock) -> Result<Secret> {
    let secret: [u8; TOKEN_BYTES] = clock.random_bytes()?;
    Ok(Secret::new(format!("{TOKEN_PREFIX}{}", URL_SAFE_NO_PAD.encode(secret))))
}

impl Operator {
    /// Proves the operator of a request.
    ///
    /// # Errors
    /// 401 for a token that is missing, unknown, expired or revoked, 403 for a person without a role;
    /// 429 after too many of them.
    pub(in crate::operate) async fn log_in(core: &Core, head: &Head) -> Result<Self> {
        let token = head.header("authorization").and_then(bearer);
        let shown = token.or_else(|| Session::cookie(core, head));
        let attempt = Attempt::begin_with(core, head, shown)?;
        let found = match (token, &core.oidc) {
            (Some(token), Some(provider)) if Provider::is_token(token) => {
                let proven = provider.prove(&core.clock, token).await;
                let person = proven.map_err(|refusal| attempt.refuse(&refusal))?;
                Some(admit(core, head, &person).await?)
            }
            (Some(token), _) => Self::of_token(core, token).await?,
            (None, _) => Session::of(core, head).await?.map(|session| session.operator),
        };
        match found {
            Some(operator) => {
                attempt.succeed();
                if operator.is_break_glass() {
                    alarm(core, head);
                }
                Ok(operator)
            }
            None => Err(attempt.fail(if token.is_some() { "wrong" } else { "missing" })),
        }
    }

    async fn of_token(core: &Core, token: &str) -> Result<Option<Self>> {
        let digest = sha256(token);
        let configured = core.settings.admin_token.as_ref();
        let configured = configured.map(|token| sha256(token.expose()));
        if configured.is_some_and(|configured| constant_time_eq(&digest, &configured)) {
            return Ok(Some(Self::break_glass()));
        }
        if !token.starts_with(TOKEN_PREFIX) {
            return Ok(None);
        }
        let found = sqlx::query!(
            "select o.operator_id, o.name, o.roles \
             from operator_token t join operator o using (operator_id) \
             where t.digest = $1 and t.revoked_at is null and t.expires_at > now() \
                 and o.disabled_at is null",
            &digest[..],
        )
        .fetch_optional(&core.db)
        .await?;
        Ok(found.map(|row| Self::with_token(row.operator_id, &row.name, &row.roles)))
    }
}

/// Counts and logs a use of the configuration's token, which is for emergencies.
pub(in crate::operate) fn alarm(core: &Core, head: &Head) {
    core.metrics.operator_break_glass.with_label_values::<&str>(&[]).inc();
    let (peer, method, request_id) = (head.peer, &head.method, &*head.request_id);
    let trace_id = TraceScope::current().trace_id();
    tracing::warn!(%peer, %method, request_id, trace_id, "the break-glass token was used");
}

/// One attempt to log in, by an address that may try.
struct Attempt<'a> {
    core: &'a Core,
    head: &'a Head,
    bucket: Arc<Gcra>,
    now: u64,
    /// The digest of what is shown to prove the operator.
    shown: Option<[u8; 32]>,
}

impl<'a> Attempt<'a> {
    /// Begins one.
    ///
    /// # Errors
    /// 429 after too many failures of this address.
    fn begin(core: &'a Core, head: &'a Head) -> Result<Self> {
        Self::begin_with(core, head, None)
    }

    /// Begins one with this token or session.
    ///
    /// # Errors
    /// 429 after too many failures of this address, unless that has proven an operator there.
    fn begin_with(core: &'a Core, head: &'a Head, shown: Option<&str>) -> Result<Self> {
        let (failures, now) = (&core.login_failures, core.clock.monotonic_ns());
        let bucket = failures.bucket(head.peer);
        let shown = shown.map(sha256);
        let is_known = shown.is_some_and(|shown| failures.is_known(head.peer, shown));
        let decision = bucket.peek(core.settings.ratelimit.operators, now);
        if !decision.allowed && !is_known {
            return Err(limited(core, decision));
        }
        Ok(Self { core, head, bucket, now, shown })
    }

    /// Knows what was shown from now on.
    fn succeed(&self) {
        if let Some(shown) = self.shown {
            self.core.login_failures.know(self.head.peer, shown);
        }
    }

    /// Counts it as failed: 401, or 429.
    fn fail(&self, cause: &'static str) -> Error {
        match self.count(cause) {
            Ok(()) => {
                let reason = "the admin token is missing or wrong";
                Denial::new(StatusCode::UNAUTHORIZED, reason).into()
            }
            Err(limited) => limited,
        }
    }

    /// Counts it as failed, and logs it.
    ///
    /// # Errors
    /// 429 after too many failures of this address.
    fn count(&self, cause: &'static str) -> Result<()> {
        let Self { core, head, bucket, now, shown } = self;
        if let Some(shown) = shown {
            core.login_failures.forget(head.peer, *shown);
        }
        // Requests that were under way together may all have passed the look before.
        let decision = bucket.take(core.settings.ratelimit.operators, *now);
        if !decision.allowed {
            return Err(limited(core, decision));
        }
        record(core, head, cause);
        Ok(())
    }

    /// The answer to somebody whom the provider has not proven, or who has no role here.
    fn refuse(&self, refusal: &Refusal) -> Error {
        if let Refusal::Invalid(reason) = refusal {
            tracing::info!(reason, "the provider's proof of an operator does not count");
            return self.fail("wrong");
        }
        refused(self.core, self.head, refusal)
    }
}

/// Counts and logs a login that has failed.
fn record(core: &Core, head: &Head, cause: &'static str) {
    let (peer, request_id) = (head.peer, &*head.request_id);
    let trace_id = TraceScope::current().trace_id();
    tracing::warn!(%peer, request_id, trace_id, cause, "an operator could not log in");
    core.metrics.operator_login_failures.with_label_values(&[cause]).inc();
}

/// The answer to a refusal that is no guess at a token.
fn refused(core: &Core, head: &Head, refusal: &Refusal) -> Error {
    match refusal {
        Refusal::Invalid(reason) => Denial::new(StatusCode::UNAUTHORIZED, *reason).into(),
        Refusal::WrongCode => {
            let reason = "the provider did not take the code of this login: begin it again";
            Denial::new(StatusCode::UNAUTHORIZED, reason).into()
        }
        Refusal::NotPermitted { sentence, .. } => forbidden(core, head, sentence),
        Refusal::Unavailable(_) => {
            core.metrics.operator_login_failures.with_label_values(&["provider"]).inc();
            let reason = "the provider of logins cannot be asked; a token of your own still works";
            Denial::new(StatusCode::SERVICE_UNAVAILABLE, reason).into()
        }
    }
}

/// The operator whom the provider has proven. One who has, or ever had, the name of a
/// disabled operator is refused.
///
/// # Errors
/// 403.
async fn admit(core: &Core, head: &Head, person: &Person) -> Result<Operator> {
    let known = sqlx::query!(
        r#"
        select exists (select from operator where disabled_at is not null and (name = $2
                or name in (select name from operator_identity where identity = $1)))
                as "disabled!",
            exists (select from operator_identity where identity = $1 and name = $2) as "named!"
        "#,
        person.identity,
        person.name,
    )
    .fetch_one(&core.db)
    .await?;
    if known.disabled {
        return Err(forbidden(core, head, &format!("{} is disabled here", person.name)));
    }
    if !known.named {
        sqlx::query!(
            "insert into operator_identity (identity, name) values ($1, $2) \
             on conflict (identity, name) do nothing",
            person.identity,
            person.name,
        )
        .execute(&core.db)
        .await?;
    }
    Ok(Operator::proven(person))
}

/// The answer to a person whom the provider has proven, and who may do nothing here.
fn forbidden(core: &Core, head: &Head, sentence: &str) -> Error {
    record(core, head, "forbidden");
    Denial::new(StatusCode::FORBIDDEN, sentence.to_owned()).into()
}

fn limited(core: &Core, decision: Decision) -> Error {
    core.metrics.operator_login_failures.with_label_values(&["limited"]).inc();
    Denial::rate_limited("too many failed logins from this address", decision).into()
}
