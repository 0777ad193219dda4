//! The policy an operation is about.

use rampart_plugins::contract::PolicyKind;
use rampart_types::ClientId;

use super::error::LifecycleError;
use crate::auth::approval::GrantedApproval;
use crate::platform::db::Connection;
use crate::policies::statement::SignedChange;

/// Longest reason, in characters.
pub const REASON_CHARS_MAX: usize = 500;

/// One kind of policy of one partner, with the operator and the reason of the operation.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// Operator of the operation.
    pub actor: &'a str,
    /// Slug of the partner.
    pub slug: &'a str,
    /// The partner.
    pub client: ClientId,
    /// Kind of policy.
    pub kind: PolicyKind,
    /// The operator's reason, for the history; at most [`REASON_CHARS_MAX`].
    pub reason: Option<&'a str>,
    /// The operator's signature, which some partners require.
    pub signed: Option<&'a SignedChange>,
    /// True if a second person has agreed, or none is needed.
    pub is_approved: bool,
    /// The second person's approval, which the change uses up with its record.
    pub approval: Option<&'a GrantedApproval>,
}

impl Target<'_> {
    /// Refuses a change of what is active that one person makes where the partner demands two. The
    /// caller holds the row lock of the client.
    ///
    /// # Errors
    /// [`LifecycleError::Conflict`] without an approval.
    pub async fn check_persons(self, conn: &mut Connection) -> Result<(), LifecycleError> {
        check_persons(conn, self.client, self.is_approved).await
    }
}

/// As [`Target::check_persons`], for a change of what the policies of a partner rely on.
///
/// # Errors
/// [`LifecycleError::Conflict`] without an approval.
pub async fn check_persons(
    conn: &mut Connection,
    client: ClientId,
    is_approved: bool,
) -> Result<(), LifecycleError> {
    let is_required = sqlx::query_scalar!(
        "select policy_approval_required from client where client_id = $1",
        client.uuid(),
    )
    .fetch_one(conn)
    .await?;
    if is_required && !is_approved {
        return Err(LifecycleError::Conflict(
            "the partner demands two persons for it by now: call again",
        ));
    }
    Ok(())
}
