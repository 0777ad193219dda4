//! The error envelope of the partners' API (section 1.5 of the contract).

use serde_json::{Map, Value, json};

use crate::Core;
use crate::http::reply::Reply;
use crate::platform::error::{Chain, Code, Error, Refusal, Violation};
use crate::platform::telemetry::TraceScope;

impl Refusal {
    fn reply(&self) -> Reply {
        let mut errors = Map::new();
        for violation in self.violations() {
            errors.insert(violation.code.as_str().to_owned(), violation.member());
        }
        let body = json!({ "errors": Value::Object(errors) }).to_string();
        let mut reply = Reply::with_body(self.status(), "application/json", body.into());
        reply.codes = self.codes().collect();
        reply.by_sender = self.by_sender();
        self.set_headers(&mut reply);
        reply
    }

    /// Sets the headers that say when to try again, and which rate limit ran out.
    pub fn set_headers(&self, reply: &mut Reply) {
        if let Some(seconds) = self.retry_after_seconds() {
            reply.set("retry-after", seconds.to_string());
        }
        if let Some(ran_out) = self.rate_limit() {
            reply.set_rate_limits(&[ran_out]);
        }
    }
}

/// The codes of an envelope, in its order; none of another body.
pub(crate) fn codes_of(body: &[u8]) -> Vec<Code> {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let names = body["errors"].as_object().into_iter().flat_map(Map::keys);
    names.filter_map(|name| Code::from_name(name)).collect()
}

impl Code {
    /// The place with its cause and cure, relative to the public URL.
    pub(crate) fn documentation(self) -> String {
        format!("/docs/errors#{}", self.as_str())
    }
}

impl Violation {
    /// The violation as a member of the envelope.
    fn member(&self) -> Value {
        let (code, text) = (self.code.as_str(), self.code.solution());
        let solution = match (self.field, &self.detail) {
            (Some(field), Some(detail)) => format!("{text} ({field}: {detail})"),
            (Some(field), None) => format!("{text} ({field})"),
            (None, Some(detail)) => format!("{text} ({detail})"),
            (None, None) => text.to_owned(),
        };
        let mut member = json!({
            "code": code,
            "message": self.code.message(),
            "solution": solution,
            "documentation": self.code.documentation(),
        });
        if let Some(field) = self.field {
            member["field"] = field.into();
        }
        member
    }
}

impl Core {
    /// The reply to the partner, as [`Error::reply`] makes it. A used up share is logged as well.
    pub fn reply_to(&self, error: &Error, request_id: &str) -> Reply {
        self.log_used_up_share(error, request_id);
        error.reply(request_id)
    }

    /// Logs that a sender has used up its own share, if the error says so: once a second at most,
    /// because it goes on asking.
    pub(super) fn log_used_up_share(&self, error: &Error, request_id: &str) {
        let Error::Failed(failure) = error else { return };
        if !failure.by_sender() {
            return;
        }
        let now_ms = self.clock.monotonic_ms();
        let Some(not_logged) = self.used_up_shares.try_log(now_ms, false) else { return };
        let (doing, cause) = (failure.doing, Chain(failure));
        let trace_id = TraceScope::current().trace_id();
        tracing::warn!(
            request_id,
            trace_id,
            doing,
            %cause,
            not_logged,
            "a sender has used up its share"
        );
    }
}

impl Error {
    /// The reply to the partner. The cause of a failure of ours is logged here, once; that of a used up
    /// share by [`Core::reply_to`].
    pub fn reply(&self, request_id: &str) -> Reply {
        let trace_id = || TraceScope::current().trace_id();
        match self {
            Self::Refused(refusal) => refusal.reply(),
            Self::Denied(denial) => {
                tracing::error!(
                    request_id,
                    trace_id = trace_id(),
                    %denial,
                    "an operators' refusal on the partners' API"
                );
                Self::from(Code::GeneralError).reply(request_id)
            }
            Self::Failed(failure) => {
                if !failure.by_sender() {
                    let (doing, cause) = (failure.doing, Chain(failure));
                    tracing::error!(request_id, trace_id = trace_id(), doing, %cause, "failed");
                }
                failure.refusal().reply()
            }
        }
    }
}
