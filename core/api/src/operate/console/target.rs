//! The page that a path leads to.

use http::Method;
use maud::{Markup, html};
use percent_encoding::percent_decode_str;

use super::action::{Subject, outcome};
use super::connectors::{CONNECTOR, CONNECTORS, NEW_CONNECTOR};
use super::form::Typed;
use super::layout::Page;
use super::list::{List, PAGE_ROWS};
use super::lists::{
    BALANCES, CURRENCIES, DELIVERIES, DELIVERY, ENTRIES, MAIL, METHOD, METHODS, PAIR, PAIRS,
};
use super::maintenance::{NEW_WINDOW, WINDOW, WINDOWS};
use super::operators::{NEW_OPERATOR, OPERATOR, OPERATORS, SIGNERS, SIGNING_KEYS, TOKEN};
use super::view::facts;
use super::visit::{Refused, Visit, fill};
use super::{
    approvals, audit, credentials, deliveries, maintenance, market, operators, orders, overview,
    partners, payments, policies, reconciliations, reviews, routes, savings_plans, staff, users,
};

/// A page of the console.
#[derive(Debug)]
pub(super) enum Target {
    Overview,
    /// A list, and the ids in its path.
    List(&'static List, Vec<String>),
    Users,
    Approvals,
    Verification,
    /// The form of a statement.
    Upload,
    /// The page of something.
    Subject(&'static Subject, Vec<String>),
    /// The form of one of its actions.
    Action(&'static Subject, Vec<String>, String),
    /// The form that makes an approved call.
    CarryOut(String),
}

/// Lists, by the rest of their path.
const LISTS: &[(&str, &List)] = &[
    ("orders", &orders::LIST),
    ("payments", &payments::LIST),
    ("payments/~", &payments::LIST),
    ("partners", &partners::LIST),
    ("partners/~", &partners::LIST),
    ("reviews", &reviews::LIST),
    ("savings-plans", &savings_plans::LIST),
    ("market", &PAIRS),
    ("market/~/methods", &METHODS),
    ("market/~/currencies", &CURRENCIES),
    ("market/~/maintenance", &WINDOWS),
    ("ledger", &BALANCES),
    ("ledger/entries", &ENTRIES),
    ("ledger/reconciliations", &reconciliations::LIST),
    ("deliveries", &DELIVERIES),
    ("deliveries/~/mail", &MAIL),
    ("connectors", &CONNECTORS),
    ("connectors/~", &CONNECTORS),
    ("operators", &OPERATORS),
    ("operators/~", &OPERATORS),
    ("operators/~/keys", &SIGNERS),
    ("audit", &audit::LIST),
];

/// Lists of something, by their whole path.
const INNER: &[&List] = &[
    &credentials::KEY_LIST,
    &credentials::WEBHOOK_LIST,
    &staff::LIST,
    &policies::VERSION_LIST,
    &policies::VERIFICATION_KEY_LIST,
    &users::ACCOUNT_LIST,
    &savings_plans::DEPOSITS,
    &operators::SESSIONS,
    &operators::TOKENS,
    &routes::LIST,
    &reconciliations::DIFFERENCES,
];

/// Everything that has actions.
pub(super) const SUBJECTS: &[&Subject] = &[
    &orders::ORDER,
    &payments::PAYMENTS,
    &payments::PAYMENT,
    &partners::PARTNERS,
    &partners::PARTNER,
    &credentials::KEY,
    &credentials::WEBHOOK,
    &staff::STAFF,
    &staff::MEMBER,
    &policies::POLICY,
    &policies::VERSION,
    &policies::VERIFICATION_KEYS,
    &approvals::APPROVAL,
    &users::USER,
    &users::ACCOUNT,
    &savings_plans::PLAN,
    &reviews::REVIEW,
    &reviews::SCREENING,
    &DELIVERY,
    &NEW_CONNECTOR,
    &CONNECTOR,
    &NEW_OPERATOR,
    &OPERATOR,
    &TOKEN,
    &SIGNING_KEYS,
    &PAIR,
    &METHOD,
    &NEW_WINDOW,
    &WINDOW,
    &routes::ROUTES,
    &reconciliations::RECONCILIATION,
];

impl Target {
    /// The page of a path; `None` if there is none.
    pub(super) fn of(path: &str) -> Option<Self> {
        let rest = path.strip_prefix("/console")?.trim_start_matches('/');
        match rest {
            "" => return Some(Self::Overview),
            "users" => return Some(Self::Users),
            "approvals" => return Some(Self::Approvals),
            "audit/verification" => return Some(Self::Verification),
            "ledger/reconciliations/~/upload" => return Some(Self::Upload),
            _ => {}
        }
        if let Some((_, list)) = LISTS.iter().find(|(known, _)| *known == rest) {
            return Some(Self::List(list, Vec::new()));
        }
        let inner = INNER.iter().find_map(|list| Some((*list, ids(list.page, path)?)));
        if let Some((list, ids)) = inner {
            return Some(Self::List(list, ids));
        }
        if let Some(ids) = ids("/console/approvals/{id}/carry-out", path) {
            return ids.into_iter().next().map(Self::CarryOut);
        }
        // What is longer and fixed comes before what a name could stand for.
        let own = SUBJECTS.iter().find_map(|subject| Some((*subject, ids(subject.page, path)?)));
        if let Some((subject, ids)) = own {
            return Some(Self::Subject(subject, ids));
        }
        let (page, action) = path.rsplit_once('/')?;
        let own = SUBJECTS.iter().filter(|s| s.actions.iter().any(|known| known.name == action));
        let mut own = own.filter_map(|subject| Some((*subject, ids(subject.page, page)?)));
        own.next().map(|(subject, ids)| Self::Action(subject, ids, action.to_owned()))
    }
}

/// The values of a pattern's `{names}`, if the path has its form.
fn ids(pattern: &str, path: &str) -> Option<Vec<String>> {
    let (mut found, mut segments) = (Vec::new(), path.split('/'));
    for expected in pattern.split('/') {
        let segment = segments.next()?;
        if expected.starts_with('{') {
            let text = percent_decode_str(segment).decode_utf8().ok()?;
            if text.is_empty() || text == "~" {
                return None;
            }
            found.push(text.into_owned());
        } else if expected != segment {
            return None;
        }
    }
    segments.next().is_none().then_some(found)
}

/// The page that is shown.
pub(super) async fn page(
    visit: &Visit<'_>,
    target: &Target,
    query: &Typed,
) -> Result<Page, Refused> {
    match target {
        Target::Overview => overview::show(visit).await,
        Target::Approvals => approvals::show(visit, query).await,
        Target::Verification => audit::verification(visit).await,
        Target::List(list, ids) => {
            let above = above(visit, list, query).await;
            list.show(visit, ids, query, &above).await
        }
        Target::Subject(subject, ids) => Box::pin(subject_page(visit, subject, ids, query)).await,
        Target::Users | Target::Upload | Target::Action(..) | Target::CarryOut(_) => {
            Err(Refused::nothing())
        }
    }
}

async fn subject_page(
    visit: &Visit<'_>,
    subject: &'static Subject,
    ids: &[String],
    query: &Typed,
) -> Result<Page, Refused> {
    match (subject.page, ids) {
        ("/console/orders/{id}", [id]) => orders::show(visit, id, query).await,
        ("/console/payments/{id}", [id]) => payments::show(visit, id, query).await,
        ("/console/partners/{slug}", [slug]) => partners::show(visit, slug, query, subject).await,
        ("/console/partners/{slug}/policies/{kind}", [slug, kind]) => {
            policies::show(visit, slug, kind, query, subject).await
        }
        ("/console/partners/{slug}/verification-keys", [slug]) => {
            policies::verification_keys(visit, slug, query).await
        }
        // Things that stand on the page of another one.
        ("/console/partners/{slug}/policies/{kind}/versions/{version}", [slug, kind, _]) => {
            policies::show(visit, slug, kind, query, subject).await
        }
        ("/console/partners/{slug}/keys/{id}", [slug, _])
        | ("/console/partners/{slug}/webhooks/{id}", [slug, _]) => {
            partners::show(visit, slug, query, subject).await
        }
        ("/console/partners/{slug}/staff", [slug])
        | ("/console/partners/{slug}/staff/{id}", [slug, _]) => {
            staff::show(visit, slug, query).await
        }
        ("/console/users/{uuid}", [uuid])
        | ("/console/users/{uuid}/accounts/{account}", [uuid, _]) => {
            users::show(visit, uuid, query, subject).await
        }
        ("/console/savings-plans/{code}", [code]) => savings_plans::show(visit, code, query).await,
        ("/console/reviews/{subject}/{id}", [kind, id]) => {
            reviews::show(visit, kind, id, query).await
        }
        ("/console/deliveries/{id}", [id]) => deliveries::show(visit, id, query).await,
        ("/console/approvals/{id}", _) => approvals::show(visit, query).await,
        ("/console/market/~/routes", _) => routes::show(visit, query).await,
        ("/console/market/{pair}", [pair]) => market::show(visit, pair, query).await,
        ("/console/methods/{code}", [code]) => market::show_method(visit, code, query).await,
        ("/console/maintenance/{id}", [id]) => maintenance::show(visit, id, query).await,
        ("/console/ledger/reconciliations/{id}", [id]) => reconciliations::show(visit, id).await,
        ("/console/operators/{name}", [name])
        | ("/console/operators/{name}/tokens/{id}", [name, _]) => {
            operators::show(visit, name, query, subject).await
        }
        _ => plain(visit, subject, ids, query).await,
    }
}

/// The page of something that has only facts and actions.
async fn plain(
    visit: &Visit<'_>,
    subject: &'static Subject,
    ids: &[String],
    query: &Typed,
) -> Result<Page, Refused> {
    let read = match subject.read {
        "" => serde_json::Value::Null,
        read => visit.get(&fill(read, ids)).await?,
    };
    let body = html! {
        (outcome(query, subject.actions))
        (facts(visit, &read, subject.facts))
        (subject.actions(visit, ids, &read))
    };
    let mut title = format!("{} {}", subject.name, ids.join(" "));
    if let Some(first) = title.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    Ok(Page::new(title, subject.section, body))
}

/// The part above a list.
async fn above(visit: &Visit<'_>, list: &List, query: &Typed) -> Markup {
    let subject = match list.page {
        "/console/payments" => Some(&payments::PAYMENTS),
        "/console/partners" => Some(&partners::PARTNERS),
        "/console/connectors" => Some(&NEW_CONNECTOR),
        "/console/operators" => Some(&NEW_OPERATOR),
        "/console/operators/~/keys" => Some(&SIGNING_KEYS),
        "/console/market/~/maintenance" => Some(&NEW_WINDOW),
        _ => None,
    };
    let queue = match list.page {
        "/console/reviews" => {
            let found = list.rows(visit, &[], query, PAGE_ROWS).await;
            found.map_or_else(|_| Vec::new(), |(rows, _)| rows)
        }
        _ => Vec::new(),
    };
    html! {
        @if let Some(subject) = subject {
            (outcome(query, subject.actions))
            (subject.actions(visit, &[], &serde_json::Value::Null))
        }
        @if !queue.is_empty() { (reviews::links(&queue)) }
        @match list.page {
            "/console/audit" if visit.may(&Method::GET, "/admin/v1/audit/verification") => {
                p { a.action href="/console/audit/verification" { "Verify the chain" } }
            }
            "/console/operators" => p { a.action href=(SIGNERS.page) { "Signing keys" } },
            "/console/ledger" => nav.row aria-label="Ledger" {
                a.action href="/console/ledger/entries" { "Entries" }
                a.action href="/console/ledger/reconciliations" { "Reconciliations" }
            },
            "/console/ledger/reconciliations" => (reconciliations::link_to_upload(visit)),
            "/console/market" => nav.row aria-label="Market" {
                a.action href=(METHODS.page) { "Payment methods" }
                a.action href=(CURRENCIES.page) { "Currencies" }
                a.action href="/console/market/~/routes" { "Routes" }
                a.action href=(WINDOWS.page) { "Maintenance windows" }
            },
            "/console/ledger/entries" => p { a.action href="/console/ledger" { "Balances" } },
            "/console/deliveries" => {
                (outcome(query, DELIVERY.actions))
                @if visit.may(&Method::GET, MAIL.call) {
                    p { a.action href=(MAIL.page) { "Mail" } }
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OPERATOR_ENDPOINTS;
    use crate::auth::roles::Role;
    use crate::operate::console::view::RESTRICTED;

    #[test]
    fn every_page_calls_what_the_operators_api_has() {
        let has = |method: &Method, path: &str| {
            OPERATOR_ENDPOINTS.iter().any(|route| route.method == *method && route.path == path)
        };
        for list in LISTS.iter().map(|(_, list)| list).chain(INNER) {
            assert!(has(&Method::GET, list.call().0), "{}", list.call);
        }
        for subject in SUBJECTS {
            let pattern = |path: &str| subject.read.is_empty() || has(&Method::GET, path);
            assert!(pattern(subject.read), "{}", subject.read);
            for action in subject.actions {
                assert!(has(&action.call.verb.method(), action.call.path), "{action:?}");
            }
        }
    }

    #[test]
    fn pages_that_not_every_role_sees_are_known_where_links_are_shown() {
        for subject in SUBJECTS.iter().filter(|subject| !subject.read.is_empty()) {
            let (path, id) = subject.page.split_once('{').unwrap_or_default();
            if path.is_empty() || id.contains('/') {
                continue;
            }
            let mut routes = OPERATOR_ENDPOINTS.iter();
            let route = routes.find(|r| r.method == Method::GET && r.path == subject.read).unwrap();
            let is_restricted = RESTRICTED.contains(&(path, subject.read));
            assert_eq!(is_restricted, route.roles != Role::ALL, "{}", subject.page);
        }
    }

    #[test]
    fn a_path_leads_to_its_page() {
        let leads = |path: &str| format!("{:?}", Target::of(path));
        assert!(matches!(Target::of("/console"), Some(Target::Overview)));
        for (path, ids) in [
            ("/console/orders", 0),
            ("/console/partners/~", 0),
            ("/console/partners/acme/~/keys", 1),
            ("/console/partners/acme/policies/fee/~/versions", 2),
            ("/console/market/~/routes/~/routes", 0),
        ] {
            assert!(matches!(Target::of(path), Some(Target::List(_, found)) if found.len() == ids));
        }
        for (path, page, name) in [
            ("/console/orders/7/hold", "/console/orders/{id}", "hold"),
            ("/console/partners/~/create", "/console/partners/~", "create"),
            ("/console/partners/acme/go-live", "/console/partners/{slug}", "go-live"),
            (
                "/console/partners/acme/keys/1/revoke",
                "/console/partners/{slug}/keys/{id}",
                "revoke",
            ),
            ("/console/reviews/user/1/claim", "/console/reviews/{subject}/{id}", "claim"),
        ] {
            match Target::of(path) {
                Some(Target::Action(subject, _, found)) => {
                    assert_eq!((subject.page, &*found), (page, name), "{path}");
                }
                other => panic!("{path}: {other:?}"),
            }
        }
        for nothing in
            ["/console/nothing", "/console/orders/", "/console/orders/7/dance", "/consolex"]
        {
            assert!(Target::of(nothing).is_none(), "{nothing}: {}", leads(nothing));
        }
    }
}
