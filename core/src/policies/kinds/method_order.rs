//! Ranking of payment methods by the partner's policy.

mod json;

use std::collections::BTreeSet;
use std::sync::Arc;

use rampart_plugins::contract::{Method, MethodKind, PolicyKind, RankRequest};
use rampart_plugins::{CallClass, CallReport, Policy, Ranking};
use rust_decimal::Decimal;
use rust_decimal::prelude::ToPrimitive as _;
use serde_json::{Value, json};

use super::{CallInputs, PolicyRequest};
use crate::Core;
use crate::auth::caller::Client;
use crate::platform::error::Result;
use crate::policies::evaluate::context::Attributes;
use crate::policies::evaluate::evaluate;
use crate::trading::catalogue::{Catalogue, PaymentMethod, PaymentMethodKind};
use rampart_types::UserId;
use rampart_types::money::percent_of;

/// The purchase from which a method's cost is computed where no amount is known, in fiat.
const REFERENCE_AMOUNT: Decimal = Decimal::ONE_HUNDRED;

/// The methods to show, best first; `None` when the built-in order applies: there is no policy for
/// this user, or it failed. A policy that hides everything is ignored: the order of `request` stands.
///
/// At most 64 methods; more is a failure.
pub async fn rank(
    core: &Core,
    client: &Client,
    user: Option<UserId>,
    request: Arc<RankRequest>,
) -> Option<Ranking> {
    let user = user.map(|user| user.uuid());
    let subject = user.as_ref().map(|user| &user.as_bytes()[..]);
    let evaluation = evaluate(core, client, subject, request, &Attributes::new()).await;
    Some(evaluation.ok()??.output)
}

/// A catalogue's kind of payment method as the policy contract has it.
pub(crate) const fn method_kind(kind: PaymentMethodKind) -> MethodKind {
    match kind {
        PaymentMethodKind::Card => MethodKind::Card,
        PaymentMethodKind::BankTransfer => MethodKind::BankTransfer,
        PaymentMethodKind::Wallet => MethodKind::Wallet,
        PaymentMethodKind::InstantTransfer => MethodKind::InstantTransfer,
        PaymentMethodKind::Cash => MethodKind::Cash,
        PaymentMethodKind::Other => MethodKind::Other,
    }
}

/// Every method of the catalogue in the form of the contract, in the catalogue's order.
pub(crate) fn policy_methods(catalogue: &Catalogue) -> Vec<Method> {
    let pairs = catalogue.pairs.values();
    let currencies: BTreeSet<_> = pairs.map(|pair| pair.quote.code().to_string()).collect();
    let facts = catalogue.payment_methods.iter().map(|method| Method {
        id: method.code.clone(),
        kind: method_kind(method.kind),
        currencies: currencies.iter().cloned().collect(),
        success_rate: None,
        cost: cost_ppm(method, REFERENCE_AMOUNT),
        settles_in: None,
    });
    facts.collect()
}

/// Cost of a purchase of this amount of fiat with this method, in parts per million of it.
pub(crate) fn cost_ppm(method: &PaymentMethod, amount: Decimal) -> Option<i32> {
    let percentage = percent_of(amount, method.fee_percentage)?;
    let cost = method.fee_fixed.checked_add(percentage)?.checked_div(amount)?;
    cost.checked_mul(Decimal::ONE_THOUSAND)?.checked_mul(Decimal::ONE_THOUSAND)?.to_i32()
}

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
        Some(policy.rank(class, inputs.context, inputs.config, self))
    }

    fn read(path: &str, input: &Value, catalogue: &Catalogue) -> Result<Self, String> {
        json::read(path, input, catalogue).map(Arc::new)
    }

    fn to_json(&self) -> Value {
        json::to_json(self)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_is_that_of_a_purchase_of_100() {
        let mut method = PaymentMethod {
            code: "a".to_owned(),
            label: "a".to_owned(),
            psp: "bank".to_owned(),
            kind: PaymentMethodKind::Other,
            limit: Decimal::ONE_HUNDRED,
            fee_fixed: Decimal::new(35, 2),
            fee_percentage: Decimal::ZERO,
            expiration_period_seconds: 900,
            open_in_new_tab: false,
            uses_estimated_quote: false,
            enabled: true,
            context: Value::Array(Vec::new()),
        };
        assert_eq!(cost_ppm(&method, REFERENCE_AMOUNT), Some(3_500));
        assert_eq!(cost_ppm(&method, Decimal::TEN), Some(35_000));
        method.fee_percentage = Decimal::new(25, 1);
        assert_eq!(cost_ppm(&method, REFERENCE_AMOUNT), Some(28_500));
    }
}
