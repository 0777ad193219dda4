//! Users: the search, whose criteria never stand in a URL, and one user with documents and accounts.

use http::{Method, StatusCode};
use maud::{Markup, html};
use serde_json::Value;
use url::form_urlencoded;

use super::action::{Action, Call, Subject, Verb, outcome};
use super::decisions::decisions;
use super::form::{Input, Kind, Typed};
use super::layout::{Page, render};
use super::list::{List, PAGE_ROWS, complaint, text_at, titled_table};
use super::pictures::Picture;
use super::savings_plans;
use super::view::{Cell, facts, text};
use super::visit::{Refused, Visit, segment};
use crate::http::html::components::{Tone, dialog, empty_state, toast};
use crate::http::reply::Reply;
use crate::platform::error::Result;

const SECTION: &str = "/console/users";
const CHECKS: Kind = Kind::Choice(&[
    ("pending", "pending"),
    ("verified", "verified"),
    ("failed", "failed"),
    ("blocked", "blocked"),
]);
/// Decisions on a side of a document, sent or not.
const SIDE_CHECKS: Kind = Kind::Choice(&[
    ("missing", "missing: ask for it"),
    ("pending", "pending"),
    ("verified", "verified"),
    ("failed", "failed"),
    ("blocked", "blocked"),
]);
const UPDATE: Call = Verb::Patch.call("/admin/v1/users/{uuid}");

const CRITERIA: &[Input] = &[
    Input::new("email", "E-mail address"),
    Input::new("phone", "Phone number").hint("International, such as +31612345678"),
    Input::new("name", "Full name"),
    Input::new("identifier", "Partner's identifier"),
    Input::new("partner", "Partner"),
];
/// The last user of the page before, in the form that leads to the next one.
const AFTER: &str = "after";
const FOUND: &[(&str, Cell)] = &[
    ("User", Cell::Link("/console/users/", "/uuid")),
    ("Partner", Cell::Text("/partner")),
    ("First name", Cell::Text("/firstName")),
    ("Last name", Cell::Text("/lastName")),
    ("Business", Cell::Text("/businessName")),
    ("E-mail", Cell::Text("/email")),
    ("Phone", Cell::Text("/phoneNumber")),
    ("Level", Cell::Text("/level")),
    ("Identity", Cell::Badge("/identityStatus")),
    ("Made", Cell::Time("/createdAt")),
];

/// Users, whose criteria are posted.
const LIST: List = List {
    title: "Users",
    section: SECTION,
    page: SECTION,
    call: "/admin/v1/users",
    criteria: CRITERIA,
    columns: FOUND,
    empty: "Nobody meets all of these criteria.",
};

const FACTS: &[(&str, Cell)] = &[
    ("Partner", Cell::Link("/console/partners/", "/partner")),
    ("First name", Cell::Text("/personal/firstName")),
    ("Last name", Cell::Text("/personal/lastName")),
    ("Business", Cell::Text("/personal/businessName")),
    ("Level", Cell::Text("/profile/verificationLevel/identifier")),
    ("Disabled", Cell::Text("/disabled")),
    ("Erased", Cell::Text("/deleted")),
];
const PERSON: &[(&str, Cell)] = &[
    ("E-mail", Cell::Text("/personal/email")),
    ("Phone", Cell::Text("/personal/phoneNumber")),
    ("Born", Cell::Text("/personal/dateOfBirth")),
    ("Nationality", Cell::Text("/personal/nationality")),
    ("Street", Cell::Text("/personal/address")),
    ("Number", Cell::Text("/personal/addressNo")),
    ("Postal code", Cell::Text("/personal/postalCode")),
    ("City", Cell::Text("/personal/city")),
    ("Country", Cell::Text("/profile/country")),
    ("Tax country", Cell::Text("/personal/taxCountry")),
    ("Tax number", Cell::Text("/personal/taxNumber")),
];
const STATUSES: &[(&str, Cell)] = &[
    ("E-mail", Cell::Badge("/profile/status/details/emailAddressVerificationStatus")),
    ("Identity", Cell::Badge("/profile/status/details/identityVerificationStatus")),
    ("AMLD5 questions", Cell::Badge("/profile/status/details/amld5VerificationStatus")),
    (
        "Privacy agreement",
        Cell::Badge("/profile/status/details/privacyAgreementVerificationStatus"),
    ),
    ("Address", Cell::Badge("/profile/status/details/residentialAddressStatus")),
    ("Tax residency", Cell::Badge("/profile/status/details/dac8Status")),
    ("Own limits", Cell::Text("/limitOverrides")),
];

