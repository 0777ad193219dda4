//! Operators: the list, one with roles, tokens and sessions, and the keys that sign for them.

use maud::html;

use super::action::{Action, Subject, Verb, outcome};
use super::form::{Input, Kind, Typed};
use super::layout::Page;
use super::list::{List, titled_table};
use super::signing::{SIGNATURE, SIGNER, STATEMENT};
use super::view::{Cell, facts, moment, text};
use super::visit::{Refused, Visit, fill, segment};

const SECTION: &str = "/console/operators";
const ROLES_HINT: &str = "viewer, support, compliance, treasury, platform, owner";

pub(super) const OPERATORS: List = List {
    title: "Operators",
    section: SECTION,
    page: "/console/operators",
    call: "/admin/v1/operators",
    criteria: &[],
    columns: &[
        ("Operator", Cell::Link("/console/operators/", "/name")),
        ("Roles", Cell::Words("/roles")),
        ("Disabled", Cell::Text("/disabled")),
        ("Made by", Cell::Text("/createdBy")),
        ("Made", Cell::Time("/createdAt")),
    ],
    empty: "Add the first operator.",
};
/// Actions that need no operator yet.
pub(super) const NEW_OPERATOR: Subject = Subject {
    name: "operator",
    section: SECTION,
    page: "/console/operators/~",
    read: "",
    facts: &[],
    actions: &[Action::new(
        "add",
        "Add an operator",
        Verb::Post.call("/admin/v1/operators"),
        "A second operator must agree. The token is shown once, on the next page.",
    )
    .with(&[
        Input::new("name", "Name").required(),
        Input::new("roles", "Roles").kind(Kind::Words).hint(ROLES_HINT).required(),
    ])
    .answering()],
};
pub(super) const OPERATOR: Subject = Subject {
    name: "operator",
    section: SECTION,
    page: "/console/operators/{name}",
    read: "",
    facts: &[],
    actions: &[
        Action::new(
            "roles",
            "Change roles",
            Verb::Patch.call("/admin/v1/operators/{name}"),
            "A second operator must agree. It counts from the next call on.",
        )
        .with(&[Input::new("roles", "Roles").kind(Kind::Words).hint(ROLES_HINT).required()]),
        Action::new(
            "disable",
            "Disable",
            Verb::Patch.call("/admin/v1/operators/{name}"),
            "No token and no session of theirs counts from the next call on.",
        )
        .fixed(&[("disabled", "true")])
        .destructive()
        .having(&[("/disabled", "no")])
        .counting(
            "operator={}",
            &[("Tokens", Cell::Count("/tokens")), ("Sessions", Cell::Count("/sessions"))],
        ),
        Action::new(
            "enable",
            "Enable",
            Verb::Patch.call("/admin/v1/operators/{name}"),
            "A second operator must agree. Tokens and sessions that have not ended meanwhile count \
             again from the next call on.",
        )
        .fixed(&[("disabled", "false")])
        .having(&[("/disabled", "yes")]),
        Action::new(
            "token",
            "Issue a token",
            Verb::Post.call("/admin/v1/operators/{name}/tokens"),
            "The token is shown once, on the next page; earlier ones end after the overlap.",
        )
        .with(&[
            Input::new("expiresInSeconds", "Lifetime in seconds")
                .kind(Kind::Integer)
                .hint("90 days if left out."),
            Input::new("overlapSeconds", "Overlap in seconds")
                .kind(Kind::Integer)
                .hint("A day if left out."),
        ])
        .having(&[("/mayChangeTokens", "yes")])
        .answering(),
    ],
};
/// A token of an operator.
pub(super) const TOKEN: Subject = Subject {
    name: "token",
    section: SECTION,
    page: "/console/operators/{name}/tokens/{id}",
    read: "",
    facts: &[],
    actions: &[Action::new(
        "revoke",
        "Revoke",
        Verb::Delete.call("/admin/v1/operators/{name}/tokens/{id}"),
        "It is refused from the next call on, and sessions that began with it end.",
    )
    .destructive()
    .counting(
        "operator={}",
        &[
            ("Tokens of the operator", Cell::Count("/tokens")),
            ("Sessions of the operator", Cell::Count("/sessions")),
        ],
    )],
};

