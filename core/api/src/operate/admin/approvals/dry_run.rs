//! The dry run of a call before a second person is asked about it.

use futures::future::BoxFuture;

use crate::Core;
use crate::endpoint::Endpoint;
use crate::http::request::Input;
use crate::operate::admin::operator::Operator;
use crate::platform::db::retrying_statement;
use crate::platform::error::{Error, Result};

type Attempt = for<'a> fn(&'a Core, &'a Input, Operator) -> BoxFuture<'a, Result<()>>;

/// A call whose transaction is undone. It ends where it would use an approval up, which every such call
/// does in its transaction, before the commit.
#[derive(Clone, Copy, Debug)]
pub(super) struct DryRun<'a> {
    input: &'a Input,
    attempt: Attempt,
}

impl<'a> DryRun<'a> {
    /// The dry run of a call of an endpoint that has one.
    pub(super) fn of<E: Endpoint<Caller = Operator>>(input: &'a Input) -> Option<Self> {
        E::DRY_RUN.then_some(Self { input, attempt: attempt::<E> })
    }

    /// Finds out if the call would be refused now, again while Postgres asks for it.
    ///
    /// # Errors
    /// Those of the call.
    pub(super) async fn run(self, core: &Core, operator: &Operator) -> Result<()> {
        retrying_statement(|| self.once(core, operator)).await
    }

    async fn once(self, core: &Core, operator: &Operator) -> Result<()> {
        let operator = operator.in_dry_run();
        let ended = (self.attempt)(core, self.input, operator.clone()).await;
        if operator.has_settled() {
            return Ok(());
        }
        ended?;
        Err(Error::invariant("end a dry run before the commit of its call"))
    }
}

/// The call itself. Its type is the same for all endpoints.
fn attempt<'a, E: Endpoint<Caller = Operator>>(
    core: &'a Core,
    input: &'a Input,
    operator: Operator,
) -> BoxFuture<'a, Result<()>> {
    Box::pin(async move {
        let request = E::read(input, &operator)?;
        E::call(core, operator, request).await.map(drop)
    })
}
