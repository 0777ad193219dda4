//! Fault injection for the sandbox: a test client's request that is otherwise right is refused with
//! the error that its `X-Rampart-Scenario` names, such as `ER008`, or `ER999 503` for a code with
//! several statuses. It rehearses conditions that no client can bring about.

use http::{HeaderMap, HeaderName, StatusCode};

use super::Route;
use crate::auth::caller::Client;
use crate::platform::error::{Code, Error};

/// Header that names the error.
pub const SCENARIO: HeaderName = HeaderName::from_static("x-rampart-scenario");

/// The error that a test client asks for. A live client's header has no meaning.
pub(super) fn wanted(route: &Route, client: Option<&Client>, headers: &HeaderMap) -> Option<Error> {
    client.filter(|client| client.tenant.is_test())?;
    let text = headers.get(SCENARIO)?.to_str().unwrap_or_default();
    let fault = parse(text).filter(|(code, status)| may_answer(route, *code, *status));
    Some(match fault {
        Some((code, status)) => Error::simulated(code, status),
        None => Error::with_detail(
            Code::RequestMalformed,
            "X-Rampart-Scenario names no error of this endpoint",
        ),
    })
}

/// A code and its status, from `ER008` or `ER999 503`.
pub fn parse(text: &str) -> Option<(Code, StatusCode)> {
    let (name, status) = match text.split_once(' ') {
        Some((name, status)) => (name, Some(status)),
        None => (text, None),
    };
    let code = Code::from_name(name)?;
    let status = match status {
        Some(status) => status.parse().ok()?,
        None => StatusCode::from_u16(code.status()).ok()?,
    };
    Some((code, status))
}

/// True if the endpoint declares the code, with this status.
fn may_answer(route: &Route, code: Code, status: StatusCode) -> bool {
    let status = status.as_u16();
    let is_unavailable = (status, code) == (503, Code::GeneralError);
    route.declares(code)
        && (status == code.status() || is_unavailable || route.doc.also.contains(&(status, code)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_named_by_its_code_and_its_status() {
        let parsed = |text| parse(text).map(|(code, status)| (code.as_str(), status.as_u16()));
        assert_eq!(parsed("ER008"), Some(("ER008", 400)));
        assert_eq!(parsed("ER999 503"), Some(("ER999", 503)));
        for text in ["", "ER000", "er008", "ER008 ", "ER008 x", "ER008 99", "ER008  400"] {
            assert_eq!(parsed(text), None, "{text:?}");
        }
    }
}
