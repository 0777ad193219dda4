//! Every call of the operators' API has a command.

use std::collections::{BTreeMap, BTreeSet};

use clap::{CommandFactory as _, Parser as _};
use serde_json::Value;

use super::{
    audit, compliance, connector, keys, ledger, market, notify, operator, order, partner, payment,
    policy, user,
};
use crate::cli::Cli;

/// The operators' document, as it was reviewed.
const DOCUMENT: &str = include_str!("../../../tests/fixtures/openapi-operators.json");

/// Calls below `/admin/v1/`, each with a command line that makes it.
const COMMANDS: &[(&str, &str)] = &[
    ("POST partners", "partner add acme --name Acme"),
    ("GET partners", "partner list"),
    ("GET partners/{slug}", "partner show acme"),
    ("PATCH partners/{slug}", "partner set acme mode=live"),
    ("POST partners/{slug}/api-keys", "key issue acme"),
    ("DELETE partners/{slug}/api-keys/{id}", "key revoke acme 1"),
    ("GET partners/{slug}/staff", "partner staff list acme"),
    ("POST partners/{slug}/staff", "partner staff invite acme ada@acme.example --role owner"),
    ("DELETE partners/{slug}/staff/{id}", "partner staff remove acme 1"),
    ("GET partners/{slug}/webhooks", "webhook list acme --limit 2"),
    ("DELETE partners/{slug}/webhooks/{id}", "webhook remove acme 1"),
    ("POST partners/{slug}/webhooks/{id}/test", "webhook test acme 1"),
    ("POST partners/{slug}/secrets/rotate", "secret rotate acme webhook --overlap-seconds 60"),
    ("GET partners/{slug}/verification-keys", "verification-key list acme --limit 2"),
    ("PUT partners/{slug}/verification-keys/{name}", "verification-key set acme k key=a"),
    ("DELETE partners/{slug}/verification-keys/{name}", "verification-key remove acme k"),
    ("GET partners/{slug}/policies/{kind}", "policy show acme fee"),
    ("PUT partners/{slug}/policies/{kind}", "policy push acme fee a.wasm"),
    ("DELETE partners/{slug}/policies/{kind}", "policy delete acme fee"),
    ("PUT partners/{slug}/policies/{kind}/config", "policy configure acme fee --settings a.json"),
    ("POST partners/{slug}/policies/{kind}/rollback", "policy rollback acme fee"),
    ("POST partners/{slug}/policies/{kind}/dry-run", "policy dry-run acme fee --recorded"),
    ("POST partners/{slug}/policies/{kind}/versions", "policy push acme fee a.wasm --stage"),
    (
        "POST partners/{slug}/policies/{kind}/versions/{version}/activate",
        "policy activate acme fee 2 --percentage 10",
    ),
    ("POST partners/{slug}/policies/{kind}/versions/{version}/shadow", "policy shadow acme fee 2"),
    ("GET partners/{slug}/policies/{kind}/trial", "policy trial acme fee"),
    ("DELETE partners/{slug}/policies/{kind}/trial", "policy end-trial acme fee"),
    ("GET operator-keys", "policy signer list"),
    ("PUT operator-keys/{name}", "policy signer add ada ada.pub"),
    ("DELETE operator-keys/{name}", "policy signer remove ada"),
    ("POST keys/rotation", "keys rotate"),
    ("GET keys/rotation", "keys status"),
    ("GET receipt-keys", "keys receipts"),
    ("POST receipt-keys/rotate", "keys rotate-receipts"),
    ("GET pairs", "pair list"),
    ("PATCH pairs/{pair}", "pair set BTC-EUR spreadPercentage=1.5"),
    ("GET prices", "price list"),
    ("PUT prices/{pair}", "price set BTC-EUR 50000"),
    ("GET payment-methods", "payment-method list"),
    ("GET currencies", "currency list"),
    ("GET maintenance-windows", "maintenance-window list"),
    (
        "POST maintenance-windows",
        "maintenance-window add --pair BTC-EUR --ends-at 2026-03-01T14:00:00Z --reason upgrade",
    ),
    ("DELETE maintenance-windows/{id}", "maintenance-window end 1"),
    ("PATCH payment-methods/{code}", "payment-method set creditCard enabled=false"),
    ("GET orders", "order list --status pending --json"),
    ("GET orders/{id}", "order show 1"),
    ("POST orders/{id}/events", "order event 1 hold reason=look"),
    ("POST orders/{id}/replay", "order replay 1"),
    ("POST orders/{id}/wallet-proof", "order prove-wallet 1 --reason seen"),
    ("POST offers/{uuid}/expire", "offer expire 1"),
    ("GET payments", "payment list --state suspense"),
    ("POST payments", "payment create received 10 EUR --reference r --reason seen"),
    ("GET payments/{id}", "payment show 1"),
    ("GET payments/{id}/suggestions", "payment suggestions 1"),
    ("POST payments/{id}/match", "payment match 1 2"),
    ("POST payments/{id}/refund", "payment refund 1 --reason late"),
    ("GET ledger/balances", "ledger balances --currency EUR"),
    ("GET ledger/entries", "ledger entries --order 1"),
    ("GET ledger/export", "ledger export --format csv --out books.csv"),
    ("GET ledger/check", "ledger check"),
    ("POST reconciliations", "reconciliation create a.xml --connector bank"),
    ("GET reconciliations", "reconciliation list"),
    ("GET reconciliations/{id}", "reconciliation show 1"),
    ("GET users", "user list --name Lovelace"),
    ("GET users/{uuid}", "user show 1"),
    ("PATCH users/{uuid}", "user set 1 verification.identity=verified"),
    ("GET users/{uuid}/accounts", "user accounts 1"),
    ("POST users/{uuid}/accounts", "user open-account 1 type=bankTransfer identifier=NL58"),
    ("PATCH users/{uuid}/accounts/{accountIdentifier}", "user set-account 1 2 verified=true"),
    ("GET users/{uuid}/proofs/{id}", "user proof 1 2 --out a.png"),
    ("GET users/{uuid}/documents/{id}", "user document 1 2 --out a.png"),
    ("POST users/{uuid}/retained-record", "user retained-record 1 --reason asked"),
    (
        "POST users/{uuid}/retained-record/documents/{id}",
        "user retained-document 1 2 --out a.png --reason asked",
    ),
    ("GET mail", "mail list --partner acme"),
    ("GET screenings", "screening list"),
    ("GET screenings/{id}", "screening show 1"),
    ("POST screenings/{id}/decision", "screening decide 1 clear --reason seen"),
    ("GET reviews", "review list --subject user"),
    ("POST reviews/{subject}/{id}/claim", "review claim user 1"),
    ("DELETE reviews/{subject}/{id}/claim", "review release order 1"),
    ("POST users/{uuid}/dca-codes", "savings-plan open 1 cryptoCurrency=BTC"),
    ("GET dca-codes", "savings-plan list --partner acme"),
    ("GET dca-codes/{code}", "savings-plan show c"),
    ("POST dca-codes/{code}/deposits", "savings-plan deposit c 50 EUR --reference r"),
    ("GET deliveries", "delivery list --state pending"),
    ("GET deliveries/{id}", "delivery show 1"),
    ("POST deliveries/{id}/redeliver", "delivery redeliver 1"),
    ("GET connectors", "connector list"),
    ("POST connectors", "connector add cards --capability payment.create"),
    ("GET connectors/{name}", "connector show cards"),
    ("POST connectors/{name}/rotate", "connector rotate cards"),
    ("PUT connectors/{name}/card-element", "connector card-element cards"),
    ("GET routes", "route list"),
    ("PUT routes", "route set routes.json"),
    ("GET operators", "operator list"),
    ("POST operators", "operator add ada --role viewer"),
    ("PATCH operators/{name}", "operator roles ada viewer"),
    ("POST operators/{name}/tokens", "operator token ada"),
    ("DELETE operators/{name}/tokens/{id}", "operator revoke ada 1"),
    ("GET operators/{name}/sessions", "operator sessions ada"),
    ("GET approvals", "approval list"),
    ("POST approvals/{id}/grant", "approval grant 1"),
    ("POST approvals/{id}/refuse", "approval refuse 1"),
    ("GET overview", "overview"),
    ("GET dependents", "dependents partner=acme apiKey=1"),
    ("GET configuration", "export"),
    ("PUT configuration", "apply --file partners --dry-run"),
    ("GET audit", "audit list"),
    ("GET audit/verification", "audit verify"),
];

