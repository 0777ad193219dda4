//! `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header; section 1 of the contract): the
//! same key with the same body gets the saved answer again.

mod claims;
mod forms;
mod request;
mod request_digest;

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::future::BoxFuture;
use http::StatusCode;
use serde::Serialize;
use tokio::time::timeout;
use uuid::Uuid;

pub use self::claims::KeyClaims;
use self::claims::{KeyRow, RENEWAL_INTERVAL};
pub use self::forms::FormUse;
use self::request::key;
use self::request_digest::RequestDigest;
use crate::Core;
use crate::auth::caller::Caller;
use crate::http::error_envelope::codes_of;
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::db::Connection;
use crate::platform::error::{Code, Denial, Error, Result};
use crate::tenancy::house::house;
use rampart_types::{ClientId, UserId};

/// Longest time that a failed request waits for its key to be freed.
const RELEASE_TIMEOUT: Duration = Duration::from_millis(250);

/// Detail of the refusal while another request has the key.
const RUNNING: &str = "the first request with this key still runs";

/// The key of a request, once it was looked for.
pub(super) enum Claim {
    /// The request has none.
    NoKey,
    /// The request is the first one with it.
    Claimed(ClaimedKey),
    /// The answer that is saved under it.
    Answered(Reply),
}

/// Claims the request's key, or finds what was answered under it. The keys of operators are among
/// the rows of the house.
///
/// # Errors
/// ER048 for a malformed key; ER999, or an operator's error, with 409 while the first request runs
/// and 422 for another body.
pub(super) async fn claim(
    core: &Core,
    client: ClientId,
    caller: &impl Caller,
    route: &'static str,
    input: &Input,
) -> Result<Claim> {
    let Some(key) = key(input)? else { return Ok(Claim::NoKey) };
    let key = ClaimedKey {
        client,
        user: caller.user().map_or_else(OnceLock::new, OnceLock::from),
        route,
        key: key.to_owned(),
        digest: RequestDigest::new(
            core,
            &row_name(client, route, key),
            input,
            &caller.key_owner(),
        )?,
        claim: core.clock.uuid()?,
        saved: AtomicBool::new(false),
        lost: AtomicBool::new(false),
    };
    let asked = KeyRow {
        client_id: client.uuid(),
        route,
        key: key.key.clone(),
        digest: key.digest.stored().to_vec(),
        claim_id: key.claim,
        user_id: key.user.get().map(|user| user.uuid()),
    };
    let is_claimed = match key.is_of_operator() {
        // An operator's call waits for no request of partners.
        true => claims::claim_alone(&core.db, &asked).await?,
        false => core.key_claims.submit(asked).await?,
    };
    if is_claimed {
        return Ok(Claim::Claimed(key));
    }
    key.find_answer(core).await.map(Claim::Answered)
}

/// A key that this request has claimed: its answer is saved under it.
///
/// A request that was taken for dead loses its key to the next one. Its answer can then not be saved,
/// and its effect is undone by the transaction in which that was tried ([`save_answer`]).
#[derive(Debug)]
pub struct ClaimedKey {
    client: ClientId,
    /// The user with whom the answer is erased: the caller's, or the one whom the endpoint has named.
    user: OnceLock<UserId>,
    route: &'static str,
    key: String,
    digest: RequestDigest,
    /// Tells this request from others with the key.
    claim: Uuid,
    /// The endpoint's own transaction has saved the answer.
    saved: AtomicBool,
    /// Another request has the key, or its user is erased.
    lost: AtomicBool,
}

/// An answer as it is saved, for the statement of an endpoint.
#[derive(Debug, Serialize)]
pub struct SavedAnswer {
    pub(crate) key_route: &'static str,
    pub(crate) key: String,
    pub(crate) key_claim: Uuid,
    pub(crate) answer_status: i16,
    #[serde(skip)]
    sealed_body: Vec<u8>,
}

impl SavedAnswer {
    /// The sealed body.
    pub(crate) fn body(&self) -> &[u8] {
        &self.sealed_body
    }
}

