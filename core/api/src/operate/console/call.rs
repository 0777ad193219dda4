//! Calls of the operators' API that actions make.

use http::Method;

/// The method of an action's call.
#[derive(Clone, Copy, Debug)]
pub(super) enum Verb {
    Post,
    Put,
    Patch,
    Delete,
}

impl Verb {
    pub(super) const fn method(self) -> Method {
        match self {
            Self::Post => Method::POST,
            Self::Put => Method::PUT,
            Self::Patch => Method::PATCH,
            Self::Delete => Method::DELETE,
        }
    }

    /// The call with this method of a path.
    pub(super) const fn call(self, path: &'static str) -> Call {
        Call { verb: self, path }
    }
}

/// A call of the operators' API.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    pub(super) verb: Verb,
    /// As the table of endpoints has it. The page's ids fill it.
    pub(super) path: &'static str,
}