/// Calls that deliberately have no command.
const WITHOUT: &[&str] = &[
    // The document itself: for programs.
    "GET openapi.json",
];

/// Lists below `/admin/v1/`, each with the columns of its table.
const LISTS: &[(&str, &str)] = &[
    ("partners", partner::PARTNERS),
    ("partners/{slug}/staff", partner::STAFF),
    ("partners/{slug}/verification-keys", partner::VERIFICATION_KEYS),
    ("partners/{slug}/webhooks", partner::WEBHOOKS),
    ("operator-keys", policy::signing::COLUMNS),
    ("receipt-keys", keys::RECEIPT_COLUMNS),
    ("pairs", market::PAIRS),
    ("prices", market::PRICES),
    ("payment-methods", market::PAYMENT_METHODS),
    ("currencies", market::CURRENCIES),
    ("maintenance-windows", market::WINDOWS),
    ("orders", order::COLUMNS),
    ("payments", payment::PAYMENTS),
    ("payments/{id}/suggestions", payment::SUGGESTIONS),
    ("ledger/balances", ledger::BALANCES),
    ("ledger/entries", ledger::ENTRIES),
    ("reconciliations", payment::RECONCILIATIONS),
    ("users", user::USERS),
    ("users/{uuid}/accounts", user::ACCOUNTS),
    ("dca-codes", user::PLANS),
    ("mail", notify::MAIL),
    ("screenings", compliance::SCREENINGS),
    ("reviews", compliance::REVIEWS),
    ("deliveries", notify::DELIVERIES),
    ("connectors", connector::CONNECTORS),
    ("routes", connector::ROUTES),
    ("operators", operator::OPERATORS),
    ("operators/{name}/sessions", operator::SESSIONS),
    ("approvals", operator::APPROVALS),
    ("audit", audit::COLUMNS),
];

