//! The OpenAPI 3.1 document: what the endpoints' declarations say, put into one text.
//!
//! Nothing is written twice. Methods, paths, codes, callers, caching and idempotency come from the
//! table of endpoints; the shape of an answer comes from the type that is serialized; the request's
//! members, the words and the examples come from [`Endpoint::DOC`](crate::endpoint::Endpoint::DOC).
//! The contract tests hold every request and answer of theirs to it.

mod answers;
pub mod doc;
mod operation;
mod security;
mod webhooks;

use std::sync::LazyLock;

use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::api::ENDPOINTS;

/// The domains, in the order of a partner's way through them: the module's name, and what people
/// call it. A domain that is not here comes last, under its module's name.
const DOMAINS: &[(&str, &str, &str)] = &[
    (
        "clients",
        "Client credentials",
        "Tokens of the partner, for those who do not use an API key.",
    ),
    ("users", "Users", "Registration, login and identifiers of end users."),
    ("verification", "Verification", "What a user still has to prove, and proving it."),
    ("accounts", "Accounts", "Payment and payout accounts of users."),
    ("limits", "Limits", "How much a user may still trade."),
    ("market", "Market", "Currencies, prices and what else a shop window needs."),
    ("payment_methods", "Payment methods", "How users can pay."),
    ("quotes", "Quotes", "What a trade would come to, sealed for the confirm."),
    ("offers", "Offers", "Terms that the partner fixes, and may sign, before the user decides."),
    ("checkout", "Checkout", "A page of ours that walks the user through a purchase."),
    ("orders", "Orders", "Confirmed quotes, until the coins arrive."),
    ("sell", "Selling", "Selling onboarding, confirmation and orders."),
    ("dca", "Savings plans", "Deposits that buy at regular intervals."),
    ("webhooks", "Webhooks", "Being told what happens, at an address of the partner's."),
    ("events", "Events", "What happened, to be looked up and told again."),
    ("sandbox", "Sandbox", "For test clients: making things happen to an order."),
    ("system", "The service", "What the service says about itself."),
];

/// The introduction, in CommonMark.
const INTRODUCTION: &str = "\
Partners let their users buy cryptocurrency: a quote is requested, confirmed, and paid on the page \
that the confirm names.\n\n\
A request proves the partner with exactly one client credential: an API key in `X-Api-Key`, or a \
token in `Authorization: Bearer`. Where a user is concerned it proves the user too: the partner's \
own linked identifier in `User-Identifier`, or the token of a login in `User-Authorization: Bearer`. \
Each operation lists the combinations that it takes; a credential that is missing or wrong is \
refused with status 400 and a code of the ER700s (user) or ER800s (client).\n\n\
Amounts are JSON numbers to be read as exact decimals, never through a binary float. Times are \
RFC 3339 in UTC. Unknown members of a request are ignored. Errors come in one envelope keyed by \
code; a request that is wrong in several ways is told all of them at once. Every answer carries \
`X-Request-Id`: name it when you ask for support.\n\n\
A POST that creates something takes an `Idempotency-Key`: within 24 hours the same key and body get \
the first answer again, another body gets 422. `RateLimit` says how much of the client's rate is \
left; 429 and 503 say in `Retry-After` when to try again.\n\n\
The host is the same for test and live clients; what a client is, its operator has decided. For test \
clients no money moves: payments, coins and checks are simulated, and magic values reach every \
outcome. `GET /api/v2/sandbox/scenarios` lists them for orders; operations name theirs.";

/// The document.
pub fn document() -> &'static Value {
    static DOCUMENT: LazyLock<Value> = LazyLock::new(write);
    &DOCUMENT
}

fn write() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut schemas = SchemaGenerator::new(settings);
    let mut paths = Map::new();
    let mut domains = Vec::new();
    for route in ENDPOINTS {
        let domain = operation::domain(route);
        if !domains.contains(&domain) {
            domains.push(domain);
        }
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.as_str().to_lowercase()] = operation::write(route, &mut schemas);
    }
    domains.sort_by_key(|domain| DOMAINS.iter().position(|row| row.0 == *domain).unwrap_or(99));
    let tags: Vec<_> = domains.into_iter().map(tag).collect();
    let mut components = answers::schemas();
    components.extend(schemas.take_definitions(true));
    components.sort_keys();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Rampart",
            "version": "1",
            "summary": "Crypto trading for partners, versions 1 and 2",
            "description": INTRODUCTION,
        },
        "servers": [{ "url": "/" }],
        "tags": tags,
        "paths": paths,
        "webhooks": webhooks::write(),
        "components": {
            "securitySchemes": security::schemes(),
            "headers": answers::headers(),
            "responses": answers::shared(),
            "schemas": components,
        },
    })
}

fn tag(domain: &'static str) -> Value {
    match DOMAINS.iter().find(|row| row.0 == domain) {
        Some((_, name, description)) => json!({ "name": name, "description": description }),
        None => json!({ "name": domain }),
    }
}

/// What people call a domain.
fn tag_name(domain: &'static str) -> &'static str {
    DOMAINS.iter().find(|row| row.0 == domain).map_or(domain, |row| row.1)
}
