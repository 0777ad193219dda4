//! Partners: the list, one with its settings, keys and policies, and what operators change.

use http::Method;
use maud::{Markup, html};
use serde_json::Value;

use super::action::{Action, Call, Subject, Verb, outcome};
use super::credentials::{FACTS, KEY, KEY_LIST, KEYS, WEBHOOK, WEBHOOK_LIST, WEBHOOKS};
use super::form::{Input, Kind, Typed};
use super::layout::Page;
use super::list::{List, titled_table, with_actions};
use super::policies::VERIFICATION_KEYS;
use super::signing::{SIGNATURE, SIGNER, STATEMENT};
use super::staff::{INVITE, STAFF, STAFF_CALL};
use super::view::{Cell, facts, text};
use super::visit::{Refused, Visit, fill, segment};
use crate::http::html::steps::{self, Step};

pub(super) const SECTION: &str = "/console/partners";
const UPDATE: Call = Verb::Patch.call("/admin/v1/partners/{slug}");
const GATES: Kind = Kind::Choice(&[
    ("before-payment", "before the payment"),
    ("before-payout", "before coins leave"),
    ("none", "none (test partners)"),
]);
const GIVEN_UP: &[(&str, Cell)] = &[
    ("Delivery", Cell::Link("/console/deliveries/", "/id")),
    ("Event", Cell::Text("/type")),
    ("Last error", Cell::Text("/lastError")),
    ("Made", Cell::Time("/createdAt")),
];
/// Kinds of policies, with their names.
const POLICIES: [(&str, &str); 3] =
    [("fee", "Fee"), ("method-order", "Method order"), ("signature", "Signature")];

/// The list of partners.
pub(super) const LIST: List = List {
    title: "Partners",
    section: SECTION,
    page: SECTION,
    call: "/admin/v1/partners",
    criteria: &[],
    columns: &[
        ("Partner", Cell::Link("/console/partners/", "/slug")),
        ("Name", Cell::Text("/name")),
        ("Mode", Cell::Badge("/mode")),
        ("Status", Cell::Badge("/status")),
        ("Made", Cell::Time("/createdAt")),
    ],
    empty: "Create the first partner.",
};

/// Actions that need no partner yet.
pub(super) const PARTNERS: Subject = Subject {
    name: "partner",
    section: SECTION,
    page: "/console/partners/~",
    read: "",
    facts: &[],
    actions: &[Action::new(
        "create",
        "Create a partner",
        Verb::Post.call("/admin/v1/partners"),
        "The partner gets one of every credential. They are shown once, on the next page.",
    )
    .with(&[
        Input::new("slug", "Slug").hint("1 to 63 of a-z, 0-9 and -, for good.").required(),
        Input::new("name", "Name").required(),
        Input::new("mode", "Mode")
            .kind(Kind::Choice(&[("test", "test: money is simulated"), ("live", "live")]))
            .required(),
        Input::new("allowedAddresses", "Allowed networks")
            .kind(Kind::Words)
            .hint("In CIDR notation; any if left empty."),
    ])
    .answering()],
};

const SETTINGS: &[(&str, Cell)] = &[
    ("User name", Cell::Text("/username")),
    ("Default fee (%)", Cell::Text("/defaultFeePercentage")),
    ("Fee cap (%)", Cell::Text("/feeCapPercentage")),
    ("Allowed countries", Cell::Words("/allowedCountries")),
    ("Allowed networks", Cell::Words("/allowedAddresses")),
    ("Certificate", Cell::Text("/certificateSubject")),
    ("Rates", Cell::Text("/rateLimits")),
    ("Offers name the wallet", Cell::Text("/walletAddressRequired")),
    ("Compliance gate", Cell::Text("/complianceGate")),
    ("Gates by payment method", Cell::Text("/complianceGates")),
    ("Guests may order", Cell::Text("/guestOrders/allowed")),
    ("Largest order of a guest", Cell::Text("/guestOrders/maxFiat")),
    ("Policies need signatures", Cell::Text("/policySignatureRequired")),
    ("Policies need two persons", Cell::Text("/policyApprovalRequired")),
    ("Its staff may upload policies", Cell::Text("/policyUploadAllowed")),
    ("Contact", Cell::Text("/contactEmail")),
    ("Colour", Cell::Text("/branding/accentColor")),
    ("Logo", Cell::Text("/branding/logoPath")),
    ("Help", Cell::Text("/branding/supportUrl")),
    ("Privacy statement", Cell::Text("/branding/privacyUrl")),
    ("Terms", Cell::Text("/branding/termsUrl")),
    ("Made", Cell::Time("/createdAt")),
];
const SETTING_INPUTS: &[Input] = &[
    Input::new("defaultFeePercentage", "Default fee (%)")
        .kind(Kind::Decimal)
        .of("/defaultFeePercentage")
        .required(),
    Input::new("feeCapPercentage", "Fee cap (%)")
        .kind(Kind::Decimal)
        .of("/feeCapPercentage")
        .required(),
    Input::new("allowedCountries", "Allowed countries").kind(Kind::Words).of("/allowedCountries"),
    Input::new("allowedAddresses", "Allowed networks")
        .kind(Kind::Words)
        .of("/allowedAddresses")
        .hint("In CIDR notation; any if empty."),
    Input::new("rateLimits", "Rates")
        .kind(Kind::Pairs)
        .of("/rateLimits")
        .hint("A bucket in each line, such as quotes=5/s burst 7."),
    Input::new("walletAddressRequired", "Offers must name the wallet")
        .kind(Kind::YesNo)
        .of("/walletAddressRequired")
        .required(),
    Input::new("policyApprovalRequired", "Changes of policies need two persons")
        .kind(Kind::YesNo)
        .of("/policyApprovalRequired")
        .required(),
    Input::new("policyUploadAllowed", "Its staff may upload policies")
        .kind(Kind::YesNo)
        .of("/policyUploadAllowed")
        .required()
        .hint("In the portal. Operators activate what is uploaded."),
    Input::new("contactEmail", "Contact")
        .of("/contactEmail")
        .hint("For mail to its people about what needs them."),
];

