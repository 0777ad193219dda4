//! The caller of the operators' API.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use http::StatusCode;
use rampart_types::UserId;

use crate::Core;
use crate::auth::caller::{Caller, Client, UserProof};
use crate::auth::roles::{BREAK_GLASS, Role};
use crate::http::Surface;
use crate::http::request::Input;
use crate::platform::error::{Code, Denial, Error, Result};

/// An operator, proven by a token or a session.
#[derive(Clone, Debug)]
pub struct Operator {
    name: Arc<str>,
    roles: Arc<[Role]>,
    is_break_glass: bool,
    /// True once a second operator's approval of this request is used up. Clones share it: each attempt
    /// at the call sees it.
    is_approved: Arc<AtomicBool>,
}

impl Operator {
    /// The holder of the token of the configuration, an owner who needs no second person.
    pub(super) fn break_glass() -> Self {
        let roles = Arc::new([Role::Owner]);
        Self { name: BREAK_GLASS.into(), roles, is_break_glass: true, is_approved: Arc::default() }
    }

    /// An operator with a token of their own.
    pub(super) fn named(name: &str, roles: &[String]) -> Self {
        let roles = roles.iter().filter_map(|role| Role::from_name(role));
        Self::proven(name, roles.collect())
    }

    /// An operator whom the provider has proven.
    pub(super) fn proven(name: &str, roles: Vec<Role>) -> Self {
        let (name, roles) = (name.into(), roles.into());
        Self { name, roles, is_break_glass: false, is_approved: Arc::default() }
    }

    /// Their roles.
    pub(in crate::operate) fn roles(&self) -> &[Role] {
        &self.roles
    }

    /// The author of a change, for the audit.
    pub fn actor(&self) -> &str {
        &self.name
    }

    /// True for the holder of the token of the configuration.
    pub(in crate::operate) const fn is_break_glass(&self) -> bool {
        self.is_break_glass
    }

    /// Keeps that a second operator's approval of this request is used up.
    pub(super) fn approve(&self) {
        self.is_approved.store(true, Ordering::Relaxed);
    }

    /// True once an approval of this request is used up, and for who needs none.
    pub(super) fn is_approved(&self) -> bool {
        self.is_break_glass || self.is_approved.load(Ordering::Relaxed)
    }

    /// Lets pass who has this role itself: an owner who has it not is refused.
    ///
    /// # Errors
    /// 403, which names the role.
    pub(super) fn check_own(&self, role: Role) -> Result<()> {
        if self.roles.contains(&role) {
            return Ok(());
        }
        let reason = format!("this call needs the role {} itself", role.as_str());
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

impl Caller for Operator {
    const SURFACE: Surface = Surface::Operators;
    const CLIENT: bool = false;
    const USER: UserProof = UserProof::None;
    const ERRORS: &'static [Code] = &[];

    fn user(&self) -> Option<UserId> {
        None
    }

    /// The operator whom the listener has let in.
    async fn identify(_: &Core, _: Option<Client>, input: &Input) -> Result<Self> {
        let operator = input.proven.get::<Self>().cloned();
        operator.ok_or_else(|| Error::invariant("call an operator's endpoint without an operator"))
    }
}
