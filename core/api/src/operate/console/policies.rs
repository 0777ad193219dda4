//! A kind of policy of a partner: its versions, the one on trial, and the ways between them.

use http::Method;
use maud::html;

use super::action::{Action, Subject, Verb, outcome};
use super::form::{Input, Kind, Typed};
use super::layout::Page;
use super::list::{List, titled_table};
use super::signing::{MANIFEST, MANIFEST_SIGNATURE, MANIFEST_SIGNER, SIGNATURE, SIGNER, STATEMENT};
use super::view::{Cell, facts, text};
use super::visit::{Refused, Visit, fill, segment};
use crate::http::html::components::{Tone, note, stat};
use crate::operate::policy_differences::differences;

const SECTION: &str = "/console/partners";
const DRY_RUN: &str = "/admin/v1/partners/{slug}/policies/{kind}/dry-run";
const REASON: Input = Input { hint: "For the history, at most 500 characters.", ..Input::REASON };
/// Fields of a change that may have to be signed.
const BECAUSE: &[Input] = &[REASON, SIGNER, STATEMENT, SIGNATURE];
/// Members of a statement about a policy, and about a version of it.
const OF_POLICY: &[&str] = &["partner", "kind"];
const OF_VERSION: &[&str] = &["partner", "kind", "version"];

/// A kind of policy of a partner.
pub(super) const POLICY: Subject = Subject {
    name: "policy",
    section: SECTION,
    page: "/console/partners/{slug}/policies/{kind}",
    read: "/admin/v1/partners/{slug}/policies/{kind}",
    facts: &[
        ("Active version", Cell::Text("/active")),
        ("On trial", Cell::Text("/trial/version")),
        ("A rollback leads to version", Cell::Text("/rollbackTo")),
    ],
    actions: &[
        Action::new(
            "upload",
            "Upload a version",
            Verb::Post.call("/admin/v1/partners/{slug}/policies/{kind}/versions"),
            "It is examined, and serves nobody until it is activated.",
        )
        .with(&[
            Input::new("component", "Component")
                .kind(Kind::File)
                .hint("A component within policy.component_bytes. The active one if left out."),
            Input::new("config", "Configuration").kind(Kind::Json).hint(
                "A JSON object, as the component declares it. That of the active version if empty.",
            ),
            Input::new("failClosed", "Refuse requests when it fails").kind(Kind::YesNo),
            REASON,
            MANIFEST_SIGNER,
            MANIFEST,
            MANIFEST_SIGNATURE,
        ]),
        Action::new(
            "rollback",
            "Roll back",
            Verb::Post.call("/admin/v1/partners/{slug}/policies/{kind}/rollback"),
            "One step back: from a canary to the active version, else to the version before. Every \
             edge follows within a second.",
        )
        .with(BECAUSE)
        .signed("policy.rollback", OF_POLICY)
        .having(&[("/canRollBack", "yes")]),
        Action::new(
            "end-trial",
            "End the trial",
            Verb::Delete.call("/admin/v1/partners/{slug}/policies/{kind}/trial"),
            "The active version serves everybody.",
        )
        .with(BECAUSE)
        .signed("policy.end-trial", OF_POLICY)
        .having(&[("/isOnTrial", "yes")]),
        Action::new(
            "remove",
            "Return to the built-in rule",
            Verb::Delete.call("/admin/v1/partners/{slug}/policies/{kind}"),
            "No version is active any more; they all stay stored.",
        )
        .with(BECAUSE)
        .signed("policy.remove", OF_POLICY)
        .having(&[("/isServing", "yes")])
        .destructive()
        .counting(
            "partner={}&policy={}",
            &[
                ("Versions that stay stored", Cell::Count("/versions")),
                ("Users of the partner", Cell::Count("/users")),
            ],
        ),
    ],
};