const DEPENDENTS: &[(&str, Cell)] = &[
    ("Orders", Cell::Count("/orders")),
    ("Open orders", Cell::Count("/openOrders")),
    ("Accounts", Cell::Count("/accounts")),
    ("Images of documents", Cell::Count("/documents")),
];

pub(super) const USER: Subject = Subject {
    name: "user",
    section: SECTION,
    page: "/console/users/{uuid}",
    read: "/admin/v1/users/{uuid}",
    facts: FACTS,
    actions: &[
        Action::new("checks", "Decide checks", UPDATE, "Orders that wait for these checks go on at once.")
            .with(&[
                Input::new("verification.identity", "Identity").kind(CHECKS),
                Input::new("verification.email", "E-mail").kind(CHECKS),
                Input::new("verification.amld5", "AMLD5 questions").kind(CHECKS),
                Input::new("verification.residentialAddress", "Address").kind(CHECKS),
                Input::REASON,
            ]),
        Action::new("level", "Change the level", UPDATE, "Above bronze a second operator must agree.")
            .with(&[Input::new("level", "Level").required().kind(Kind::Choice(&[
                ("bronze", "bronze"), ("silver", "silver"), ("gold", "gold"),
            ])), Input::REASON]),
        Action::new("disable", "Disable", UPDATE, "The user can neither sign in nor order.")
            .with(&[Input::REASON]).fixed(&[("disabled", "true")]).destructive().having(&[("/disabled", "no")])
            .counting("user={}", DEPENDENTS),
        Action::new("enable", "Enable", UPDATE, "The user can sign in and order again.")
            .with(&[Input::REASON]).fixed(&[("disabled", "false")]).having(&[("/disabled", "yes")]),
        Action::new("document", "Decide about a document", UPDATE, "Compare its image with the person before.")
            .with(&[
                Input::new("documents.0.type", "Document").required(),
                Input::new("documents.0.side", "Side").required(),
                Input::new("documents.0.status", "Decision").required().kind(SIDE_CHECKS),
                Input::REASON,
            ]),
        savings_plans::OPEN,
        Action::new("erase", "Erase", UPDATE, "The user's key is destroyed and the personal data are gone, for good. Of a user who has ordered, what law demands is kept for the role compliance.")
            .with(&[Input::REASON]).fixed(&[("deleted", "true")]).destructive().counting("user={}", DEPENDENTS),
    ],
};

/// A user's accounts as a list.
pub(super) const ACCOUNT_LIST: List = List {
    title: "Accounts of",
    section: SECTION,
    page: "/console/users/{uuid}/~/accounts",
    call: "/admin/v1/users/{uuid}/accounts",
    criteria: &[],
    columns: &[
        ("Account", Cell::Text("/accountIdentifier")),
        ("Type", Cell::Text("/type")),
        ("Name", Cell::Text("/name")),
        ("Verified", Cell::Text("/verified")),
        ("Disabled", Cell::Text("/disabled")),
        ("Limit", Cell::Text("/limit")),
    ],
    empty: "The user has no account.",
};

