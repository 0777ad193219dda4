//! Requests as JSON, in the form that `dry_run::request` reads.

use rampart_plugins::contract::{FeeRequest, Method, MethodKind, Money, RankRequest, Side, Stage};
use serde_json::{Map, Value, json};

/// A fee request as JSON.
pub(super) fn fee(request: &FeeRequest) -> Value {
    let mut members = Map::new();
    let mut set = |name: &str, value: Value| members.insert(name.to_owned(), value);
    let stage = match request.stage {
        Stage::Quote => "quote",
        Stage::Order => "order",
    };
    set("stage", stage.into());
    set("side", side(request.side));
    set("pay", money(&request.pay));
    set("receiveCurrency", request.receive_currency.as_str().into());
    set("midRate", request.mid_rate.as_str().into());
    set("paymentMethod", request.payment_method.as_str().into());
    set("country", request.country.as_str().into());
    set("userTier", request.user_tier.as_str().into());
    if let Some(volume) = &request.volume_30d {
        set("volume30d", volume.as_str().into());
    }
    if let Some(code) = &request.promo_code {
        set("promoCode", code.as_str().into());
    }
    Value::Object(members)
}

/// A rank request as JSON.
pub(super) fn ranking(request: &RankRequest) -> Value {
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

fn side(side: Side) -> Value {
    match side {
        Side::Buy => "buy",
        Side::Sell => "sell",
    }
    .into()
}

fn money(money: &Money) -> Value {
    json!({"amount": money.amount, "currency": money.currency})
}