/// One version of it.
pub(super) const VERSION: Subject = Subject {
    name: "version",
    section: SECTION,
    page: "/console/partners/{slug}/policies/{kind}/versions/{version}",
    read: "/admin/v1/partners/{slug}/policies/{kind}",
    facts: POLICY.facts,
    actions: &[
        Action::new(
            "activate",
            "Activate",
            Verb::Post
                .call("/admin/v1/partners/{slug}/policies/{kind}/versions/{version}/activate"),
            "It serves everybody, or as a canary a percentage of the users. Every edge follows \
             within a second.",
        )
        .with(&[
            Input::new("percentage", "Percentage of the users")
                .kind(Kind::Integer)
                .hint("1 to 99 is a canary; everybody if left out."),
            REASON,
            SIGNER,
            STATEMENT,
            SIGNATURE,
        ])
        .signed("policy.activate", OF_VERSION),
        Action::new(
            "shadow",
            "Run in the shadow",
            Verb::Post.call("/admin/v1/partners/{slug}/policies/{kind}/versions/{version}/shadow"),
            "It gets the same inputs as the active version; its answers are compared, and used for \
             nothing.",
        )
        .with(BECAUSE)
        .signed("policy.shadow", OF_VERSION),
        Action::new(
            "dry-run",
            "Dry run",
            Verb::Post.call(DRY_RUN),
            "It runs on the inputs that were recorded from live requests. Nothing changes.",
        )
        .with(&[Input::new("version", "Version").kind(Kind::Integer).required()])
        .fixed(&[("recorded", "true")])
        .answering(),
    ],
};

/// Keys by which the partner's signature policy verifies requests.
pub(super) const VERIFICATION_KEYS: Subject = Subject {
    name: "verification keys of",
    section: SECTION,
    page: "/console/partners/{slug}/verification-keys",
    read: "/admin/v1/partners/{slug}",
    facts: &[("Policies need signatures", Cell::Text("/policySignatureRequired"))],
    actions: &[
        Action::new(
            "set",
            "Set a verification key",
            Verb::Put.call("/admin/v1/partners/{slug}/verification-keys/{name}"),
            "A signature policy of the partner may name it. It takes the place of one of the same \
             name. Where it takes two persons, a secret is not kept until they have agreed: set it \
             here again then.",
        )
        .with(&[
            Input::new("name", "Name").kind(Kind::Segment).required(),
            Input::new("algorithm", "Algorithm").hint("Such as ed25519.").required(),
            Input::new("key", "Key").kind(Kind::Text).hint("PEM, or base64 for HMAC.").required(),
            Input::new("notBefore", "Good from (UTC, such as 2026-03-01T00:00:00Z)"),
            Input::new("notAfter", "Good until (UTC)"),
            SIGNER,
            STATEMENT,
            SIGNATURE,
        ])
        .signed("verification-key.put", &["partner", "key"]),
        Action::new(
            "delete",
            "Delete a verification key",
            Verb::Delete.call("/admin/v1/partners/{slug}/verification-keys/{name}"),
            "Policies that name it fail from then on.",
        )
        .with(&[
            Input::new("name", "Name").kind(Kind::Segment).required(),
            SIGNER,
            STATEMENT,
            SIGNATURE,
        ])
        .signed("verification-key.delete", &["partner", "key"])
        .destructive()
        .counting(
            "partner={}&policy=signature",
            &[
                ("Versions of its signature policy", Cell::Count("/versions")),
                ("Users of the partner", Cell::Count("/users")),
            ],
        ),
    ],
};

/// Those keys as a list.
pub(super) const VERIFICATION_KEY_LIST: List = List {
    title: "Verification keys of",
    section: SECTION,
    page: "/console/partners/{slug}/~/verification-keys",
    call: "/admin/v1/partners/{slug}/verification-keys",
    criteria: &[],
    columns: &[
        ("Key", Cell::Text("/name")),
        ("Algorithm", Cell::Text("/algorithm")),
        ("SHA-256", Cell::Address("/fingerprint")),
        ("Good from", Cell::Time("/notBefore")),
        ("Good until", Cell::Time("/notAfter")),
        ("Set", Cell::Time("/createdAt")),
    ],
    empty: "A signature policy can name no key of the partner yet.",
};

const VERSIONS: &[(&str, Cell)] = &[
    ("Version", Cell::Text("/version")),
    ("Active", Cell::Text("/active")),
    ("Name", Cell::Text("/info/name")),
    ("Reason", Cell::Text("/reason")),
    ("Signed by", Cell::Text("/signedBy")),
    ("By", Cell::Text("/createdBy")),
    ("Made", Cell::Time("/createdAt")),
    ("Component", Cell::Address("/digest")),
];
/// The versions as a list.
pub(super) const VERSION_LIST: List = List {
    title: "Versions of",
    section: SECTION,
    page: "/console/partners/{slug}/policies/{kind}/~/versions",
    call: "/admin/v1/partners/{slug}/policies/{kind}#/versions",
    criteria: &[],
    columns: VERSIONS,
    empty: "No version is stored.",
};
const CHANGES: &[(&str, Cell)] = &[
    ("When", Cell::Time("/at")),
    ("By", Cell::Text("/actor")),
    ("Change", Cell::Text("/action")),
    ("Version", Cell::Text("/detail/version")),
    ("Reason", Cell::Text("/detail/reason")),
];
/// Live calls that logged something.
const LOGGED: &[(&str, Cell)] = &[
    ("When", Cell::Time("/at")),
    ("Version", Cell::Text("/version")),
    ("Request", Cell::Text("/requestId")),
    ("Lines", Cell::Lines("/lines", &["/level", "/text"])),
    ("Lines left out", Cell::Text("/linesDropped")),
    ("Calls left out before", Cell::Text("/callsDropped")),
];

