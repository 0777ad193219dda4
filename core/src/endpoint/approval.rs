//! Callers of whom two have to agree to some requests.

use futures::future::BoxFuture;

use super::Endpoint;
use crate::Core;
use crate::auth::caller::{
    Anyone, Caller, Client, ClientAndUser, ClientMaybeUser, Confirmer, LoggedIn, Reader, Session,
};
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::error::Result;

/// A caller whose request may wait until a second one has agreed to it: the operators' API.
pub trait Approver: Caller {
    /// Gives the answer to a request that waits, and nothing for one that may go on.
    ///
    /// # Errors
    /// When the caller may not ask for an approval, or the endpoint would refuse the request by what is
    /// stored now; nobody else has one to ask for.
    fn hold<'a, E: Endpoint<Caller = Self>>(
        &'a self,
        _: &'a Core,
        _: &'a Input,
    ) -> BoxFuture<'a, Result<Option<Reply>>> {
        Box::pin(async { Ok(None) })
    }

    /// Checks that a call which was carried out has used its approval up.
    ///
    /// # Errors
    /// When it has not, a mistake of the endpoint's: the approval is used up now.
    fn settle(&self, _: &Core) -> impl Future<Output = Result<()>> + Send {
        async { Ok(()) }
    }
}

impl Approver for Anyone {}
impl Approver for Client {}
impl Approver for ClientAndUser {}
impl Approver for ClientMaybeUser {}
impl Approver for Confirmer {}
impl Approver for LoggedIn {}
impl Approver for Reader {}
impl Approver for Session {}
