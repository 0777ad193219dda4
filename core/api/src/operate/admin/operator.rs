//! The caller of the operators' API.

use std::sync::{Arc, OnceLock};

use futures::future::BoxFuture;
use http::StatusCode;
use rampart_types::UserId;
use serde_json::Value;
use uuid::Uuid;

use super::approvals;
use crate::Core;
use crate::auth::approval::{GrantedApproval, UsedApproval};
use crate::auth::caller::{Caller, Client, UserProof};
use crate::auth::oidc::Person;
use crate::auth::roles::{BREAK_GLASS, Role};
use crate::endpoint::{Approver, Endpoint};
use crate::http::Surface;
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::audit::{self, Entry};
use crate::platform::db::Connection;
use crate::platform::error::{Code, Denial, Error, Result};

/// An operator, proven by a token or a session.
#[derive(Clone, Debug)]
pub struct Operator {
    name: Arc<str>,
    roles: Arc<[Role]>,
    identity: Identity,
    /// The session of the call; none of one with a token.
    session: Option<Uuid>,
    /// A second operator's approval of this call, once it is found. Clones share it: each attempt at the
    /// call uses it up in its own transaction.
    approval: Arc<OnceLock<GrantedApproval>>,
}

/// The part of an operator that stays as it is whatever they are named.
#[derive(Clone, Debug)]
enum Identity {
    /// The holder of the token of the configuration.
    BreakGlass,
    /// The operator's row, proven by a token of its own.
    Row(Uuid),
    /// Issuer and subject, as the provider has proven.
    Proven(Arc<str>),
    /// The provider has proven somebody to an edge of the version before, which kept a name alone.
    Unknown,
}

impl Operator {
    /// The holder of the token of the configuration, an owner who needs no second person.
    pub(super) fn break_glass() -> Self {
        Self::new(BREAK_GLASS, vec![Role::Owner], Identity::BreakGlass)
    }

    /// An operator with a token of their own, by the id of their row.
    pub(super) fn with_token(id: Uuid, name: &str, roles: &[String]) -> Self {
        Self::new(name, named(roles), Identity::Row(id))
    }

    /// An operator whom the provider has proven.
    pub(super) fn proven(person: &Person) -> Self {
        let identity = Identity::Proven(person.identity.as_str().into());
        Self::new(&person.name, person.roles.clone(), identity)
    }

    /// An operator whom the provider had proven when a session of theirs began.
    pub(super) fn proven_before(identity: Option<&str>, name: &str, roles: &[String]) -> Self {
        let identity = identity.map_or(Identity::Unknown, |known| Identity::Proven(known.into()));
        Self::new(name, named(roles), identity)
    }

    fn new(name: &str, roles: Vec<Role>, identity: Identity) -> Self {
        let (name, roles) = (name.into(), roles.into());
        Self { name, roles, identity, session: None, approval: Arc::default() }
    }

    /// The operator in this session.
    pub(super) fn within(self, session: Uuid) -> Self {
        Self { session: Some(session), ..self }
    }

    /// The session of the call; none of one with a token.
    pub(super) const fn session(&self) -> Option<Uuid> {
        self.session
    }

    /// The text that tells them from every other operator, whatever they are named. A session of
    /// the version before has none.
    pub(super) fn identity(&self) -> Option<String> {
        match &self.identity {
            Identity::BreakGlass => Some(BREAK_GLASS.to_owned()),
            Identity::Row(id) => Some(id.to_string()),
            Identity::Proven(identity) => Some(identity.to_string()),
            Identity::Unknown => None,
        }
    }

    /// As [`Self::identity`], for what takes two persons.
    ///
    /// # Errors
    /// 403 without one.
    pub(super) fn known_identity(&self) -> Result<String> {
        let reason = "this session is of an earlier version: sign in again";
        self.identity().ok_or_else(|| Denial::new(StatusCode::FORBIDDEN, reason).into())
    }

    /// True if the row of this name is their own. A name that the provider tells proves no row.
    pub(super) fn has_row(&self, name: &str) -> bool {
        matches!(self.identity, Identity::Row(_)) && *self.name == *name
    }

    /// Lets pass the operator whose tokens these are, and owners.
    ///
    /// # Errors
    /// 403 for everybody else.
    pub(in crate::operate) fn check_tokens_of(&self, name: &str) -> Result<()> {
        if self.has_row(name) { Ok(()) } else { self.check(&[Role::Owner]) }
    }

    pub(in crate::operate) fn roles(&self) -> &[Role] {
        &self.roles
    }

    /// The author of a change, for the audit.
    pub fn actor(&self) -> &str {
        &self.name
    }

    /// Appends what they did to `target` to the audit, as [`audit::record`], and uses up the second
    /// operator's approval, if the call has one: a transaction records one change.
    ///
    /// # Errors
    /// When the database cannot be written, or the approval counts no more (409): the change must then
    /// not be committed either.
    pub(super) async fn record(
        &self,
        conn: &mut Connection,
        core: &Core,
        action: &'static str,
        target: &str,
        detail: Value,
    ) -> Result<()> {
        if let Some(approval) = self.approval() {
            approval.spend(conn, core, self.actor()).await?;
        }
        let entry = Entry { actor: self.actor(), action, target, detail };
        audit::record(conn, core, entry).await
    }

    /// True for the holder of the token of the configuration.
    pub(in crate::operate) const fn is_break_glass(&self) -> bool {
        matches!(self.identity, Identity::BreakGlass)
    }

    /// Keeps a second operator's approval of this call.
    pub(super) fn approve(&self, approval: GrantedApproval) {
        // A call is held once.
        let _ = self.approval.set(approval);
    }

