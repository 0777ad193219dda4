//! Rank requests as JSON: the input of a dry run, and of a stored sample.

use rampart_plugins::contract::{Method, MethodKind, RankRequest, UserFacts};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{method_kind, policy_methods};
use crate::http::fields::strict;
use crate::policies::kinds::json::{Amount, SideName, money, side};
use crate::trading::catalogue::{Catalogue, PaymentMethodKind};

/// Reads an operator's input; missing members have defaults, and the default methods are those of
/// the catalogue.
///
/// # Errors
/// A sentence, after the path of the member that is invalid or unknown.
pub(super) fn read(
    path: &str,
    input: &Value,
    catalogue: &Catalogue,
) -> Result<RankRequest, String> {
    let rank: Rank = strict::read_at(path, input)?;
    Ok(rank.into_request(catalogue))
}

pub(super) fn to_json(request: &RankRequest) -> Value {
    let user = &request.user;
    json!({
        "side": side(request.side),
        "amount": request.amount.as_ref().map(money),
        "user": {
            "country": user.country,
            "tier": user.tier,
            "returning": user.returning,
            "lastUsed": user.last_used,
            "channel": user.channel,
        },
        "methods": request.methods.iter().map(method).collect::<Vec<_>>(),
    })
}

fn method(method: &Method) -> Value {
    let kind = match method.kind {
        MethodKind::Card => "card",
        MethodKind::BankTransfer => "bank-transfer",
        MethodKind::Wallet => "wallet",
        MethodKind::InstantTransfer => "instant-transfer",
        MethodKind::Cash => "cash",
        MethodKind::Other => "other",
    };
    json!({
        "id": method.id,
        "kind": kind,
        "currencies": method.currencies,
        "successRate": method.success_rate,
        "cost": method.cost,
        "settlesIn": method.settles_in,
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "camelCase")]
struct User {
    country: String,
    tier: String,
    returning: bool,
    #[serde(alias = "last-used")]
    last_used: Option<String>,
    channel: String,
}

impl Default for User {
    fn default() -> Self {
        Self {
            country: "DE".to_owned(),
            tier: "basic".to_owned(),
            returning: false,
            last_used: None,
            channel: "web".to_owned(),
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct OfferedMethod {
    id: String,
    #[serde(default)]
    kind: Option<PaymentMethodKind>,
    #[serde(default)]
    currencies: Vec<String>,
    #[serde(default, alias = "success-rate")]
    success_rate: Option<i32>,
    #[serde(default)]
    cost: Option<i32>,
    #[serde(default, alias = "settles-in")]
    settles_in: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Rank {
    side: SideName,
    amount: Option<Amount>,
    user: User,
    methods: Option<Vec<OfferedMethod>>,
}

impl Default for Rank {
    fn default() -> Self {
        Self { side: SideName::Buy, amount: None, user: User::default(), methods: None }
    }
}

impl Rank {
    fn into_request(self, catalogue: &Catalogue) -> RankRequest {
        let offered = |method: OfferedMethod| Method {
            id: method.id,
            kind: method.kind.map_or(MethodKind::Other, method_kind),
            currencies: method.currencies,
            success_rate: method.success_rate,
            cost: method.cost,
            settles_in: method.settles_in,
        };
        let enabled = || {
            let all = catalogue.payment_methods.iter().zip(policy_methods(catalogue));
            all.filter(|(method, _)| method.enabled).map(|(_, facts)| facts).collect()
        };
        let methods = match self.methods {
            Some(methods) => methods.into_iter().map(offered).collect(),
            None => enabled(),
        };
        let user = UserFacts {
            country: self.user.country,
            tier: self.user.tier,
            returning: self.user.returning,
            last_used: self.user.last_used,
            channel: self.user.channel,
        };
        let amount = self.amount.map(Into::into);
        RankRequest { side: self.side.into(), amount, user, methods }
    }
}
