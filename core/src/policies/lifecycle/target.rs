//! The policy an operation is about.

use rampart_plugins::contract::PolicyKind;
use rampart_types::ClientId;

use crate::policies::statement::SignedChange;

/// Longest reason, in characters.
pub(crate) const REASON_CHARS_MAX: usize = 500;

/// One kind of policy of one partner, with the operator and the reason of the operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target<'a> {
    pub(crate) actor: &'a str,
    pub(crate) slug: &'a str,
    pub(crate) client: ClientId,
    pub(crate) kind: PolicyKind,
    /// The operator's reason, for the history; at most [`REASON_CHARS_MAX`].
    pub(crate) reason: Option<&'a str>,
    /// The operator's signature, which some partners require.
    pub(crate) signed: Option<&'a SignedChange>,
}
