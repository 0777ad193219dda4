//! The matrix of tenants, made from the table of endpoints: every caller asks every route for what
//! is its own, its sibling user's, another tenant's and nobody's.
//!
//! A request for something that its caller may not see is answered byte for byte as one for
//! something that does not exist, shows nothing of the owner, and changes nothing. An endpoint
//! without a row fails.

mod callers;
mod resources;
mod rows;
mod traces;

use rampart_api::ENDPOINTS;
use rampart_core::endpoint::Route;
use rampart_tests::answer::Answer;
use rampart_tests::partner::Request;

use self::callers::{Caller, Standing};
pub(crate) use self::resources::{Cast, Named, Owner};
use self::resources::{Scope, Thing};
pub(crate) use self::rows::{Row, row, target};
use self::traces::Traces;

/// An answer without what differs from one request to the next.
fn bytes(answer: &Answer) -> (u16, Vec<(String, String)>, String) {
    // The link to the successor of a deprecated call names what was asked for.
    let differs = ["x-request-id", "date", "ratelimit", "link"];
    let headers = answer.headers().filter(|(name, _)| !differs.contains(name));
    let mut headers: Vec<_> = headers.map(|(a, b)| (a.to_owned(), b.to_owned())).collect();
    headers.sort();
    (answer.status(), headers, answer.text().to_owned())
}

/// The request of this caller.
fn request(cast: &Cast, caller: &Caller, route: &Route, named: &Named) -> Request {
    let request = cast.acme.anonymous(route.method.clone(), &named.path);
    let request = if named.body.is_null() { request } else { request.json(&named.body) };
    caller.headers.iter().fold(request, |request, (name, value)| request.header(name, value))
}

/// Checks that a refused caller gets this code for each of these requests, and changes nothing.
async fn is_refused(cast: &Cast, caller: &Caller, route: &Route, code: &str, all: &[Named]) {
    let before = Traces::of(cast).await;
    for named in all {
        let answer = request(cast, caller, route, named).send().await;
        assert_eq!(answer.codes(), [code], "{route:?} by {caller:?}: {}", answer.text());
    }
    assert!(before == Traces::of(cast).await, "{route:?} by {caller:?} changed something");
}

/// Requests of this route: for something of everybody and of nobody, or the one there is.
async fn everything(cast: &Cast, route: &Route) -> Vec<Named> {
    let mut all = Vec::new();
    match row(route) {
        Row::Names(resources) => {
            for owner in Owner::ALL {
                all.push(cast.name(route, resources[0].0, owner, &cast.acme).await);
            }
        }
        row => all.push(Named { path: target(route), body: row.body(cast) }),
    }
    all
}

/// A route that names something: what the caller sees is granted, the rest is as if it were not.
async fn asks_for(
    cast: &Cast,
    caller: &Caller,
    standing: &Standing,
    route: &Route,
    thing: Thing,
    scope: Scope,
) {
    let nobodys = cast.name(route, thing, Owner::Nobody, cast.partner(standing)).await;
    let nothing = request(cast, caller, route, &nobodys).send().await;
    let granted = |answer: &Answer| answer.status() < 300;
    assert!(!granted(&nothing), "{route:?} {thing:?} of nobody by {caller:?}: {}", nothing.text());
    for owner in [Owner::Ann, Owner::Bob, Owner::Eve] {
        let named = cast.name(route, thing, owner, cast.partner(standing)).await;
        let before = Traces::of(cast).await;
        let answer = request(cast, caller, route, &named).send().await;
        let after = Traces::of(cast).await;
        let case = format!("{route:?} {thing:?} of {owner:?} by {caller:?}: {}", answer.text());
        if standing.sees(owner, scope) {
            assert!(granted(&answer), "{case}");
            after.assert_only_by(&before, standing, &case);
        } else {
            assert_eq!(bytes(&answer), bytes(&nothing), "{case}");
            assert!(before == after, "changed something: {case}");
        }
        cast.assert_shows_nothing_of_others(standing, &answer, &case);
    }
}

