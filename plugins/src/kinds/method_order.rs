//! Method-order policies: ranks the payment methods offered to one user.

use super::compiled::{Compiled, Linked};
use super::probes::{ProbeFuel, burnt_fuel, largest_bytes};
use super::request_size::{ELEMENT_BYTES, RequestSize};
use crate::bindings::method_order::{
    self, GuestIndices, Method, MethodKind, OrderRequest as RankRequest, Placement, UserFacts,
};
use crate::bindings::types::{CallContext, ConfigEntry, Money, Side};
use crate::host::call::{Call, CallClass, not_called, run, too_large};
use crate::host::keys::KeyRing;
use crate::host::rejection::Rejection;
use crate::host::report::{CallReport, Failure, FailureKind, one_line};

/// Interfaces it may import.
pub(crate) const IMPORTS: &[&str] = &["types", "log"];

/// Most methods in one request (`wit/method-order.wit`).
pub const METHODS_MAX: usize = 64;
/// Methods in the largest sample that may burn half of the fuel. One with [`METHODS_MAX`] may burn all
/// of it, as the work may grow faster than their number.
const METHODS_USUAL: usize = METHODS_MAX / 2;
/// Most that is kept of a rule's name, in bytes. The contract leaves the text free, and no row has it.
const RULE_BYTES_MAX: usize = 64;
/// Labels that a method may be shown with (`wit/README.md`).
const BADGES: [&str; 2] = ["last-used", "recommended"];

/// Orders the payment methods of one user. Cheap to clone, to be shared by threads.
#[derive(Clone)]
pub struct MethodOrderPolicy(pub(crate) Compiled<GuestIndices>);

impl MethodOrderPolicy {
    pub(crate) fn new(linked: Linked) -> wasmtime::Result<Self> {
        let exports = GuestIndices::new(&linked.instance)?;
        Ok(Self(Compiled { linked, exports }))
    }

    /// The methods to show to one user, in order. At most 64 methods, with unique ids.
    pub fn rank(
        &self,
        class: CallClass,
        context: &CallContext,
        config: &[ConfigEntry],
        request: &RankRequest,
    ) -> CallReport<Ranking> {
        let Compiled { linked: Linked { runtime, instance, .. }, exports } = &self.0;
        let size = context.size_bytes() + config.size_bytes() + request.size_bytes();
        if size > runtime.limits.request_bytes_max {
            return too_large(size);
        }
        if request.methods.len() > METHODS_MAX {
            return not_called(Failure::new(
                FailureKind::Capacity,
                format!("more than {METHODS_MAX} methods"),
            ));
        }
        let call = Call::new(runtime.limits, context.now, KeyRing::default());
        run(
            runtime,
            instance,
            class,
            call,
            |store, instance| {
                exports.load(&mut *store, instance)?.call_rank(store, context, config, request)
            },
            |ranking, _| check_ranking(ranking, request),
        )
    }

    pub(crate) fn probe(
        &self,
        context: &CallContext,
        config: &[ConfigEntry],
    ) -> Result<ProbeFuel, Rejection> {
        let is_largest = |request: &RankRequest| request.methods.len() == METHODS_MAX;
        burnt_fuel(&probe_requests(), is_largest, |request| {
            self.rank(CallClass::Admission, context, config, request)
        })
    }
}

/// Every method that is to be shown, best first.
///
/// The host's part of the contract is applied: a method the policy did not name follows in the
/// host's order, a policy that hides everything is ignored (the host's order stands), and so is a
/// label that the host does not know.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranking {
    /// Ids of the request, each at most once; never empty unless the request was.
    pub shown: Vec<Placement>,
    /// Index in the request of each shown method.
    pub indices: Vec<usize>,
    /// The rule of the policy that fired, for operators: one line, at most 64 bytes.
    pub rule: String,
}

/// `request` has at most [`METHODS_MAX`] methods.
fn check_ranking(ranking: method_order::Ranking, request: &RankRequest) -> Result<Ranking, String> {
    let method_order::Ranking { mut shown, hidden, rule } = ranking;
    let rule = one_line(&rule, RULE_BYTES_MAX);
    let mut named = [false; METHODS_MAX];
    let mut indices = Vec::with_capacity(request.methods.len());
    for id in shown.iter().map(|p| &p.id).chain(&hidden) {
        let index = request.methods.iter().position(|m| m.id == *id);
        match index.filter(|index| named.get(*index) == Some(&false)) {
            Some(index) => {
                named[index] = true;
                indices.push(index);
            }
            None => return Err("an id is repeated or was not in the request".into()),
        }
    }
    indices.truncate(shown.len());
    for placement in &mut shown {
        let known = |badge: &String| BADGES.contains(&badge.as_str());
        placement.badge = placement.badge.take().filter(known);
    }
    let hides_everything = hidden.len() == request.methods.len();
    for (index, method) in request.methods.iter().enumerate() {
        if hides_everything || !named[index] {
            shown.push(Placement { id: method.id.clone(), badge: None });
            indices.push(index);
        }
    }
    Ok(Ranking { shown, indices, rule })
}

impl RequestSize for RankRequest {
    fn size_bytes(&self) -> usize {
        let methods =
            self.methods.iter().map(|m| ELEMENT_BYTES + m.id.len() + m.currencies.size_bytes());
        let user = &self.user;
        self.amount.size_bytes()
            + user.country.len()
            + user.tier.len()
            + user.last_used.size_bytes()
            + user.channel.len()
            + methods.sum::<usize>()
    }
}

/// Size of the largest probe, in bytes.
pub(crate) fn largest_probe_bytes() -> usize {
    largest_bytes(&probe_requests())
}

fn probe_requests() -> Vec<RankRequest> {
    let kinds = [
        MethodKind::Card,
        MethodKind::BankTransfer,
        MethodKind::Wallet,
        MethodKind::InstantTransfer,
        MethodKind::Cash,
        MethodKind::Other,
    ];
    let method = |index: usize| Method {
        id: format!("method{index}"),
        kind: kinds[index % kinds.len()],
        currencies: vec!["EUR".into(), "USD".into()],
        success_rate: index.is_multiple_of(2).then_some(950_000),
        cost: index.is_multiple_of(3).then_some(12_000),
        settles_in: index.is_multiple_of(5).then_some(86_400),
    };
    let request = |methods: usize, last_used: Option<String>| RankRequest {
        side: Side::Buy,
        amount: Some(Money { amount: "100.00".into(), currency: "EUR".into() }),
        user: UserFacts {
            country: "DE".into(),
            tier: "basic".into(),
            returning: last_used.is_some(),
            last_used,
            channel: "web".into(),
        },
        methods: (0..methods).map(method).collect(),
    };
    let requests = [
        request(0, None),
        request(4, Some("method2".into())),
        request(4, Some("gone".into())),
        request(METHODS_USUAL, None),
        request(METHODS_MAX, None),
    ];
    requests.into()
}

#[cfg(test)]
mod tests;
