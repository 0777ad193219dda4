//! The operators' API as its OpenAPI document introduces it.

use super::OPERATOR_ENDPOINTS;
use crate::endpoint::openapi::{Api, Domain, domain};
use crate::http::Surface;

/// The operators' API.
pub const OPERATORS: Api = Api {
    surface: Surface::Operators,
    title: "Rampart operators",
    summary: "Administration of a trading API",
    introduction: INTRODUCTION,
    endpoints: OPERATOR_ENDPOINTS,
    operation_ids: &[],
    domains: DOMAINS,
    webhooks: None,
};

/// The domains, in the order of an operator's way through them.
const DOMAINS: &[Domain] = &[
    domain("partners", "Partners", "Partners, their settings, API keys and secrets."),
    domain("policies", "Policies", "Wasm policies of partners: versions, trials, dry runs."),
    domain(
        "keys",
        "Keys",
        "The ring of master keys; public keys that policies name, or that sign manifests.",
    ),
    domain("market", "Market", "Currencies, pairs, prices and payment methods."),
    domain("orders", "Orders", "Orders of both sides, their events, and offers."),
    domain("payments", "Payments", "Reports of money and coins."),
    domain("ledger", "Ledger", "The books: double entry, one book per partner and currency."),
    domain("reconciliations", "Reconciliations", "Statements of accounts beside the books."),
    domain("users", "Users", "End users: checks, levels, limits, images."),
    domain("screenings", "Screenings", "Screenings of wallets and persons, and decisions."),
    domain("reviews", "Reviews", "Users and orders that wait for a person."),
    domain("accounts", "Accounts", "Payment and payout accounts of users."),
    domain("dca", "Savings plans", "Plans whose deposits buy at regular intervals."),
    domain("connectors", "Connectors", "Programs that talk to providers, and their tokens."),
    domain("routes", "Routes", "Which connector moves which money and coins."),
    domain("deliveries", "Deliveries", "Webhooks and callbacks to partners."),
    domain("mail", "Mail", "Mail to users."),
    domain(
        "operators",
        "Operators",
        "People and programs that administer, their roles and tokens.",
    ),
    domain("approvals", "Approvals", "Calls that need a second person."),
    domain("overview", "Overview", "The state of the service at a glance."),
    domain("configuration", "Configuration", "Partners, market, routes, policies as one document."),
    domain("audit", "Audit", "Changes that operators made."),
    domain("openapi", "The service", "The API itself."),
];

/// The introduction, in CommonMark.
const INTRODUCTION: &str = "\
The operators' API administers partners, their policies, the market, orders and users. It has a \
listener of its own (`admin.listen`), which is not for the public.\n\n\
Every call carries the operator's token in `Authorization: Bearer`; without it nothing is answered \
but 401. Each operator has roles, and every call says which of them may make it (403 otherwise). \
The token of the configuration is that of a break-glass owner, and each of its uses an alarm. Every \
write leaves a row in the audit, and so does every read of personal data.\n\n\
Some calls need two persons: they are answered with 202 and an approval, which another operator \
grants; then the same call, made again, is carried out. The break-glass owner needs nobody.\n\n\
A refund of a payment takes an `Idempotency-Key`: made again after a lost answer, it counts \
once.\n\n\
A body comes as `application/json` (a component as `application/wasm`), and never from a page of \
another origin. Bodies and queries are read strictly: an unknown \
member or parameter is 422, so that a typing error is seen. An empty body is an empty object. \
Errors are `{\"error\":\"…\"}`; whatever is refused has changed nothing.\n\n\
Amounts are JSON numbers to be read as exact decimals, never through a binary float. Times are \
RFC 3339 in UTC. Every answer carries `X-Request-Id`, which stands in the log.";
