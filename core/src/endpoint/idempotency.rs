//! `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header; section 1 of the contract): the
//! same key with the same body gets the saved answer again.

mod claims;

use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use http::StatusCode;
use ring::digest;
use serde::Serialize;

pub use self::claims::KeyClaims;
use self::claims::KeyRow;
use crate::Core;
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::error::{Code, Error, Result};
use rampart_types::{ClientId, UserId};

/// Longest key, in bytes.
const KEY_BYTES_MAX: usize = 255;

/// Most keys that one look forgets.
const FORGOTTEN_MAX: i64 = 10_000;

/// The key of a request, once it was looked for.
pub(super) enum Claim {
    /// The request has none.
    NoKey,
    /// The request is the first one with it.
    Claimed(ClaimedKey),
    /// The answer that is saved under it.
    Answered(Reply),
}

/// Claims the request's key, or finds what was answered under it.
///
/// # Errors
/// ER048 for a malformed key, ER999 with 409 while the first request runs and 422 for another
/// body.
pub(super) async fn claim(
    core: &Core,
    (client, user): (ClientId, Option<UserId>),
    route: &'static str,
    input: &Input,
) -> Result<Claim> {
    let Some(key) = key(input)? else { return Ok(Claim::NoKey) };
    let body_digest = request_digest(input, user);
    let body_digest = body_digest.as_ref();
    let (client_id, digest) = (client.uuid(), body_digest.to_vec());
    let asked = KeyRow { client_id, route, key: key.to_owned(), digest };
    if core.key_claims.submit(asked).await? {
        let key = key.to_owned();
        return Ok(Claim::Claimed(ClaimedKey {
            client,
            route,
            key,
            saved: AtomicBool::new(false),
        }));
    }
    saved(core, client, route, key, body_digest).await.map(Claim::Answered)
}

/// A key that this request has claimed: its answer is saved under it.
#[derive(Debug)]
pub struct ClaimedKey {
    client: ClientId,
    route: &'static str,
    key: String,
    /// The endpoint's own statement has saved the answer.
    saved: AtomicBool,
}

/// An answer as it is saved, for the statement of an endpoint.
#[derive(Debug, Serialize)]
pub(crate) struct SavedAnswer {
    key_route: &'static str,
    key: String,
    answer_status: u16,
    /// Sealed, in Postgres's hexadecimal form of bytes.
    answer_body: String,
}

impl ClaimedKey {
    /// The answer for a statement that saves it beside its effect.
    ///
    /// # Errors
    /// When it cannot be sealed.
    pub(crate) fn answer(&self, core: &Core, reply: &Reply) -> Result<SavedAnswer> {
        Ok(SavedAnswer {
            key_route: self.route,
            key: self.key.clone(),
            answer_status: reply.status.as_u16(),
            answer_body: format!("\\x{}", hex::encode(self.seal(core, reply)?)),
        })
    }

    /// Notes that the statement with [`ClaimedKey::answer`] was carried out.
    pub(crate) fn mark_saved(&self) {
        self.saved.store(true, Ordering::Relaxed);
    }

    /// Saves the answer. Refusals are answers too: they are kept like successes. Where nothing is
    /// known to have happened, the key is free for the next try.
    ///
    /// # Errors
    /// Those of `result` that are no refusal, and those of the database.
    pub(super) async fn settle(
        self,
        core: &Core,
        result: Result<Reply>,
        request_id: &str,
    ) -> Result<Reply> {
        let reply = match result {
            Ok(reply) if self.saved.load(Ordering::Relaxed) => return Ok(reply),
            Ok(reply) => reply,
            Err(error @ Error::Refused(_)) if !error.is(Code::RateLimited) => {
                error.reply(request_id)
            }
            Err(error) => {
                self.release(core).await?;
                return Err(error);
            }
        };
        self.save(core, &reply).await?;
        Ok(reply)
    }

    fn seal(&self, core: &Core, reply: &Reply) -> Result<Vec<u8>> {
        let context = context(self.client, self.route, &self.key);
        core.keys.seal(&core.clock, &context, &reply.body)
    }

    async fn save(&self, core: &Core, reply: &Reply) -> Result<()> {
        let status = i16::try_from(reply.status.as_u16())
            .map_err(|e| Error::internal("save a status", e))?;
        sqlx::query!(
            "update idempotency_key set status = $4, body = $5 \
             where client_id = $1 and route = $2 and key = $3",
            self.client.uuid(),
            self.route,
            self.key,
            status,
            self.seal(core, reply)?,
        )
        .execute(&core.db)
        .await?;
        Ok(())
    }

    async fn release(&self, core: &Core) -> Result<()> {
        sqlx::query!(
            "delete from idempotency_key \
             where client_id = $1 and route = $2 and key = $3 and status is null",
            self.client.uuid(),
            self.route,
            self.key,
        )
        .execute(&core.db)
        .await?;
        Ok(())
    }
}

/// SHA-256 of path, user and body, which a repeated request must match to get the saved answer.
/// Without it, a key could show one user's answer to another.
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
