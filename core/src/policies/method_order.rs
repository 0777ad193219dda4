//! The order in which a partner's policy wants payment methods shown.

use std::sync::Arc;

use rampart_plugins::Ranking;
use rampart_plugins::contract::{MethodKind, OrderRequest};

use super::call::run;
use crate::Core;
use crate::caller::Client;
use crate::types::UserId;

/// What to show, best first; `None` when the built-in order applies, because there is no policy for
/// this user or it malfunctioned. A policy that hides everything is not obeyed: the order of
/// `request` stands.
///
/// At most 64 methods; more is a malfunction.
pub fn rank(
    core: &Core,
    client: &Client,
    user: Option<UserId>,
    request: Arc<OrderRequest>,
) -> Option<Ranking> {
    let user = user.map(|user| user.uuid());
    let answered = run(core, client, user.as_ref().map(|user| &user.as_bytes()[..]), request);
    Some(answered.ok()??.answer)
}

/// The kind of that name in `wit/method-order.wit`, which is also the catalogue's.
pub(crate) fn method_kind(name: &str) -> MethodKind {
    match name {
        "card" => MethodKind::Card,
        "bank-transfer" => MethodKind::BankTransfer,
        "wallet" => MethodKind::Wallet,
        "instant-transfer" => MethodKind::InstantTransfer,
        "cash" => MethodKind::Cash,
        _ => MethodKind::Other,
    }
}
