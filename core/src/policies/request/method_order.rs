//! Requests to method-order policies.

use std::sync::Arc;

use rampart_plugins::contract::{PolicyKind, RankRequest};
use rampart_plugins::{CallClass, CallReport, Policy, Ranking};
use serde_json::{Value, json};

use super::{CallInputs, PolicyRequest, json};
use crate::Core;
use crate::auth::caller::Client;

/// Shared: users of one country mostly send the same request.
impl PolicyRequest for Arc<RankRequest> {
    type Output = Ranking;
    const KIND: PolicyKind = PolicyKind::MethodOrder;
    const SAMPLED: bool = true;

    fn call(
        &self,
        class: CallClass,
        policy: &Policy,
        inputs: CallInputs<'_>,
    ) -> Option<CallReport<Ranking>> {
        let Policy::MethodOrder(policy) = policy else { return None };
        Some(policy.rank_in(class, inputs.context, inputs.config, self))
    }

    fn to_json(&self) -> Value {
        json::ranking(self)
    }

    fn stored_input(&self, _: &Core, _: &Client) -> Value {
        Value::Null
    }

    fn output_as_json(ranking: &Ranking) -> Value {
        let shown =
            ranking.shown.iter().map(|method| json!({"id": method.id, "badge": method.badge}));
        json!({"shown": shown.collect::<Vec<_>>(), "rule": ranking.rule})
    }

    fn rule(ranking: &Ranking) -> &str {
        &ranking.rule
    }
}