const BRANDING_INPUTS: &[Input] = &[
    Input::new("branding.accentColor", "Colour")
        .of("/branding/accentColor")
        .hint("Of links and main buttons, such as #0b57d0; ours if empty."),
    Input::new("branding.supportUrl", "Help")
        .of("/branding/supportUrl")
        .hint("https: or mailto:"),
    Input::new("branding.privacyUrl", "Privacy statement")
        .of("/branding/privacyUrl")
        .hint("https:"),
    Input::new("branding.termsUrl", "Terms").of("/branding/termsUrl").hint("https:"),
    Input::new("branding.logo", "Logo in base64").kind(Kind::Text).hint(
        "A PNG or an SVG of at most 64 KiB, as base64 -w0 logo.svg prints it. It stays if left empty.",
    ),
];

const DEPENDENTS: &[(&str, Cell)] = &[
    ("Open orders", Cell::Count("/openOrders")),
    ("API keys", Cell::Count("/apiKeys")),
    ("Users", Cell::Count("/users")),
    ("Webhook endpoints", Cell::Count("/webhookEndpoints")),
    ("Staff", Cell::Count("/staff")),
];

pub(super) const PARTNER: Subject = Subject {
    name: "partner",
    section: SECTION,
    page: "/console/partners/{slug}",
    read: "/admin/v1/partners/{slug}",
    facts: FACTS,
    actions: &[
        Action::new("settings", "Change settings", UPDATE, "Every edge follows within a second. What stays as it is shown is not touched.")
            .with(SETTING_INPUTS),
        Action::new("rename", "Rename", UPDATE, "Shoppers see the new name within a second; the slug stays.")
            .with(&[Input::new("name", "Name").of("/name").required()]),
        Action::new("branding", "Branding", UPDATE, "The pages for its shoppers follow within a second. A link that is emptied is taken away.")
            .with(BRANDING_INPUTS),
        Action::new("guests", "Guests' orders", UPDATE, "A second operator must agree.")
            .with(&[
                Input::new("guestOrders.allowed", "Guests may order").kind(Kind::YesNo)
                    .of("/guestOrders/allowed").required(),
                Input::new("guestOrders.maxFiat", "Largest order of a guest").kind(Kind::Decimal)
                    .of("/guestOrders/maxFiat").hint("Any if empty."),
            ]),
        Action::new("gate", "Change the compliance gate", UPDATE, "When the checks of its users must be done. A second operator must agree.")
            .with(&[Input::new("complianceGate", "Gate").kind(GATES).required()]),
        Action::new("method-gates", "Change gates by payment method", UPDATE, "In place of the compliance gate, for orders that are paid so. A second operator must agree.")
            .with(&[
                Input::new("complianceGates.card", "Cards").kind(GATES),
                Input::new("complianceGates.bank-transfer", "Bank transfers").kind(GATES),
                Input::new("complianceGates.instant-transfer", "Instant transfers").kind(GATES),
                Input::new("complianceGates.wallet", "Wallets").kind(GATES),
            ]),
        Action::new("go-live", "Go live", UPDATE, "Its orders are of real money and coins from then on, for good. A second operator must agree.")
            .fixed(&[("mode", "live")]).destructive().having(&[("/mode", "test")])
            .counting("partner={}", DEPENDENTS),
        Action::new("suspend", "Suspend", UPDATE, "None of its credentials is accepted, and none of its users can order, within a second.")
            .fixed(&[("status", "suspended")]).destructive().when(&["active"])
            .counting("partner={}", DEPENDENTS),
        Action::new("activate", "Activate", UPDATE, "Its credentials are accepted again.")
            .fixed(&[("status", "active")]).when(&["suspended"]),
        Action::new("require-signatures", "Require signatures", UPDATE, "Its policies change by what an operator's key has signed alone.")
            .fixed(&[("policySignatureRequired", "true")])
            .having(&[("/policySignatureRequired", "no")]),
        Action::new("waive-signatures", "Waive signatures", UPDATE, "Its policies change without signatures again. This itself must be signed.")
            .with(&[SIGNER, STATEMENT, SIGNATURE]).fixed(&[("policySignatureRequired", "false")])
            .having(&[("/policySignatureRequired", "yes")])
            .signed("policy.waive-signature", &["partner"]),
        Action::new("issue-key", "Issue an API key", Verb::Post.call("/admin/v1/partners/{slug}/api-keys"), "The key is shown once, on the next page.")
            .with(&[
                Input::new("name", "Name"),
                Input::new("scopes", "Scopes").kind(Kind::Words).hint("Such as quotes:read orders:write; everything if left empty."),
                Input::new("allowedAddresses", "Networks").kind(Kind::Words).hint("In CIDR notation; any if left empty."),
                Input::new("expiresAt", "End (UTC, such as 2027-01-01T00:00:00Z)"),
            ]).answering(),
        INVITE,
        Action::new("rotate-secret", "Rotate a secret", Verb::Post.call("/admin/v1/partners/{slug}/secrets/rotate"), "The new secret is shown once, on the next page; the old one stays good during the overlap. A new password without one ends the partner's tokens, too.")
            .with(&[
                Input::new("kind", "Secret").kind(Kind::Choice(&[("signing", "signing: of its offers"), ("webhook", "webhook: of what is sent to it"), ("password", "password")])).required(),
                Input::new("overlapSeconds", "Overlap in seconds").kind(Kind::Integer).hint("86400, a day, if left out."),
            ]).answering().destructive()
            .counting("partner={}", &[("Webhook endpoints", Cell::Count("/webhookEndpoints"))]),
    ],
};

