//! An API as it is served: from a method and path to the row of its table.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use bytes::Bytes;
use http::{HeaderValue, Method};
use percent_encoding::percent_decode_str;
use serde_json::Value;

use crate::endpoint::openapi::{Api, document};
use crate::endpoint::{Body, Route, text_amounts};
use crate::http::reply::entity_tag;
use crate::platform::error::Code;

/// The result of looking a method and path up.
#[derive(Debug)]
pub enum Found {
    /// An endpoint, with the decoded segments of its path.
    Endpoint(&'static Route, Vec<(&'static str, String)>),
    /// The path exists with these other methods.
    OtherMethods(Vec<&'static Method>),
    /// Nothing.
    Nothing,
}

/// The value of `Allow` for a path with these methods. `HEAD` is where `GET` is.
pub(crate) fn allow(methods: &[&Method]) -> String {
    let mut allow: Vec<&str> = methods.iter().map(|method| method.as_str()).collect();
    if allow.contains(&"GET") {
        allow.push("HEAD");
    }
    allow.sort_unstable();
    allow.join(", ")
}

impl Found {
    /// The endpoint alone.
    pub fn endpoint(self) -> Option<&'static Route> {
        match self {
            Self::Endpoint(route, _) => Some(route),
            Self::OtherMethods(_) | Self::Nothing => None,
        }
    }
}

/// The three APIs of an edge.
#[derive(Clone, Copy, Debug)]
pub struct ServedApis {
    /// The partners', served on the public listener.
    pub partners: &'static ServedApi,
    /// The operators', served on their listener.
    pub operators: &'static ServedApi,
    /// The connectors', served on their listener.
    pub connectors: &'static ServedApi,
}

/// An API with its router and its document.
#[derive(Debug)]
pub struct ServedApi {
    /// The rows of its table.
    pub endpoints: &'static [Route],
    router: Router,
    document: Value,
    /// The document with amounts as strings and its entity tag, made when it is asked for first.
    spelt_document: OnceLock<(Bytes, HeaderValue)>,
    /// Methods and paths of the operations whose answers may have amounts.
    with_amounts: HashSet<(&'static Method, &'static str)>,
}

impl ServedApi {
    /// Serves an API, and pages beside it that are no part of its document.
    pub fn new(api: &'static Api, pages: &'static [Route]) -> Self {
        let document = document(api);
        let has_amounts = |route: &&Route| text_amounts::are_declared(&document, route);
        let with_amounts = api.endpoints.iter().filter(has_amounts);
        Self {
            endpoints: api.endpoints,
            router: Router::new(api.endpoints.iter().chain(pages)),
            with_amounts: with_amounts.map(|route| (&route.method, route.path)).collect(),
            document,
            spelt_document: OnceLock::new(),
        }
    }

    /// Looks up a method and path. `HEAD` finds what `GET` finds.
    pub fn find(&self, method: &Method, path: &str) -> Found {
        self.router.find(method, path)
    }

    /// True if one of the API's own paths begins with the same segment, such as `api`; those of pages
    /// begin with others.
    pub(super) fn has_prefix_of(&self, path: &str) -> bool {
        self.endpoints.iter().any(|route| first_segment(route.path) == first_segment(path))
    }

    /// The bound of the body at a method and path, in bytes, and the code above it. Size is looked
    /// at before who calls (section 1.5 of the contract).
    pub fn body_bound(&self, method: &Method, path: &str) -> (usize, Code) {
        self.find(method, path).endpoint().map_or(Body::None, |route| route.body).bound()
    }

    /// `true` if answers of this operation may have amounts, or declare them.
    pub(super) fn has_amounts(&self, route: &Route) -> bool {
        self.with_amounts.contains(&(&route.method, route.path))
    }

    /// Its OpenAPI document.
    pub fn document(&self) -> &Value {
        &self.document
    }

    /// The text of the document that declares amounts as strings, and its entity tag.
    pub(super) fn spelt_document(&self) -> (Bytes, HeaderValue) {
        let made = || {
            let text = Bytes::from(text_amounts::spell_document(&self.document).to_string());
            (text.clone(), entity_tag(&text))
        };
        self.spelt_document.get_or_init(made).clone()
    }
}

fn first_segment(path: &str) -> Option<&str> {
    path.split('/').nth(1)
}

/// Routes by path: the fixed ones by lookup, the others by trying those that begin as the path does.
#[derive(Debug)]
struct Router {
    fixed: HashMap<&'static str, Vec<&'static Route>>,
    /// With what stands before the first `{name}`.
    patterns: Vec<(&'static str, &'static Route)>,
}

impl Router {
    /// The router of these routes.
    fn new(routes: impl Iterator<Item = &'static Route>) -> Self {
        let mut router = Self { fixed: HashMap::new(), patterns: Vec::new() };
        for route in routes {
            match route.path.split_once('{') {
                Some((beginning, _)) => router.patterns.push((beginning, route)),
                None => router.fixed.entry(route.path).or_default().push(route),
            }
        }
        router
    }

    /// Looks up a method and path. `HEAD` finds what `GET` finds.
    fn find(&self, method: &Method, path: &str) -> Found {
        let method = if method == Method::HEAD { &Method::GET } else { method };
        let mut others = Vec::new();
        for route in self.fixed.get(path).into_iter().flatten() {
            if route.method == *method {
                return Found::Endpoint(route, Vec::new());
            }
            others.push(&route.method);
        }
        if !others.is_empty() {
            return Found::OtherMethods(others);
        }
        let patterns = self.patterns.iter();
        for (_, route) in patterns.filter(|(beginning, _)| path.starts_with(beginning)) {
            if let Some(params) = segments(route.path, path) {
                if route.method == *method {
                    return Found::Endpoint(route, params);
                }
                // Without a name in it the path is unknown to other methods.
                if params.iter().all(|(_, segment)| !segment.is_empty()) {
                    others.push(&route.method);
                }
            }
        }
        if others.is_empty() { Found::Nothing } else { Found::OtherMethods(others) }
    }
}

/// The decoded segments that stand for `{name}`, if the path has the pattern's form. A last
/// segment may be empty, so that its endpoint can say what is missing.
fn segments(pattern: &'static str, path: &str) -> Option<Vec<(&'static str, String)>> {
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
    use super::*;
    use crate::endpoint::{example, route};

    #[test]
    fn the_endpoint_that_the_readme_shows_is_a_row() {
        let row = route::<example::V2>();
        assert_eq!((row.method, row.path), (Method::GET, "/api/v2/client/mode"));
        assert!(row.client && row.scope.is_some());
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
}