/// An account of a user.
pub(super) const ACCOUNT: Subject = Subject {
    name: "account",
    section: SECTION,
    page: "/console/users/{uuid}/accounts/{account}",
    read: "/admin/v1/users/{uuid}",
    facts: FACTS,
    actions: &[
        Action::new(
            "verify",
            "Verify the account",
            Verb::Patch.call("/admin/v1/users/{uuid}/accounts/{accountIdentifier}"),
            "The account counts as the user's. Orders that wait for it go on at once.",
        )
        .with(&[
            Input::new("version", "The version in the link to this form")
                .kind(Kind::Hidden)
                .required(),
            Input::REASON,
        ])
        .fixed(&[("verified", "true")]),
        Action::new(
            "disable",
            "Disable the account",
            Verb::Patch.call("/admin/v1/users/{uuid}/accounts/{accountIdentifier}"),
            "Nothing is paid from it or to it.",
        )
        .with(&[Input::REASON])
        .fixed(&[("disabled", "true")])
        .destructive()
        .counting(
            "user={}",
            &[
                ("Open orders of the user", Cell::Count("/openOrders")),
                ("Accounts of the user", Cell::Count("/accounts")),
            ],
        ),
        Action::new(
            "enable",
            "Enable the account",
            Verb::Patch.call("/admin/v1/users/{uuid}/accounts/{accountIdentifier}"),
            "It can be paid from and to again.",
        )
        .with(&[Input::REASON])
        .fixed(&[("disabled", "false")]),
    ],
};

/// Searches, if something was typed. The form is posted, so that no personal data stand in a URL or
/// in the browser's history.
///
/// # Errors
/// Without entropy.
pub(super) async fn search(visit: &Visit<'_>, typed: &Typed, is_sent: bool) -> Result<Reply> {
    let is_own = visit.session.nonce(typed.get("csrfToken")).is_some();
    let (mut status, mut above, mut found, mut next) = (StatusCode::OK, None, None, None);
    let mut refused = None;
    if is_sent && !is_own {
        status = StatusCode::FORBIDDEN;
        above = Some("This form is of an earlier sign-in; send it again.".to_owned());
    } else if is_sent {
        match LIST.file(visit, &[], typed).await {
            Ok(Some(file)) => return Ok(file),
            Ok(None) => {}
            Err(refused) => return render(visit, &Page::refused(&refused)),
        }
        match LIST.rows(visit, &[], typed, PAGE_ROWS).await {
            Ok((rows, query)) => {
                found = Some(rows);
                next = query.map(|query| Typed::read(query.as_bytes()));
            }
            Err(refusal) => (status, refused) = (refusal.status, Some(refusal)),
        }
    }
    let csrf_token = visit.session.form_token(visit.core)?;
    let error = refused.as_ref().and_then(|refused| LIST.error_of(refused));
    let body = html! {
        @if let Some(above) = above { (toast(Tone::Bad, &above)) }
        @if let Some(refused) = &refused { (complaint(refused, error.as_ref())) }
        p.hint { "Every search stands in the audit. Without a criterion all users are found, the newest first." }
        form.filter method="post" action=(SECTION) {
            input type="hidden" name="csrfToken" value=(csrf_token);
            @for input in CRITERIA { (input.show(typed, text_at(input, error.as_ref()))) }
            button.main { "Search" }
            (dialog("As a file (CSV)", &LIST.column_choice()))
        }
        @if let Some(found) = &found {
            @if found.is_empty() { (empty_state("Nobody", LIST.empty)) }
            (titled_table(visit, "Users", found, FOUND))
        }
        @if let Some(next) = &next {
            form.row method="post" action=(SECTION) {
                input type="hidden" name="csrfToken" value=(csrf_token);
                @for name in CRITERIA.iter().map(|input| input.member).chain([AFTER]) {
                    input type="hidden" name=(name) value=(next.get(name));
                }
                button { "Next page" }
            }
        }
    };
    render(visit, &Page { status, ..Page::new("Users", SECTION, body) })
}

