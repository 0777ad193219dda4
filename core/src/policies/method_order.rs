//! The order in which a partner's policy wants payment methods shown.

use rampart_plugins::contract::OrderRequest;
use rampart_plugins::{Policy, Ranking};

use super::call::run;
use crate::Core;
use crate::caller::Client;

/// What to show, best first; `None` when the built-in order applies, because there is no policy or
/// it malfunctioned. A policy that hides everything is not obeyed: the order of `request` stands.
///
/// At most 64 methods; more is a malfunction.
pub fn rank(core: &Core, client: &Client, request: OrderRequest) -> Option<Ranking> {
    let active = client.tenant.policies.method_order.as_ref()?;
    let answered = run(
        core,
        client,
        active,
        |policy, active, context| match policy {
            Policy::MethodOrder(policy) => Some(policy.rank(context, &active.config, &request)),
            Policy::Signature(_) | Policy::Fee(_) => None,
        },
        |_| "ok",
    )?;
    Some(answered.answer)
}
