//! The connectors' API as its OpenAPI document introduces it.

use crate::endpoint::openapi::{Api, Domain, domain};
use crate::endpoint::{Route, route};
use crate::http::Surface;
use crate::money::connectors;

/// Every endpoint of the connectors' API.
pub const CONNECTOR_ENDPOINTS: &[Route] = &[
    route::<connectors::lease::LeaseCommands>(),
    route::<connectors::checkpoint::PutCheckpoint>(),
    route::<connectors::result::ReportResult>(),
    route::<connectors::events::ReportEvent>(),
    route::<connectors::openapi::ReadOpenApi>(),
];

/// The connectors' API.
pub const CONNECTORS: Api = Api {
    surface: Surface::Connectors,
    title: "Rampart connectors",
    summary: "Commands to providers, and their reports",
    introduction: INTRODUCTION,
    endpoints: CONNECTOR_ENDPOINTS,
    operation_ids: &[],
    domains: DOMAINS,
    webhooks: None,
};

/// The domains, in the order of a command's way.
const DOMAINS: &[Domain] = &[
    domain("lease", "Commands", "Commands that a connector carries out."),
    domain("checkpoint", "Checkpoints", "States to go on from."),
    domain("result", "Results", "Ends of commands."),
    domain("events", "Events", "Facts that a provider reports."),
    domain("openapi", "The service", "The API itself."),
];

/// The introduction, in CommonMark.
const INTRODUCTION: &str = "\
A connector is a program that talks to one provider. It leases commands, carries them out, and \
reports facts as events; nobody calls it, so it needs no door of its own. Its listener is \
`connectors.listen`, and every call carries the token of `POST /admin/v1/connectors` in \
`Authorization: Bearer`.\n\n\
A command is repeated until it has a result: lease it, store a checkpoint before anything that \
cannot be undone, give the provider the command's `id` as idempotency key, report the result. A \
connector that dies in between is given the command and its checkpoint again.\n\n\
An event is a fact and is stored whatever it says, as long as it has the form of one. Send it \
until it is answered; the same `id` and body again is `{\"duplicate\": true}`.\n\n\
Amounts are JSON numbers to be read as exact decimals, never through a binary float. Times are \
RFC 3339 in UTC. Errors are `{\"error\":\"…\"}`. Every answer carries `X-Request-Id`, which stands \
in the log.";
