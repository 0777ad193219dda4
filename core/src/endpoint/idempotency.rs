//! `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header; section 1 of the contract): the
//! same key with the same body gets the saved answer again.

use bytes::Bytes;
use chrono::TimeDelta;
use http::StatusCode;
use ring::digest;

use crate::Core;
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::error::{Code, Error, Result};
use rampart_types::{ClientId, UserId};

/// How long an answer is kept.
const KEPT: TimeDelta = TimeDelta::hours(24);
/// After this time without an answer the request that claimed the key is taken for dead (its edge
/// was killed), and the key may be claimed again. Longer than any request may run.
const CLAIM: TimeDelta = TimeDelta::seconds(60);
/// Longest key, in bytes.
const KEY_BYTES_MAX: usize = 255;

/// Most keys that one look forgets.
const FORGOTTEN_MAX: i64 = 10_000;

/// Runs `work`, reading the members included, unless this client used the key on this route
/// already. Refusals are answers too: they are kept like successes.
///
/// # Errors
/// ER048 for a malformed key, ER999 with 409 while the first request runs and 422 for another
/// body; else what `work` answers.
pub(super) async fn once(
    core: &Core,
    (client, user): (ClientId, Option<UserId>),
    route: &'static str,
    input: &Input,
    work: impl Future<Output = Result<Reply>>,
) -> Result<Reply> {
    let Some(key) = key(input)? else { return work.await };
    let body_digest = request_digest(input, user);
    if !claim(core, client, route, key, body_digest.as_ref()).await? {
        return saved(core, client, route, key, body_digest.as_ref()).await;
    }
    let result = work.await;
    let answer = match result {
        Ok(reply) => Ok(reply),
        Err(error @ Error::Refused(_)) if !error.is(Code::RateLimited) => Err(error),
        // Nothing is known to have happened: the key is free for the next try.
        Err(error) => {
            release(core, client, route, key).await?;
            return Err(error);
        }
    };
    let reply = answer.unwrap_or_else(|error| error.reply(&input.head.request_id));
    save(core, client, route, key, &reply).await?;
    Ok(reply)
}

/// What must be the same for the saved answer: the body, and what it is about and for whom. Else a
/// key could show one user's answer to another.
fn request_digest(input: &Input, user: Option<UserId>) -> digest::Digest {
    let mut context = digest::Context::new(&digest::SHA256);
    context.update(input.head.path.as_bytes());
    // No path and no id has a line end in it.
    context.update(b"\n");
    context.update(user.map(|user| user.to_string()).unwrap_or_default().as_bytes());
    context.update(b"\n");
    match &input.upload {
        Some(upload) => context.update(&upload.digest),
        None => context.update(digest::digest(&digest::SHA256, &input.body).as_ref()),
    }
    context.finish()
}

fn key(input: &Input) -> Result<Option<&str>> {
    if !input.head.headers.contains_key("idempotency-key") {
        return Ok(None);
    }
    let key = input.head.header("idempotency-key").filter(|key| {
        (1..=KEY_BYTES_MAX).contains(&key.len()) && key.bytes().all(|b| (0x20..0x7f).contains(&b))
    });
    key.map(Some).ok_or_else(|| {
        Error::with_detail(
            Code::RequestMalformed,
            "Idempotency-Key takes 1 to 255 printable ASCII characters",
        )
    })
}

/// Claims the key; `false` when somebody has it and has not died with it.
async fn claim(
    core: &Core,
    client: ClientId,
    route: &str,
    key: &str,
    body_digest: &[u8],
) -> Result<bool> {
    let now = core.clock.now();
    let claimed = sqlx::query_scalar!(
        r#"
        insert into idempotency_key as known
            (client_id, route, key, body_digest, claimed_at, expires_at)
        values ($1, $2, $3, $4, $5, $6)
        on conflict (client_id, route, key) do update
            set body_digest = excluded.body_digest, claimed_at = excluded.claimed_at,
                expires_at = excluded.expires_at, status = null, body = null
            where known.expires_at < $5 or (known.status is null and known.claimed_at < $7)
        returning 1 as "claimed!"
        "#,
        client.uuid(),
        route,
        key,
        body_digest,
        now,
        now + KEPT,
        now - CLAIM,
    )
    .fetch_optional(&core.db)
    .await?;
    Ok(claimed.is_some())
}

async fn saved(
    core: &Core,
    client: ClientId,
    route: &str,
    key: &str,
    body_digest: &[u8],
) -> Result<Reply> {
    let row = sqlx::query!(
        "select body_digest, status, body from idempotency_key \
         where client_id = $1 and route = $2 and key = $3",
        client.uuid(),
        route,
        key,
    )
    .fetch_optional(&core.db)
    .await?;
    let refused = |status, detail| Err(Error::with_status(Code::GeneralError, status, detail));
    match row {
        Some(row) if row.body_digest != body_digest => {
            refused(StatusCode::UNPROCESSABLE_ENTITY, "this Idempotency-Key came with another body")
        }
        Some(row) => match (row.status.and_then(|s| u16::try_from(s).ok()), row.body) {
            (Some(status), Some(sealed)) => {
                let body = core.keys.open(&context(client, route, key), &sealed)?;
                let status = StatusCode::from_u16(status)
                    .map_err(|e| Error::internal("read a saved status", e))?;
                let mut reply = Reply::with_body(status, "application/json", Bytes::from(body));
                reply.set("idempotency-replayed", "true");
                Ok(reply)
            }
            _ => refused(StatusCode::CONFLICT, "the first request with this key still runs"),
        },
        None => refused(StatusCode::CONFLICT, "the first request with this key has just failed"),
    }
}

/// An answer may hold what identifies a person, so it is kept sealed, for its own row alone.
fn context(client: ClientId, route: &str, key: &str) -> String {
    format!("idempotency_key/{client}/{route}/{key}")
}

async fn save(core: &Core, client: ClientId, route: &str, key: &str, reply: &Reply) -> Result<()> {
    let status =
        i16::try_from(reply.status.as_u16()).map_err(|e| Error::internal("save a status", e))?;
    let sealed = core.keys.seal(&core.clock, &context(client, route, key), &reply.body)?;
    sqlx::query!(
        "update idempotency_key set status = $4, body = $5 \
         where client_id = $1 and route = $2 and key = $3",
        client.uuid(),
        route,
        key,
        status,
        sealed,
    )
    .execute(&core.db)
    .await?;
    Ok(())
}

async fn release(core: &Core, client: ClientId, route: &str, key: &str) -> Result<()> {
    sqlx::query!(
        "delete from idempotency_key \
         where client_id = $1 and route = $2 and key = $3 and status is null",
        client.uuid(),
        route,
        key,
    )
    .execute(&core.db)
    .await?;
    Ok(())
}

impl Core {
    /// Deletes keys whose time is over.
    ///
    /// # Errors
    /// When the database cannot be used.
    pub(crate) async fn forget_idempotency_keys(&self) -> Result<()> {
        sqlx::query!(
            "delete from idempotency_key where (client_id, route, key) in ( \
                 select client_id, route, key from idempotency_key where expires_at < $1 limit $2)",
            self.clock.now(),
            FORGOTTEN_MAX,
        )
        .execute(&self.db)
        .await?;
        Ok(())
    }
}