/// The page of a user, after an action of `subject`, which may be an account there.
pub(super) async fn show(
    visit: &Visit<'_>,
    uuid: &str,
    query: &Typed,
    subject: &Subject,
) -> Result<Page, Refused> {
    let ids = [uuid.to_owned()];
    let user = visit.get(&format!("/admin/v1/users/{}", segment(uuid))).await?;
    let accounts = format!("/admin/v1/users/{}/accounts", segment(uuid));
    let (accounts, more_accounts) = visit.rows(&accounts).await?;
    let plans = format!("{}?user={}", savings_plans::LIST.call, segment(uuid));
    let (plans, more_plans) = visit.rows(&plans).await?;
    let decided = decided(visit, &user).await?;
    let path = format!("{SECTION}/{}", segment(uuid));
    let body = html! {
        (outcome(query, subject.actions))
        (facts(visit, &user, FACTS))
        @if user["deleted"] != true { (USER.actions(visit, &ids, &user)) }
        (dossier(visit, &user, &accounts, uuid))
        (account_list(visit, &accounts, &path))
        (ACCOUNT_LIST.more(&ids, more_accounts.as_deref(), "accounts"))
        @if !accounts.is_empty() { (ACCOUNT_LIST.export(&ids, query)) }
        (titled_table(visit, "Savings plans", &plans, savings_plans::OF_USER))
        (savings_plans::LIST.more(&[], more_plans.as_deref(), "savings plans"))
        (decided)
    };
    Ok(Page { has_images: true, ..Page::new("User", SECTION, body) })
}

/// The newest decisions about a user and their accounts.
pub(super) async fn decided(visit: &Visit<'_>, user: &Value) -> Result<Markup, Refused> {
    decisions(visit, &text(user, "/uuid"), &["user.change", "account.change"]).await
}

/// A user's data beside the pictures that prove them.
pub(super) fn dossier(visit: &Visit<'_>, user: &Value, accounts: &[Value], uuid: &str) -> Markup {
    let may_look = visit.may(&Method::GET, "/admin/v1/users/{uuid}/documents/{id}");
    let pictures = if may_look { Picture::all(user, accounts, uuid) } else { Vec::new() };
    html! {
        div.beside {
            div {
                h2 { "Person" }
                (facts(visit, user, PERSON))
                h2 { "Checks" }
                (facts(visit, user, STATUSES))
            }
            @if !pictures.is_empty() {
                div {
                    h2 { "Pictures" }
                    p.hint { "Each that is opened stands in the audit." }
                    @for picture in &pictures { (picture.show()) }
                }
            }
        }
        (documents(visit, user, uuid))
    }
}

/// Sides of documents, each with a link to the decision about it.
fn documents(visit: &Visit<'_>, user: &Value, uuid: &str) -> Markup {
    let sides = user["documents"].as_array().cloned().unwrap_or_default();
    let may_decide = user["deleted"] != true && USER.may(visit, "document");
    html! {
        (titled_table(visit, "Documents", &sides, &[
            ("Document", Cell::Text("/type")),
            ("Side", Cell::Text("/side")),
            ("Status", Cell::Badge("/status")),
            ("Media type", Cell::Text("/mediaType")),
            ("Since", Cell::Time("/createdAt")),
        ]))
        p.row {
            @if may_decide {
                @for side in &sides {
                    @let named = form_urlencoded::Serializer::new(String::new())
                        .append_pair("documents.0.type", &text(side, "/type"))
                        .append_pair("documents.0.side", &text(side, "/side"))
                        .finish();
                    a.action href={ (SECTION) "/" (segment(uuid)) "/document?" (named) } {
                        "Decide: " (text(side, "/type")) ", " (text(side, "/side"))
                    }
                }
            }
        }
    }
}

fn account_list(visit: &Visit<'_>, accounts: &[Value], path: &str) -> Markup {
    let names = ["verify", "disable", "enable"];
    let [may_verify, may_disable, may_enable] = names.map(|name| ACCOUNT.may(visit, name));
    html! {
        (titled_table(visit, "Accounts", accounts, ACCOUNT_LIST.columns))
        p.row {
            @for account in accounts {
                @let (id, name) = (text(account, "/accountId"), text(account, "/type"));
                @if may_verify && account["verified"] != true {
                    // What is verified is the name that stands here.
                    @let version = text(account, "/version");
                    a.action href={ (path) "/accounts/" (id) "/verify?version=" (version) } {
                        "Verify " (name)
                    }
                }
                @if may_disable && account["disabled"] != true {
                    a.action href={ (path) "/accounts/" (id) "/disable" } { "Disable " (name) }
                }
                @if may_enable && account["disabled"] == true {
                    a.action href={ (path) "/accounts/" (id) "/enable" } { "Enable " (name) }
                }
            }
        }
    }
}