    /// The second operator's approval of this call, which its transaction is to use up.
    pub(super) fn approval(&self) -> Option<&GrantedApproval> {
        self.approval.get()
    }

    /// Uses the approval up ahead of the record, where [`Self::record`] comes too late for it.
    ///
    /// # Errors
    /// Those of [`GrantedApproval::take`].
    pub(super) async fn take_approval(
        &self,
        conn: &mut Connection,
    ) -> Result<Option<UsedApproval>> {
        match self.approval() {
            Some(approval) => Ok(Some(approval.take(conn).await?)),
            None => Ok(None),
        }
    }

    /// Leaves the approval as it is: the call has found nothing to do.
    ///
    /// # Errors
    /// In a dry run, which ends here.
    pub(super) fn leave_approval(&self) -> Result<()> {
        self.approval().map_or(Ok(()), GrantedApproval::leave)
    }

    /// The operator of a dry run of the call.
    pub(super) fn in_dry_run(&self) -> Self {
        let approval = Arc::new(OnceLock::from(GrantedApproval::dry_run()));
        Self { approval, ..self.clone() }
    }

    /// True once the call has used its approval up or left it: the end of a dry run.
    pub(super) fn has_settled(&self) -> bool {
        self.approval().is_some_and(GrantedApproval::is_settled)
    }

    /// The approval, if the call has neither used it up nor left it.
    fn forgotten_approval(&self) -> Option<&GrantedApproval> {
        self.approval().filter(|approval| !approval.is_settled())
    }

    /// True for a call that a second operator has agreed to, and for who needs none.
    pub(super) fn is_approved(&self) -> bool {
        self.is_break_glass() || self.approval().is_some()
    }

    /// Lets pass who has this role itself: an owner who has it not is refused.
    ///
    /// # Errors
    /// 403, which names the role.
    pub(super) fn check_own(&self, role: Role) -> Result<()> {
        if self.roles.contains(&role) {
            return Ok(());
        }
        let role = role.as_str();
        let reason = format!(
            "this call needs the role {role}: neither an owner without it nor the token of the \
             configuration may make it"
        );
        Err(Denial::new(StatusCode::FORBIDDEN, reason).into())
    }

    /// Lets pass who has one of these roles.
    ///
    /// # Errors
    /// 403, which names the roles.
    pub(in crate::operate) fn check(&self, needed: &[Role]) -> Result<()> {
        if Role::permits(&self.roles, needed) {
            return Ok(());
        }
        let mut names: Vec<_> = needed.iter().map(|role| role.as_str()).collect();
        if !needed.contains(&Role::Owner) {
            names.push(Role::Owner.as_str());
        }
        let reason = format!("this call needs the role {}", names.join(" or "));
        Err(Denial::new(StatusCode::FORBIDDEN, reason).into())
    }
}

/// The roles that these names stand for.
fn named(roles: &[String]) -> Vec<Role> {
    roles.iter().filter_map(|role| Role::from_name(role)).collect()
}

impl Caller for Operator {
    const SURFACE: Surface = Surface::Operators;
    const CLIENT: bool = false;
    const USER: UserProof = UserProof::None;
    const ERRORS: &'static [Code] = &[];

    fn user(&self) -> Option<UserId> {
        None
    }

    fn key_owner(&self) -> String {
        self.identity().unwrap_or_else(|| self.actor().to_owned())
    }

    /// The operator whom the listener has let in. Of a page that makes several calls, each has an approval
    /// of its own.
    async fn identify(_: &Core, _: Option<Client>, input: &Input) -> Result<Self> {
        let operator = input.proven.get::<Self>().cloned();
        let operator = operator.map(|operator| Self { approval: Arc::default(), ..operator });
        operator.ok_or_else(|| Error::invariant("call an operator's endpoint without an operator"))
    }
}

impl Approver for Operator {
    fn hold<'a, E: Endpoint<Caller = Self>>(
        &'a self,
        core: &'a Core,
        input: &'a Input,
    ) -> BoxFuture<'a, Result<Option<Reply>>> {
        approvals::hold::<E>(core, input, self)
    }

    async fn settle(&self, core: &Core) -> Result<()> {
        let Some(approval) = self.forgotten_approval() else { return Ok(()) };
        let mut tx = core.db.begin().await?;
        approval.spend(&mut tx, core, self.actor()).await?;
        tx.commit().await?;
        Err(Error::invariant("use an approval up in the transaction of its call"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_approval_is_forgotten_until_the_call_settles_it() {
        let operator = Operator::break_glass();
        assert!(operator.forgotten_approval().is_none());
        operator.approve(GrantedApproval::new(Uuid::nil(), "PUT /admin/v1/routes".to_owned()));
        assert!(operator.forgotten_approval().is_some());
        // The endpoint has a copy of the caller.
        operator.clone().leave_approval().unwrap();
        assert!(operator.forgotten_approval().is_none());
    }

    #[test]
    fn an_owner_is_told_that_a_role_of_their_own_is_needed() {
        let refused = Operator::break_glass().check_own(Role::Compliance).unwrap_err().to_string();
        assert!(refused.contains("the role compliance: neither an owner without it"), "{refused}");
        Operator::new("eve", vec![Role::Compliance], Identity::Unknown)
            .check_own(Role::Compliance)
            .unwrap();
    }

    #[test]
    fn a_dry_run_ends_where_the_call_has_nothing_to_do() {
        let operator = Operator::break_glass();
        let in_dry_run = operator.in_dry_run();
        assert!(in_dry_run.is_approved() && !in_dry_run.has_settled());
        in_dry_run.clone().leave_approval().unwrap_err();
        assert!(in_dry_run.has_settled());
        assert!(!operator.has_settled(), "the call itself comes after it");
        operator.leave_approval().unwrap();
    }
}