/// A route that names nothing: it is granted, shows what is the caller's and nothing else, and
/// changes nothing of anybody else's.
async fn asks(cast: &Cast, caller: &Caller, standing: &Standing, route: &Route) {
    let row = row(route);
    let named = Named { path: target(route), body: row.body(cast) };
    let before = Traces::of(cast).await;
    let answer = request(cast, caller, route, &named).send().await;
    let case = format!("{route:?} by {caller:?}: {}", answer.text());
    assert!(answer.status() < 300, "{case}");
    Traces::of(cast).await.assert_only_by(&before, standing, &case);
    cast.assert_shows_nothing_of_others(standing, &answer, &case);
    for owner in [Owner::Ann, Owner::Bob, Owner::Eve] {
        if let Some(mark) = row.shown(cast, owner).filter(|_| standing.sees(owner, Scope::User)) {
            assert!(answer.text().contains(&mark), "{owner:?}'s {mark} is missing: {case}");
        }
    }
}

async fn tried(cast: &Cast, caller: &Caller, route: &Route, all: &[Named]) {
    cast.context.clock().advance(row(route).pause());
    cast.remove_spare_webhooks().await;
    match (caller.standing(route), row(route)) {
        (Standing::Refused(code), _) => is_refused(cast, caller, route, code, all).await,
        (standing, Row::Names(resources)) => {
            for (thing, scope) in resources {
                asks_for(cast, caller, &standing, route, *thing, *scope).await;
            }
        }
        (standing, _) => asks(cast, caller, &standing, route).await,
    }
}

fn behind_a_client() -> impl Iterator<Item = &'static Route> {
    ENDPOINTS.iter().filter(|route| route.client)
}

#[tokio::test]
async fn nobody_sees_or_moves_what_is_anothers() {
    let cast = Cast::gather().await;
    let callers = cast.callers().await;
    // Lists first, while what everybody has had from the start is on their first pages.
    let (names, shows): (Vec<_>, Vec<_>) =
        behind_a_client().partition(|route| matches!(row(route), Row::Names(_)));
    let routes = shows.into_iter().chain(names).filter(|route| !matches!(row(route), Row::Ends));
    for route in routes {
        let all = everything(&cast, route).await;
        for caller in &callers {
            tried(&cast, caller, route, &all).await;
        }
    }
}

#[tokio::test]
async fn a_session_is_ended_by_its_own_user_alone() {
    let cast = Cast::gather().await;
    let count = cast.callers().await.len();
    for route in behind_a_client().filter(|route| matches!(row(route), Row::Ends)) {
        for index in 0..count {
            // Of the sessions that this caller may have ended, there are new ones for the next.
            cast.context.clock().advance(row(route).pause());
            let callers = cast.callers().await;
            let all = everything(&cast, route).await;
            tried(&cast, &callers[index], route, &all).await;
            for other in &callers {
                let read =
                    ENDPOINTS.iter().find(|route| route.path == "/api/v1/user/info").unwrap();
                let named = Named { path: read.path.to_owned(), body: serde_json::Value::Null };
                let answer = request(&cast, other, read, &named).send().await;
                let ended = match (callers[index].standing(route), other.standing(read)) {
                    (Standing::For { user: by, .. }, Standing::For { user, .. }) => {
                        by == user && other.token.is_some()
                    }
                    _ => false,
                };
                let granted = matches!(other.standing(read), Standing::For { .. }) && !ended;
                let case = format!("{:?} after {:?}: {}", other, callers[index], answer.text());
                assert_eq!(answer.status() == 200, granted, "{case}");
            }
        }
    }
}

#[test]
fn every_endpoint_has_a_row() {
    for route in behind_a_client() {
        let resources = matches!(row(route), Row::Names(_));
        let path = route.path.contains('{');
        assert!(!path || resources, "{route:?} names something in its path, its row does not");
    }
}
