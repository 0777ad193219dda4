//! The API's table of contents: a line per method and path. Router, metrics labels, the error
//! catalogue and the tests that loop over every endpoint read this table.

use std::collections::HashMap;
use std::sync::LazyLock;

use http::Method;
use percent_encoding::percent_decode_str;

use crate::endpoint::{Route, route};
use crate::{notify, operate, partners, trading, users};

/// Every endpoint. A type path is a file path and a version.
pub const ENDPOINTS: &[Route] = &[
    // Credentials
    route::<partners::authenticate::V1>(),
    route::<partners::refresh::V1>(),
    // Verification
    route::<users::verification::amld5::QuestionsV1>(),
    route::<users::verification::amld5::AnswersV1>(),
    route::<users::verification::status::V2>(),
    route::<users::verification::card::V1>(),
    route::<users::verification::wallet_provider::V1>(),
    route::<users::verification::iban_photo::V1>(),
    // Accounts and limits
    route::<users::accounts::register_card::V2>(),
    route::<trading::limits::read::V2>(),
    // The market
    route::<trading::market::currency_pairs::V1>(),
    route::<trading::market::system_info::V1>(),
    route::<trading::market::prices::V1>(),
    route::<trading::market::prices::V2>(),
    route::<trading::market::client_info::V2>(),
    route::<trading::payment_methods::V2>(),
    // Quotes
    route::<trading::quotes::create::BuyV1>(),
    route::<trading::quotes::create::SellV1>(),
    // Offers and checkouts
    route::<trading::offers::create::V2>(),
    route::<trading::checkout::create::V2>(),
    // Orders
    route::<trading::orders::confirm::V1>(),
    route::<trading::orders::confirm::V2>(),
    route::<trading::orders::read::V1>(),
    route::<trading::orders::read::V2>(),
    route::<trading::orders::list::V2>(),
    route::<trading::orders::timeline::V2>(),
    // Users
    route::<users::register::RegisterV2>(),
    route::<users::register::UpdateV2>(),
    route::<users::session::LoginV1>(),
    route::<users::session::LogoutV1>(),
    route::<users::session::LoginTokenV1>(),
    route::<users::by_email::ExistsV1>(),
    route::<users::by_email::ResetPasswordV1>(),
    route::<users::profile::V1>(),
    route::<users::register_identifier::V1>(),
    route::<users::link_identifier::V2>(),
    // Savings plans
    route::<trading::dca::list::V2>(),
    route::<trading::dca::update::V2>(),
    // Selling
    route::<trading::sell::confirm::V1>(),
    route::<trading::sell::orders::ListV1>(),
    route::<trading::sell::orders::ReadV1>(),
    route::<trading::sell::onboarding::CreateV2>(),
    route::<trading::sell::onboarding::VerifyV2>(),
    // Webhooks and the sandbox
    route::<notify::events::list::V2>(),
    route::<notify::events::redeliver::V2>(),
    route::<notify::webhooks::register::V2>(),
    route::<notify::webhooks::list::V2>(),
    route::<notify::webhooks::remove::V2>(),
    route::<operate::sandbox::order_event::V2>(),
    route::<operate::sandbox::sell_order_event::V2>(),
    route::<operate::sandbox::scenarios::V2>(),
    route::<operate::sandbox::signature::V2>(),
    // The service itself
    route::<operate::system::errors::V2>(),
    route::<operate::system::openapi::Any>(),
];

/// Pages for people, served beside the API.
pub const PAGES: &[Route] = &[
    route::<trading::pay::Show>(),
    route::<trading::pay::Act>(),
    route::<trading::checkout::show::Show>(),
    route::<trading::sell::onboarding_page::Show>(),
    route::<trading::sell::onboarding_page::Act>(),
    route::<users::portal::join::Show>(),
    route::<users::portal::join::Submit>(),
    route::<users::portal::dashboard::Show>(),
    route::<users::portal::dashboard::Submit>(),
    route::<users::portal::verify_bank_account::Show>(),
    route::<users::portal::verify_bank_account::Submit>(),
    route::<users::reset_page::Show>(),
    route::<users::reset_page::Submit>(),
    route::<operate::system::docs::Show>(),
];