/// The page of a kind of policy.
pub(super) async fn show(
    visit: &Visit<'_>,
    slug: &str,
    kind: &str,
    query: &Typed,
    subject: &Subject,
) -> Result<Page, Refused> {
    let ids = [slug.to_owned(), kind.to_owned()];
    let url = format!("/admin/v1/partners/{}/policies/{}", segment(slug), segment(kind));
    let mut policy = visit.get(&url).await?;
    let (is_active, is_on_trial) = (!policy["active"].is_null(), policy["trial"].is_object());
    policy["isOnTrial"] = is_on_trial.into();
    policy["isServing"] = (is_active || is_on_trial).into();
    policy["canRollBack"] = (!policy["rollbackTo"].is_null()).into();
    let rows = |name: &str| policy[name].as_array().cloned().unwrap_or_default();
    let path = format!("{SECTION}/{}/policies/{}", segment(slug), segment(kind));
    let trial = &policy["trial"];
    let versions = rows("versions");
    let body = html! {
        (outcome(query, subject.actions))
        p { a href={ (SECTION) "/" (segment(slug)) } { "Partner " (slug) } }
        @if !is_active {
            (note(Tone::Info, &html! { "No version is active: the built-in rule serves." }))
        }
        (facts(visit, &policy, POLICY.facts))
        (POLICY.actions(visit, &ids, &policy))
        @if is_on_trial {
            h2 { "On trial: version " (text(trial, "/version")) }
            div.stats {
                @let share = text(trial, "/percentage");
                (stat("Users", &if share.is_empty() { "none (shadow)".to_owned() } else { format!("{share} %") }, None))
                (stat("Calls", &text(trial, "/calls"), None))
                (stat("Same answer", &text(trial, "/same"), None))
                (stat("Other answer", &text(trial, "/different"), None))
                (stat("Failed", &text(trial, "/failed"), None))
            }
            (differences(trial["differences"].as_array().map(Vec::as_slice).unwrap_or_default()))
        }
        (titled_table(visit, "Versions", &versions, VERSIONS))
        @if !versions.is_empty() { (VERSION_LIST.export(&ids, query)) }
        p.row {
            @for version in &versions {
                @let number = text(version, "/version");
                @if VERSION.may(visit, "activate") && version["active"] != true {
                    a.action href={ (path) "/versions/" (number) "/activate" } { "Activate " (number) }
                    @if is_active {
                        a.action href={ (path) "/versions/" (number) "/shadow" } { "Shadow " (number) }
                    }
                }
                @if visit.may(&Method::POST, DRY_RUN) {
                    a.action href={ (path) "/versions/" (number) "/dry-run?version=" (number) } {
                        "Dry run of " (number)
                    }
                }
            }
        }
        (titled_table(visit, "Log of live calls", &rows("log"), LOGGED))
        (titled_table(visit, "History", &rows("changes"), CHANGES))
    };
    Ok(Page::new(format!("Policy {kind} of {slug}"), SECTION, body))
}

/// The page of a partner's verification keys.
pub(super) async fn verification_keys(
    visit: &Visit<'_>,
    slug: &str,
    query: &Typed,
) -> Result<Page, Refused> {
    let ids = [slug.to_owned()];
    let partner = visit.get(&fill(VERIFICATION_KEYS.read, &ids)).await?;
    let (keys, _) = visit.rows(&fill(VERIFICATION_KEY_LIST.call, &ids)).await?;
    let body = html! {
        (outcome(query, VERIFICATION_KEYS.actions))
        (facts(visit, &partner, VERIFICATION_KEYS.facts))
        (VERIFICATION_KEYS.actions(visit, &ids, &partner))
        h2 { "Keys" }
        (VERIFICATION_KEY_LIST.table(visit, &keys))
        @if !keys.is_empty() { (VERIFICATION_KEY_LIST.export(&ids, query)) }
    };
    Ok(Page::new(format!("{} {slug}", VERIFICATION_KEY_LIST.title), SECTION, body))
}
