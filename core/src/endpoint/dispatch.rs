//! The run of one request through an endpoint.

use std::sync::Arc;

use futures::future::BoxFuture;
use rampart_types::ClientId;

use super::idempotency::{self, Claim, ClaimedKey};
use super::{Approver, Endpoint, Respond};
use crate::Core;
use crate::auth::caller::{Caller, Client};
use crate::http::Surface;
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::platform::db::{self, PoolKind};
use crate::platform::error::{Error, Result};
use crate::tenancy::house::house;

/// Runs one request through an endpoint: JSON, user, idempotency key, reading, second operator, call.
/// Its error is that of the first stage that finds something. A login has connections of its own.
pub(super) fn dispatch<E: Endpoint>(
    core: Arc<Core>,
    client: Option<Client>,
    mut input: Input,
    fault: Option<Error>,
) -> BoxFuture<'static, Result<Reply>> {
    // A block, for an `async fn` has room for its arguments twice.
    let run: BoxFuture<'static, _> = Box::pin(async move {
        input.document = E::BODY.parse(&input.body)?;
        let tenant = match E::Caller::SURFACE {
            Surface::Operators => Some(house()),
            Surface::Partners | Surface::Connectors => client.as_ref().map(Client::id),
        };
        let caller = E::Caller::identify(&core, client, &input).await?;
        match tenant {
            // On the heap: requests that take no key do not carry the room of one around.
            Some(tenant) if E::IDEMPOTENT => {
                Box::pin(carry_out_once::<E>(&core, tenant, &input, caller, fault)).await
            }
            _ => carry_out::<E>(&core, &input, caller, None, fault).await,
        }
    });
    match E::IS_LOGIN {
        true => Box::pin(PoolKind::Logins.run(run)),
        false => run,
    }
}

/// Carries a request out unless its idempotency key, if it has one, was used before: then the saved
/// answer is given again.
async fn carry_out_once<E: Endpoint>(
    core: &Core,
    tenant: ClientId,
    input: &Input,
    caller: E::Caller,
    fault: Option<Error>,
) -> Result<Reply> {
    let key = match idempotency::claim(core, tenant, &caller, E::PATH, input).await? {
        Claim::NoKey => return carry_out::<E>(core, input, caller, None, fault).await,
        Claim::Claimed(key) => key,
        Claim::Answered(reply) => return Ok(reply),
    };
    // On the heap: the renewal would have room for the work twice.
    let work = Box::pin(carry_out::<E>(core, input, caller, Some(&key), fault));
    let result = key.renew_while(core, work).await;
    key.settle(core, result, &input.head.request_id).await
}

async fn carry_out<E: Endpoint>(
    core: &Core,
    input: &Input,
    caller: E::Caller,
    key: Option<&ClaimedKey>,
    fault: Option<Error>,
) -> Result<Reply> {
    let request = E::read(input, &caller)?;
    if let Some(fault) = fault {
        return Err(fault);
    }
    if let Some(reply) = E::hold(core, input, &caller, &request).await? {
        return Ok(reply);
    }
    // Nobody but operators has an approval.
    let approver = (E::Caller::SURFACE == Surface::Operators).then(|| caller.clone());
    let reply = if E::RETRIED {
        call_retried::<E>(core, input, caller, request, key).await?
    } else if E::MAY_BE_STALE {
        let call = E::call(core, caller, request);
        let read: BoxFuture<'_, Result<Reply>> = Box::pin(async move { call.await?.respond() });
        db::stale(read).await?
    } else {
        E::call_with_key(core, caller, request, key).await?.respond()?
    };
    if let Some(approver) = approver {
        approver.settle(core).await?;
    }
    Ok(reply)
}

/// Calls the endpoint, again with the request read anew while Postgres asks for it.
async fn call_retried<'a, E: Endpoint>(
    core: &'a Core,
    input: &'a Input,
    caller: E::Caller,
    request: E::Request,
    key: Option<&'a ClaimedKey>,
) -> Result<Reply> {
    let mut first = Some(request);
    let mut call = || -> BoxFuture<'a, Result<Reply>> {
        let request = first.take().map_or_else(|| E::read(input, &caller), Ok);
        let caller = caller.clone();
        // On the heap: unoptimised, the books' state does not fit beside this one's.
        Box::pin(async move { E::call_with_key(core, caller, request?, key).await?.respond() })
    };
    // Of one type for all endpoints: the loop is compiled once.
    let call: &mut (dyn FnMut() -> BoxFuture<'a, Result<Reply>> + Send) = &mut call;
    db::retrying_statement(call).await
}
