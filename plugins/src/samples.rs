//! What a policy is tried with at admission: ordinary requests, and the edges of what it may be
//! asked.

use crate::bindings::fee::{FeeRequest, Stage};
use crate::bindings::method_order::{Method, MethodKind, OrderRequest, UserFacts};
use crate::bindings::signature::{Field, Header, Purpose, SignedPayload};
use crate::bindings::types::{CallContext, Money, Side};
use crate::request::METHODS_MAX;

/// 2026-01-01T00:00:00Z.
pub(crate) const NOW: u32 = 1_767_225_600;

fn context(request: &str) -> CallContext {
    CallContext {
        partner: "sample".into(),
        request_id: request.into(),
        now: NOW,
        rehearsal: true,
        attributes: vec![("unknown".into(), "to be ignored".into())],
    }
}

pub(crate) fn fees() -> Vec<(CallContext, FeeRequest)> {
    let usual = FeeRequest {
        stage: Stage::Quote,
        side: Side::Buy,
        pay: Money { amount: "100.00".into(), currency: "EUR".into() },
        receive_currency: "BTC".into(),
        mid_rate: "0.0000108".into(),
        payment_method: "creditCard".into(),
        country: "DE".into(),
        user_tier: "basic".into(),
        volume_30d: None,
        promo_code: None,
    };
    let with_promo = FeeRequest {
        volume_30d: Some("2500.00".into()),
        promo_code: Some("WELCOME".into()),
        ..usual.clone()
    };
    let large = FeeRequest {
        stage: Stage::Order,
        pay: Money { amount: "999999999999.99".into(), currency: "EUR".into() },
        ..usual.clone()
    };
    let small = FeeRequest {
        pay: Money { amount: "0.01".into(), currency: "CHF".into() },
        country: "CH".into(),
        ..usual.clone()
    };
    let sale = FeeRequest {
        side: Side::Sell,
        pay: Money { amount: "0.00000001".into(), currency: "BTC".into() },
        receive_currency: "EUR".into(),
        mid_rate: "92592.59".into(),
        payment_method: "bankTransfer".into(),
        ..usual.clone()
    };
    let requests = [usual, with_promo, large, small, sale];
    requests.into_iter().map(|request| (context("fee"), request)).collect()
}

pub(crate) fn orders() -> Vec<(CallContext, OrderRequest)> {
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
    let request = |methods: usize, last_used: Option<String>| OrderRequest {
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
        request(METHODS_MAX, None),
    ];
    requests.into_iter().map(|request| (context("method-order"), request)).collect()
}

pub(crate) fn payloads() -> Vec<(CallContext, SignedPayload)> {
    let field = |name: &str, value: &str| Field { name: name.into(), value: value.into() };
    let unsigned = SignedPayload {
        purpose: Purpose::Offer,
        fields: vec![
            field("callbackUrl", "https://partner.example/callback?order=1"),
            field("fee", "1.5"),
            field("returnUrl", "https://partner.example/zurück"),
            field("walletAddress", "bc1qar0srrr7xfkvy5l643lydnw9re59gtzzwf5mdq"),
        ],
        claimed: None,
        method: "POST".into(),
        path: "/api/v2/buy/offer".into(),
        query: String::new(),
        headers: vec![Header { name: "content-type".into(), value: b"application/json".to_vec() }],
        body: b"{}".to_vec(),
    };
    let forged = SignedPayload { claimed: Some("00".repeat(32)), ..unsigned.clone() };
    let garbage = SignedPayload { claimed: Some("t=,n=\u{1f512}".into()), ..unsigned.clone() };
    let onboarding = SignedPayload {
        purpose: Purpose::Onboarding,
        fields: vec![field("identifier", "sample"), field("locale", "de")],
        claimed: Some("AAAA".into()),
        method: "GET".into(),
        path: "/sell/onboarding".into(),
        query: "identifier=sample&locale=de&signature=AAAA".into(),
        headers: Vec::new(),
        body: Vec::new(),
    };
    let bare = SignedPayload { fields: Vec::new(), ..onboarding.clone() };
    let payloads = [unsigned, forged, garbage, onboarding, bare];
    payloads.into_iter().map(|payload| (context("signature"), payload)).collect()
}