/// Saves the answer in the transaction of its effect, as its last statement: both or neither. Nothing
/// is saved for a request without a key.
///
/// # Errors
/// When another request has claimed the key in the meantime, or its user is erased, and when it cannot
/// be saved: the transaction must not be committed then.
pub async fn save_answer(
    key: Option<&ClaimedKey>,
    core: &Core,
    tx: &mut Connection,
    answer: &impl Serialize,
) -> Result<()> {
    match key {
        Some(_) => save_reply(key, core, tx, &Reply::json(StatusCode::OK, answer)?).await,
        None => Ok(()),
    }
}

/// As [`save_answer`], of an answer that is no 200 with JSON.
///
/// # Errors
/// As [`save_answer`].
pub async fn save_reply(
    key: Option<&ClaimedKey>,
    core: &Core,
    tx: &mut Connection,
    reply: &Reply,
) -> Result<()> {
    match key {
        Some(key) => key.save_in(core, tx, reply).await,
        None => Ok(()),
    }
}

/// The error of a request whose key another one has claimed, as a statement found that saves the
/// answer beside its effect.
pub fn key_lost(key: Option<&ClaimedKey>) -> Error {
    key.map_or_else(|| Error::invariant("lose a key that was never claimed"), ClaimedKey::lost)
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
            key_claim: self.claim,
            answer_status: reply.status.as_u16().cast_signed(),
            sealed_body: self.seal(core, reply)?,
        })
    }

    /// Names the user whom the answer tells of, where the caller's credential names none.
    pub(crate) fn set_user(&self, user: UserId) {
        // The one of a credential is the same.
        let _ = self.user.set(user);
    }

    /// Notes that the statement with [`ClaimedKey::answer`] was carried out.
    pub(crate) fn mark_saved(&self) {
        self.saved.store(true, Ordering::Relaxed);
    }

    /// Notes that another request has claimed the key, or that its user is erased. The error that ends
    /// this one; what the partner gets is the other one's answer.
    fn lost(&self) -> Error {
        self.lost.store(true, Ordering::Relaxed);
        Error::with_status(Code::GeneralError, StatusCode::CONFLICT, RUNNING)
    }

    /// Carries out the request's work, and renews the claim for as long as that takes.
    pub(super) async fn renew_while(
        &self,
        core: &Core,
        mut work: BoxFuture<'_, Result<Reply>>,
    ) -> Result<Reply> {
        loop {
            if let Ok(done) = timeout(RENEWAL_INTERVAL, &mut work).await {
                return done;
            }
            tokio::select! {
                done = &mut work => return done,
                () = self.renew(core) => {}
            }
        }
    }

    async fn renew(&self, core: &Core) {
        if let Err(error) = claims::renew(&core.db, self).await {
            tracing::debug!(%error, "the claim of an idempotency key could not be renewed");
        }
    }

    /// True for the key of an operator's call.
    fn is_of_operator(&self) -> bool {
        self.client == house()
    }

    /// Saves the answer. Refusals of partners are answers too: they are kept like successes. Where
    /// nothing is known to have happened, the key is free for the next try. Of an operator's call,
    /// only what its transaction has saved is kept: one that waits for a second person or is
    /// refused is made again in the same words.
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
            Err(_) if self.lost.load(Ordering::Relaxed) => {
                // Of an erased user, it is still this request's.
                self.release(core).await;
                return self.find_answer(core).await;
            }
            result if self.is_of_operator() => {
                self.release(core).await;
                return result;
            }
            Ok(reply) => reply,
            Err(error) if error.is_final() => error.reply(request_id),
            Err(error) => {
                self.release(core).await;
                return Err(error);
            }
        };
        let saved = self.save(core, &mut *core.db.acquire().await?, &reply).await?;
        // A key that is still this request's is that of a user who was erased meanwhile: the answer is
        // given, and not kept.
        if saved || self.release(core).await { Ok(reply) } else { self.find_answer(core).await }
    }

    fn seal(&self, core: &Core, reply: &Reply) -> Result<Vec<u8>> {
        core.cipher(self.client).seal(&self.context(), &reply.body)
    }

    /// Saves the answer in the transaction of its effect.
    async fn save_in(&self, core: &Core, tx: &mut Connection, reply: &Reply) -> Result<()> {
        if !self.save(core, tx, reply).await? {
            return Err(self.lost());
        }
        self.mark_saved();
        Ok(())
    }

    /// Saves the answer; `false` when another request has the key, or its user is erased. The lock has
    /// an erasure wait, which deletes the answer, or this find nobody.
    async fn save(&self, core: &Core, conn: &mut Connection, reply: &Reply) -> Result<bool> {
        // An answer without a body tells of nobody, so that an erasure may save its own.
        let user = self.user.get().filter(|_| !reply.body.is_empty());
        let saved = sqlx::query!(
            "update idempotency_key set status = $5, body = $6, user_id = $7 \
             where client_id = $1 and route = $2 and key = $3 and claim_id = $4 \
             and status is null and ($7::uuid is null or exists ( \
                 select from end_user u where u.client_id = $1 and u.user_id = $7 \
                     and u.deleted_at is null for share))",
            self.client.uuid(),
            self.route,
            self.key,
            self.claim,
            reply.status.as_u16().cast_signed(),
            self.seal(core, reply)?,
            user.map(|user| user.uuid()),
        )
        .execute(conn)
        .await?;
        Ok(saved.rows_affected() == 1)
    }

    /// Frees the key; `false` when another request has it. One that cannot be freed now is free when
    /// its claim ends.
    async fn release(&self, core: &Core) -> bool {
        let release = sqlx::query!(
            "delete from idempotency_key where client_id = $1 and route = $2 and key = $3 \
             and claim_id = $4 and status is null",
            self.client.uuid(),
            self.route,
            self.key,
            self.claim,
        )
        .execute(&core.db);
        match timeout(RELEASE_TIMEOUT, release).await {
            Ok(Ok(released)) => return released.rows_affected() == 1,
            Ok(Err(error)) => tracing::warn!(%error, "an idempotency key could not be freed"),
            Err(_) => tracing::warn!("an idempotency key could not be freed in time"),
        }
        false
    }

    /// The refusal of a request whose key another one has, as its API words it.
    fn refusal(&self, status: StatusCode, reason: &'static str) -> Error {
        match self.is_of_operator() {
            true => Denial::new(status, reason).into(),
            false => Error::with_status(Code::GeneralError, status, reason),
        }
    }

    /// The answer of the request that has the key.
    ///
    /// # Errors
    /// 409 while there is none, and 422 when it was asked with another body.
    async fn find_answer(&self, core: &Core) -> Result<Reply> {
        let row = sqlx::query!(
            "select body_digest, status, body from idempotency_key \
             where client_id = $1 and route = $2 and key = $3",
            self.client.uuid(),
            self.route,
            self.key,
        )
        .fetch_optional(&core.db)
        .await?;
        let refused = |status, reason| Err(self.refusal(status, reason));
        match row {
            Some(row) if !self.digest.matches(&row.body_digest) => refused(
                StatusCode::UNPROCESSABLE_ENTITY,
                "this Idempotency-Key came with another body",
            ),
            Some(row) => match (row.status.and_then(|s| u16::try_from(s).ok()), row.body) {
                (Some(status), Some(sealed)) => {
                    let body = core.cipher(self.client).open(&self.context(), &sealed)?;
                    let status = StatusCode::from_u16(status)
                        .map_err(|e| Error::internal("read a saved status", e))?;
                    let mut reply = match body.is_empty() {
                        true => Reply::empty(status),
                        false => Reply::with_body(status, "application/json", Bytes::from(body)),
                    };
                    // For the log and the metrics, as the first time.
                    if status.is_client_error() {
                        reply.codes = codes_of(&reply.body);
                    }
                    reply.set("idempotency-replayed", "true");
                    Ok(reply)
                }
                _ => refused(StatusCode::CONFLICT, RUNNING),
            },
            None => {
                refused(StatusCode::CONFLICT, "the first request with this key has just failed")
            }
        }
    }

    fn context(&self) -> String {
        row_name(self.client, self.route, &self.key)
    }
}

/// The name of a row: an answer may hold what identifies a person, so it is kept sealed, for its own
/// row alone.
fn row_name(client: ClientId, route: &str, key: &str) -> String {
    format!("idempotency_key/{client}/{route}/{key}")
}
