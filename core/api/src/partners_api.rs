//! The partners' API as its OpenAPI document introduces it.

use super::ENDPOINTS;
use super::operation_ids::OPERATION_IDS;
use crate::endpoint::openapi::{Api, Domain, domain};
use crate::http::Surface;
use crate::notify::webhooks;

/// The partners' API.
pub const PARTNERS: Api = Api {
    surface: Surface::Partners,
    title: "Rampart",
    summary: "Crypto trading for partners, versions 1 and 2",
    introduction: INTRODUCTION,
    endpoints: ENDPOINTS,
    operation_ids: OPERATION_IDS,
    domains: DOMAINS,
    webhooks: Some(webhooks::openapi),
};

/// The domains, in the order of a partner's way through them.
const DOMAINS: &[Domain] = &[
    domain(
        "partners",
        "Client credentials",
        "Tokens of the partner, for those who do not use an API key.",
    ),
    domain("users", "Users", "Registration, login and identifiers of end users."),
    domain("verification", "Verification", "Open requirements of a user, and their proofs."),
    domain("accounts", "Accounts", "Payment and payout accounts of users."),
    domain("limits", "Limits", "Amounts that a user may still trade."),
    domain("market", "Market", "Currencies, prices and what else a shop window needs."),
    domain("payment_methods", "Payment methods", "Methods by which users pay."),
    domain("quotes", "Quotes", "Terms of a trade, sealed for the confirm."),
    domain(
        "offers",
        "Offers",
        "Terms that the partner fixes, and may sign, before the user decides.",
    ),
    domain("checkout", "Checkout", "A page of ours that walks the user through a purchase."),
    domain("orders", "Orders", "Confirmed quotes, until the coins arrive."),
    domain("sell", "Selling", "Selling onboarding, confirmation and orders."),
    domain("dca", "Savings plans", "Deposits that buy at regular intervals."),
    domain("webhooks", "Webhooks", "Being told what happens, at an address of the partner's."),
    domain("events", "Events", "Events of orders and users: their log, and sending one again."),
    domain("sandbox", "Sandbox", "For test clients: making things happen to orders and users."),
    domain("system", "The service", "Error codes, public keys and this document."),
];

/// The introduction, in CommonMark.
const INTRODUCTION: &str = "\
Partners let their users buy and sell cryptocurrency: a quote is requested and confirmed. A purchase \
is paid on the page that the confirm names, a sale by coins to the address that it names.\n\n\
A request proves the partner with exactly one client credential: an API key in `X-Api-Key`, or a \
token in `Authorization: Bearer`. Where a user is concerned it proves the user too: the partner's \
own linked identifier in `User-Identifier`, or the token of a login in `User-Authorization: Bearer`. \
Each operation lists the combinations that it takes; a credential that is missing or wrong is \
refused with status 400 and a code of the ER700s (user) or ER800s (client).\n\n\
Amounts are JSON numbers to be read as exact decimals, never through a binary float; with \
`Prefer: money=string` they are strings, and the answer says `Preference-Applied: money=string`. Times are \
RFC 3339 in UTC. Unknown members of a request are ignored. Errors come in one envelope keyed by \
code; a request that is wrong in several ways is told all of them at once. Every answer carries \
`X-Request-Id`: name it when you ask for support.\n\n\
A POST that creates something takes an `Idempotency-Key`: within 24 hours the same key and body get \
the first answer again, another body gets 422. `RateLimit` says how much of the client's rate is \
left; 429 and 503 say in `Retry-After` when to try again.\n\n\
The host is the same for test and live clients; what a client is, its operator has decided. For test \
clients no money moves: payments, coins and checks are simulated, and magic values reach every \
outcome. `GET /api/v2/sandbox/scenarios` lists one scenario or more for every error code and every \
state, as requests that a program can run.";