/// What stands at a method and path.
pub(crate) enum Found {
    /// An endpoint, with the decoded segments of its path.
    Endpoint(&'static Route, Vec<(&'static str, String)>),
    /// The path exists with these other methods.
    OtherMethods(Vec<&'static Method>),
    /// Nothing.
    Nothing,
}

/// Routes by path: the fixed ones by lookup, the others by trying those that begin as the path does.
struct Router {
    fixed: HashMap<&'static str, Vec<&'static Route>>,
    /// With what stands before the first `{name}`.
    patterns: Vec<(&'static str, &'static Route)>,
}

static ROUTER: LazyLock<Router> = LazyLock::new(|| {
    let mut router = Router { fixed: HashMap::new(), patterns: Vec::new() };
    for route in ENDPOINTS.iter().chain(PAGES) {
        match route.path.split_once('{') {
            Some((beginning, _)) => router.patterns.push((beginning, route)),
            None => router.fixed.entry(route.path).or_default().push(route),
        }
    }
    router
});

/// The endpoint at a method and path, if there is one.
pub fn lookup(method: &Method, path: &str) -> Option<&'static Route> {
    match find(method, path) {
        Found::Endpoint(route, _) => Some(route),
        _ => None,
    }
}

/// Looks up a method and path. `HEAD` finds what `GET` finds.
pub(crate) fn find(method: &Method, path: &str) -> Found {
    let method = if method == Method::HEAD { &Method::GET } else { method };
    let mut others = Vec::new();
    for route in ROUTER.fixed.get(path).into_iter().flatten() {
        if route.method == *method {
            return Found::Endpoint(route, Vec::new());
        }
        others.push(&route.method);
    }
    if !others.is_empty() {
        return Found::OtherMethods(others);
    }
    for (_, route) in ROUTER.patterns.iter().filter(|(beginning, _)| path.starts_with(beginning)) {
        if let Some(params) = segments(route.path, path) {
            if route.method == *method {
                return Found::Endpoint(route, params);
            }
            others.push(&route.method);
        }
    }
    if others.is_empty() { Found::Nothing } else { Found::OtherMethods(others) }
}

/// The decoded segments that stand for `{name}`, if the path has the pattern's form. A last
/// segment may be empty, so that its endpoint can say what is missing.
pub(crate) fn segments(pattern: &'static str, path: &str) -> Option<Vec<(&'static str, String)>> {
    let mut params = Vec::new();
    let mut segments = path.split('/');
    for expected in pattern.split('/') {
        let segment = segments.next()?;
        match expected.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
            Some(name) => {
                let text = percent_decode_str(segment).decode_utf8().ok()?;
                params.push((name, text.into_owned()));
            }
            None if expected == segment => {}
            None => return None,
        }
    }
    segments.next().is_none().then_some(params)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::platform::error::Code;

    #[test]
    fn no_method_and_path_stands_twice() {
        let mut seen = BTreeSet::new();
        for route in ENDPOINTS.iter().chain(PAGES) {
            assert!(seen.insert((route.method.as_str(), route.path)), "{route:?}");
        }
    }

    #[test]
    fn a_pattern_takes_one_decoded_segment() {
        let pattern = "/api/v2/buy/orders/{id}";
        let id = |path| segments(pattern, path).map(|params| params[0].1.clone());
        assert_eq!(id("/api/v2/buy/orders/a%20b").as_deref(), Some("a b"));
        assert_eq!(id("/api/v2/buy/orders/").as_deref(), Some(""));
        assert_eq!(id("/api/v2/buy/orders"), None);
        assert_eq!(id("/api/v2/buy/orders/1/timeline"), None);
    }

    #[test]
    fn declared_codes_are_in_the_catalogue_once() {
        for route in ENDPOINTS {
            let codes: BTreeSet<_> = route.errors.iter().collect();
            assert_eq!(codes.len(), route.errors.len(), "{route:?} declares a code twice");
            assert!(codes.iter().all(|code| Code::ALL.contains(code)));
        }
    }
}