/// An operator's tokens as a list.
pub(super) const TOKENS: List = List {
    title: "Tokens of",
    section: SECTION,
    page: "/console/operators/{name}/~/tokens",
    call: "/admin/v1/operators#/tokens",
    criteria: &[],
    columns: &[
        ("Token", Cell::Address("/id")),
        ("Made by", Cell::Text("/createdBy")),
        ("Made", Cell::Time("/createdAt")),
        ("Ends", Cell::Time("/expiresAt")),
    ],
    empty: "The operator has no token.",
};
/// An operator's sessions as a list.
pub(super) const SESSIONS: List = List {
    title: "Sessions of",
    section: SECTION,
    page: "/console/operators/{name}/~/sessions",
    call: "/admin/v1/operators/{name}/sessions",
    criteria: &[],
    columns: &[
        ("Session", Cell::Address("/id")),
        ("With a token", Cell::Text("/withToken")),
        ("Roles", Cell::Words("/roles")),
        ("Began", Cell::Time("/createdAt")),
        ("Ends", Cell::Time("/expiresAt")),
    ],
    empty: "The operator has no session.",
};

/// Keys that sign manifests and changes of policies.
pub(super) const SIGNERS: List = List {
    title: "Signing keys",
    section: SECTION,
    page: "/console/operators/~/keys",
    call: "/admin/v1/operator-keys",
    criteria: &[],
    columns: &[
        ("Key", Cell::Text("/name")),
        ("SHA-256", Cell::Address("/fingerprint")),
        ("Registered by", Cell::Text("/createdBy")),
        ("Registered", Cell::Time("/createdAt")),
    ],
    empty: "No key is registered: nothing can be signed.",
};
/// Changes of those keys.
pub(super) const SIGNING_KEYS: Subject = Subject {
    name: "signing key",
    section: SECTION,
    page: "/console/operators/~/keys",
    read: "",
    facts: &[],
    actions: &[
        Action::new(
            "register",
            "Register a key",
            Verb::Put.call("/admin/v1/operator-keys/{name}"),
            "It signs manifests and changes of policies. A name has one key for good. The private \
             key stays with its operator.",
        )
        .with(&[
            Input::new("name", "Name").kind(Kind::Segment).required(),
            Input::new("publicKey", "Public key")
                .kind(Kind::Text)
                .hint("Ed25519, as PEM: -----BEGIN PUBLIC KEY-----")
                .required(),
            SIGNER,
            STATEMENT,
            SIGNATURE,
        ])
        .signed("operator-key.register", &["key"]),
        Action::new(
            "remove",
            "Remove a key",
            Verb::Delete.call("/admin/v1/operator-keys/{name}"),
            "Versions that it signed serve on; where a signature is required they cannot be \
             activated again.",
        )
        .with(&[
            Input::new("name", "Name").kind(Kind::Segment).required(),
            SIGNER,
            STATEMENT,
            SIGNATURE,
        ])
        .signed("operator-key.remove", &["key"])
        .destructive(),
    ],
};

/// The page of an operator: roles, tokens, and what they did last.
///
/// # Errors
/// 404 for an operator who is unknown; the refusal of a call.
pub(super) async fn show(
    visit: &Visit<'_>,
    name: &str,
    query: &Typed,
    subject: &Subject,
) -> Result<Page, Refused> {
    let mut operator = visit.find(OPERATORS.call, |operator| operator["name"] == name).await?;
    let may_change_tokens = visit.session.operator.check_tokens_of(name).is_ok();
    operator["mayChangeTokens"] = may_change_tokens.into();
    let ids = [name.to_owned()];
    let tokens = operator["tokens"].as_array().cloned().unwrap_or_default();
    let (sessions, more_sessions) = visit.rows(&fill(SESSIONS.call, &ids)).await?;
    let body = html! {
        (outcome(query, subject.actions))
        (facts(visit, &operator, &[
            ("Roles", Cell::Words("/roles")),
            ("Disabled", Cell::Text("/disabled")),
            ("Made by", Cell::Text("/createdBy")),
            ("Made", Cell::Time("/createdAt")),
        ]))
        (OPERATOR.actions(visit, &ids, &operator))
        (titled_table(visit, "Tokens", &tokens, TOKENS.columns))
        @if !tokens.is_empty() { (TOKENS.export(&ids, query)) }
        p.row {
            @for token in tokens.iter().filter(|_| may_change_tokens) {
                a.action href={ "/console/operators/" (segment(name)) "/tokens/" (text(token, "/id")) "/revoke" } {
                    "Revoke the token of " (moment(&text(token, "/createdAt")))
                }
            }
        }
        (titled_table(visit, "Sessions", &sessions, SESSIONS.columns))
        @if let Some(next) = &more_sessions {
            p { a.button href={ (fill(SESSIONS.page, &ids)) "?" (next) } { "More sessions" } }
        }
        @if !sessions.is_empty() { (SESSIONS.export(&ids, query)) }
    };
    Ok(Page::new(format!("Operator {name}"), OPERATORS.section, body))
}
