//! Forms that were sent: each counts once within its session. One that is sent twice, as by a double
//! click, is answered twice alike within ten minutes, as a form of the portal.

use std::time::Duration;

use bytes::Bytes;
use http::StatusCode;
use serde::Serialize;
use serde_json::json;
use tokio::time::sleep;

use super::layout::ROOT;
use super::visit::Visit;
use crate::endpoint::FormUse;
use crate::http::reply::Reply;
use crate::platform::crypto::sha256;
use crate::platform::error::{Error, Result};
use crate::tenancy::house::house;

/// Largest answer of a call that is kept, in bytes: more than any with a secret.
const KEPT_BYTES_MAX: usize = 64 * 1024;
/// Pause between two looks for the answer to the first.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// Longest wait for it. Twice that is well within the time for a page.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// A form of its session's that was sent.
#[derive(Debug)]
pub(super) struct Submission<'a> {
    visit: Visit<'a>,
    nonce: String,
    form: FormUse,
}

impl<'a> Submission<'a> {
    /// The form with this token and content; `None` if no form of the session has the token.
    pub(super) fn of(visit: &Visit<'a>, token: &str, content: &impl Serialize) -> Option<Self> {
        let nonce = visit.session.nonce(token)?.to_owned();
        // The token is one session's alone, so no other one gets the answer. A form that was changed
        // and sent from the same page is another one.
        let sent = json!([visit.head.path, token, content]).to_string();
        let form = FormUse { client: house(), route: ROOT, key: hex::encode(sha256(&sent)) };
        Some(Self { visit: *visit, nonce, form })
    }

    /// The answer to the same form sent before; waits for one that is under way.
    ///
    /// # Errors
    /// When the database cannot be used.
    #[expect(
        clippy::disallowed_methods,
        reason = "LOOK_INTERVAL: another edge may answer the first"
    )]
    pub(super) async fn earlier(&self) -> Result<Option<Reply>> {
        let core = self.visit.core;
        let began = core.clock.monotonic_ns();
        loop {
            let mut conn = core.db.acquire().await?;
            let kept = self.form.result(core, &mut conn).await?;
            drop(conn);
            match kept.as_deref() {
                None => return Ok(None),
                Some("") => {}
                Some(kept) => return read(kept).map(Some),
            }
            let waited = core.clock.monotonic_ns().saturating_sub(began);
            if Duration::from_nanos(waited) >= WAIT_MAX {
                return Ok(None);
            }
            sleep(LOOK_INTERVAL).await;
        }
    }

    /// Makes the call of the form, and keeps its answer, or as much of it as a page shows. Of a form
    /// that was sent before, the answer to the first; `None` if that is not known.
    ///
    /// # Errors
    /// When the database cannot be used: the call was not made.
    pub(super) async fn once(
        &self,
        shows_answer: bool,
        call: impl Future<Output = Reply> + Send,
    ) -> Result<Option<Reply>> {
        let Visit { core, session, .. } = self.visit;
        let mut tx = core.db.begin().await?;
        if self.form.begin(core, &mut tx).await?.is_some() {
            tx.rollback().await?;
            return self.earlier().await;
        }
        // With other content, or longer ago than ten minutes.
        if !session.use_form(&mut tx, &self.nonce).await? {
            tx.rollback().await?;
            return Ok(None);
        }
        // Ended first: the call takes connections of its own.
        tx.commit().await?;
        let reply = call.await;
        if let Err(error) = self.keep(shows_answer, &reply).await {
            tracing::warn!(%error, "the answer to a form could not be kept");
        }
        Ok(Some(reply))
    }

    async fn keep(&self, shows_answer: bool, reply: &Reply) -> Result<()> {
        let core = self.visit.core;
        let is_shown = shows_answer || !is_done(reply);
        let body: &[u8] = if is_shown { &reply.body } else { &[] };
        let mut conn = core.db.acquire().await?;
        if body.len() > KEPT_BYTES_MAX {
            return self.form.release(&mut conn).await;
        }
        let kept = format!("{} {}", reply.status.as_u16(), String::from_utf8_lossy(body));
        self.form.keep(core, &mut conn, &kept).await
    }
}

/// True if a call is carried out, and does not wait for a second person.
pub(super) fn is_done(reply: &Reply) -> bool {
    reply.status.is_success() && reply.status != StatusCode::ACCEPTED
}

/// The answer that was kept in this text.
fn read(kept: &str) -> Result<Reply> {
    let (status, body) = kept.split_once(' ').unwrap_or((kept, ""));
    let status = StatusCode::from_bytes(status.as_bytes())
        .map_err(|error| Error::internal("read the answer to a form", error))?;
    Ok(Reply::with_body(status, "application/json", Bytes::copy_from_slice(body.as_bytes())))
}
