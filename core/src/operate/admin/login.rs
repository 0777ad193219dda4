//! Proof of an operator by a bearer token. Failed logins are limited per address, logged and counted.

use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::StatusCode;

use super::operator::Operator;
use crate::Core;
use crate::auth::client_credentials::bearer;
use crate::http::request::Head;
use crate::platform::clock::Clock;
use crate::platform::crypto::{Secret, constant_time_eq, digest_of};
use crate::platform::error::{Denial, Result};
use crate::platform::rate_limit::KeyedGcra;

/// Beginning of every operator's token. One that begins otherwise costs no statement.
const TOKEN_PREFIX: &str = "rop_";
/// Random bytes of a token: 256 bits.
const TOKEN_BYTES: usize = 32;
/// Most addresses whose failures are remembered; the least used is forgotten first.
const ADDRESSES_MAX: u64 = 65_536;
/// Idle time after which the failures of an address are forgotten; its burst is whole by then.
const ADDRESS_IDLE: Duration = Duration::from_secs(3_600);

/// Failed logins by address.
#[derive(Debug)]
pub struct LoginFailures(KeyedGcra<IpAddr>);

impl Default for LoginFailures {
    fn default() -> Self {
        Self(KeyedGcra::new(ADDRESSES_MAX, ADDRESS_IDLE))
    }
}

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
    /// 401 for a token that is missing, unknown, expired or revoked; 429 after too many of them.
    pub(super) async fn log_in(core: &Core, head: &Head) -> Result<Self> {
        let bucket = core.login_failures.0.bucket(network(head.peer));
        let quota = core.settings.ratelimit.operators;
        let now = core.clock.monotonic_ns();
        if !bucket.peek(quota, now).allowed {
            return Err(refuse(core, "limited"));
        }
        let token = head.header("authorization").and_then(bearer);
        let cause = match token {
            Some(token) => match Self::of_token(core, token).await? {
                Some(operator) => {
                    if operator.is_break_glass() {
                        alarm(core, head);
                    }
                    return Ok(operator);
                }
                None => "wrong",
            },
            None => "missing",
        };
        // Requests that were under way together may all have passed the look above.
        if !bucket.take(quota, now).allowed {
            return Err(refuse(core, "limited"));
        }
        let request_id = &*head.request_id;
        tracing::warn!(peer = %head.peer, request_id, cause, "an operator could not log in");
        Err(refuse(core, cause))
    }

    async fn of_token(core: &Core, token: &str) -> Result<Option<Self>> {
        let digest = digest_of(token);
        let configured = core.settings.admin_token.as_ref();
        let configured = configured.map(|token| digest_of(token.expose()));
        if configured.is_some_and(|configured| constant_time_eq(&digest, &configured)) {
            return Ok(Some(Self::break_glass()));
        }
        if !token.starts_with(TOKEN_PREFIX) {
            return Ok(None);
        }
        let found = sqlx::query!(
            "select o.name, o.roles from operator_token t join operator o using (operator_id) \
             where t.digest = $1 and t.revoked_at is null and t.expires_at > now() \
                 and o.disabled_at is null",
            &digest[..],
        )
        .fetch_optional(&core.db)
        .await?;
        Ok(found.map(|row| Self::named(&row.name, &row.roles)))
    }
}

/// Counts and logs a use of the configuration's token, which is for emergencies.
fn alarm(core: &Core, head: &Head) {
    core.metrics.operator_break_glass.with_label_values::<&str>(&[]).inc();
    let (peer, method, request_id) = (head.peer, &head.method, &*head.request_id);
    tracing::warn!(%peer, %method, request_id, "the break-glass token was used");
}

fn refuse(core: &Core, cause: &'static str) -> crate::platform::error::Error {
    core.metrics.operator_login_failures.with_label_values(&[cause]).inc();
    let (status, reason) = match cause {
        "limited" => (StatusCode::TOO_MANY_REQUESTS, "too many failed logins from this address"),
        _ => (StatusCode::UNAUTHORIZED, "the admin token is missing or wrong"),
    };
    Denial::new(status, reason).into()
}

/// The addresses that share their failures: an IPv4 address, or the /64 network of one IPv6 customer.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(v6) => {
            let [a, b, c, d, ..] = v6.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        v4 @ IpAddr::V4(_) => v4,
    }
}