/// The sources in which a command's call stands as the document has it.
const SOURCES: &[&str] = &[
    include_str!("audit.rs"),
    include_str!("compliance.rs"),
    include_str!("connector.rs"),
    include_str!("keys.rs"),
    include_str!("ledger.rs"),
    include_str!("market.rs"),
    include_str!("notify.rs"),
    include_str!("operator.rs"),
    include_str!("order.rs"),
    include_str!("overview.rs"),
    include_str!("partner.rs"),
    include_str!("payment.rs"),
    include_str!("policy/signing.rs"),
    include_str!("user.rs"),
];

/// The operations of the document.
fn operations() -> BTreeSet<String> {
    let document: Value = serde_json::from_str(DOCUMENT).unwrap();
    let paths = document["paths"].as_object().unwrap();
    let operations = paths.iter().flat_map(|(path, item)| {
        let path = path.strip_prefix("/admin/v1/").unwrap();
        let methods = item.as_object().unwrap().keys();
        methods.map(move |method| format!("{} {path}", method.to_ascii_uppercase()))
    });
    operations.collect()
}

#[test]
fn every_call_of_the_operators_api_has_a_command() {
    let known = COMMANDS.iter().map(|(call, _)| *call).chain(WITHOUT.iter().copied());
    let known: BTreeSet<String> = known.map(str::to_owned).collect();
    let operations = operations();
    let without: Vec<_> = operations.difference(&known).collect();
    assert!(without.is_empty(), "no command: {without:?}");
    let gone: Vec<_> = known.difference(&operations).collect();
    assert!(gone.is_empty(), "no such call: {gone:?}");
}

/// A call without the names of the parts of its path.
fn nameless(call: &str) -> String {
    let parts = call.split('/').map(|part| if part.starts_with('{') { "{}" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

#[test]
fn the_calls_of_commands_are_those_of_the_document() {
    let mut calls = Vec::new();
    for source in SOURCES {
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE"] {
            for rest in source.split(&format!("\"{method} ")).skip(1) {
                calls.push(format!("{method} {}", rest.split('"').next().unwrap()));
            }
        }
        for rest in source.split("target.list(").skip(1) {
            calls.push(format!("GET {}", rest.split('"').nth(1).unwrap()));
        }
    }
    let known: BTreeSet<String> = operations().iter().map(|call| nameless(call)).collect();
    let unknown: Vec<_> = calls.iter().filter(|call| !known.contains(&nameless(call))).collect();
    assert!(unknown.is_empty(), "no such call: {unknown:?}");
    assert!(calls.len() > 80, "looked elsewhere: {calls:?}");
}

#[test]
fn every_command_line_is_understood() {
    for (call, line) in COMMANDS {
        let arguments = ["rampart"].into_iter().chain(line.split(' '));
        if let Err(error) = Cli::try_parse_from(arguments) {
            panic!("{call}: rampart {line}: {error}");
        }
    }
}

#[test]
fn what_is_text_in_a_pipe_says_so() {
    let cli = Cli::command();
    for name in ["apply", "export"] {
        let command = cli.find_subcommand(name).unwrap();
        let options: BTreeMap<_, _> = command
            .get_arguments()
            .map(|option| (option.get_id().as_str(), option.get_help().map(ToString::to_string)))
            .collect();
        assert!(!options.contains_key("table"), "{name} prints no table");
        let help = options["json"].as_deref().unwrap();
        assert!(!help.contains("also what a program gets"), "{name}: {help}");
    }
}

#[test]
fn the_columns_of_every_list_are_members_of_its_rows() {
    let document: Value = serde_json::from_str(DOCUMENT).unwrap();
    let resolve = |schema: &Value| match schema["$ref"].as_str() {
        Some(reference) => document.pointer(reference.trim_start_matches('#')).unwrap().clone(),
        None => schema.clone(),
    };
    let mut known: BTreeMap<&str, &str> = LISTS.iter().copied().collect();
    for (path, item) in document["paths"].as_object().unwrap() {
        let path = path.strip_prefix("/admin/v1/").unwrap();
        let answer = "/get/responses/200/content/application~1json/schema";
        let Some(answer) = item.pointer(answer).map(resolve) else { continue };
        // The routes are a list in an object.
        let list = if path == "routes" { &answer["properties"]["routes"] } else { &answer };
        if list["type"] != "array" {
            continue;
        }
        let row = resolve(&list["items"]);
        let Some(columns) = known.remove(path) else { panic!("no columns of '{path}'") };
        for column in columns.split(", ") {
            let member = column.rsplit_once(' ').map(|(_, member)| member);
            let is_member = member.is_some_and(|name| row["properties"].get(name).is_some());
            assert!(is_member, "'{column}' is no column of '{path}'");
        }
    }
    assert!(known.is_empty(), "no such list: {known:?}");
}
