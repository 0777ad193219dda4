//! The context of live calls.

use rampart_plugins::contract::CallContext;

use crate::Core;
use crate::auth::caller::Client;

pub(crate) const NS_PER_MS: u64 = 1_000_000;

/// The context of a call that a request waits for.
pub(crate) fn live_context(core: &Core, client: &Client) -> CallContext {
    CallContext {
        partner: client.tenant.slug.to_string(),
        request_id: client.request_id.to_string(),
        now: u32::try_from(core.clock.unix_seconds()).unwrap_or(u32::MAX),
        rehearsal: false,
        attributes: Vec::new(),
    }
}