/// The page of a partner.
pub(super) async fn show(
    visit: &Visit<'_>,
    slug: &str,
    query: &Typed,
    subject: &Subject,
) -> Result<Page, Refused> {
    let ids = [slug.to_owned()];
    let partner = visit.get(&format!("/admin/v1/partners/{}", segment(slug))).await?;
    let deliveries = format!("/admin/v1/deliveries?partner={}&state=failed&limit=5", segment(slug));
    let (failed, _) = visit.rows(&deliveries).await?;
    let (webhooks, _) = visit.rows(&fill("/admin/v1/partners/{slug}/webhooks", &ids)).await?;
    let path = format!("{SECTION}/{}", segment(slug));
    let keys = rows(&partner["apiKeys"]);
    let body = html! {
        (outcome(query, subject.actions))
        (facts(visit, &partner, FACTS))
        (PARTNER.actions(visit, &ids, &partner))
        @if text(&partner, "/mode") == "test" { (checklist(&partner)) }
        h2 { "Settings" }
        (facts(visit, &partner, SETTINGS))
        h2 { "Policies" }
        p.row {
            @for (kind, name) in POLICIES { a.action href={ (path) "/policies/" (kind) } { (name) } }
            a.action href=(VERIFICATION_KEYS.path(&ids)) { "Verification keys" }
        }
        (with_actions(visit, &KEY, &ids, "API keys", KEYS, &keys))
        @if !keys.is_empty() { (KEY_LIST.export(&ids, query)) }
        (with_actions(visit, &WEBHOOK, &ids, "Webhook endpoints", WEBHOOKS, &webhooks))
        @if !webhooks.is_empty() { (WEBHOOK_LIST.export(&ids, query)) }
        p.row {
            @if visit.may(&Method::GET, STAFF_CALL) {
                a href=(STAFF.path(&ids)) { "Staff" }
            }
            a href={ "/console/orders?partner=" (segment(slug)) } { "Orders" }
            a href={ "/console/savings-plans?partner=" (segment(slug)) } { "Savings plans" }
            a href={ "/console/deliveries?partner=" (segment(slug)) } { "Deliveries" }
            @if visit.may(&Method::GET, "/admin/v1/audit") {
                a href={ "/console/audit?target=" (segment(slug)) } { "Audit" }
            }
        }
        (titled_table(visit, "Deliveries that were given up", &failed, GIVEN_UP))
    };
    Ok(Page::new(format!("Partner {slug}"), SECTION, body))
}

/// Needs of a live partner, met or missing.
fn checklist(partner: &Value) -> Markup {
    let needs = [
        ("route", "A route for money and coins"),
        ("live price", "A live price of a pair"),
        ("configured master key", "The master key in the configuration"),
        ("mail", "Mail"),
        ("documents", "A store of documents"),
    ];
    let missing = rows(&partner["missing"]);
    let is_missing = |need: &str| missing.iter().any(|missing| missing == need);
    let needed =
        needs.map(|(need, name)| (name, if is_missing(need) { Step::Ahead } else { Step::Done }));
    html! { h2 { "Before it can go live" } (steps::checklist(&needed)) }
}

fn rows(list: &Value) -> Vec<Value> {
    list.as_array().cloned().unwrap_or_default()
}
