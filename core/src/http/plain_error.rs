//! Errors of the APIs that are not for partners: `{"error":"…"}`.

use http::StatusCode;
use serde_json::json;

use crate::Core;
use crate::http::reply::Reply;
use crate::platform::error::{Denial, Error, Refusal, Violation};
use crate::platform::telemetry::TraceScope;

/// The reply to an error. A failure's cause is logged here, once.
pub fn reply(core: &Core, error: &Error, request_id: &str) -> Reply {
    match error {
        Error::Failed(failure) if !failure.by_sender() => {
            let trace_id = TraceScope::current().trace_id();
            tracing::error!(request_id, trace_id, %error, "a private call failed");
        }
        _ => core.log_used_up_share(error, request_id),
    }
    rendered(error)
}

fn rendered(error: &Error) -> Reply {
    match error {
        Error::Denied(denial) => denied(denial),
        Error::Refused(refusal) => {
            with_reason(StatusCode::UNPROCESSABLE_ENTITY, &sentences(refusal))
        }
        Error::Failed(failure) => {
            let refusal = failure.refusal();
            let reason = match refusal.by_sender() {
                true => "too many such calls are under way; try again later",
                false => "something went wrong on our side",
            };
            let mut reply = with_reason(refusal.status(), reason);
            reply.by_sender = refusal.by_sender();
            refusal.set_headers(&mut reply);
            reply
        }
    }
}

/// The reply to a denial.
pub fn denied(denial: &Denial) -> Reply {
    let mut reply = with_reason(denial.status(), denial.reason());
    denial.set_headers(&mut reply);
    reply
}

fn with_reason(status: StatusCode, reason: &str) -> Reply {
    let body = json!({ "error": reason }).to_string();
    Reply::with_body(status, "application/json", body.into())
}

impl Denial {
    /// Sets the headers that say which methods the path has, and when to try again.
    pub fn set_headers(&self, reply: &mut Reply) {
        if let Some(allow) = self.allow() {
            reply.set("allow", allow);
        }
        if let Some(seconds) = self.retry_after_seconds() {
            reply.set("retry-after", seconds.to_string());
        }
    }
}

/// The messages of a refusal's codes, each with its member and its detail.
fn sentences(refusal: &Refusal) -> String {
    let sentence = |Violation { code, field, detail }: &Violation| {
        let field = field.map_or_else(String::new, |field| format!("{field}: "));
        let detail = detail.as_ref().map_or_else(String::new, |detail| format!(" ({detail})"));
        format!("{field}{}{detail}", code.message())
    };
    refusal.violations().iter().map(sentence).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::error::Code;

    #[test]
    fn a_refusal_is_told_in_sentences_and_not_by_its_codes() {
        let error = Error::with_detail(Code::CurrencyPairUnknown, "BTC-XXX");
        let reply = rendered(&error);
        assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(&*reply.body, br#"{"error":"The currency pair is unknown. (BTC-XXX)"}"#);
    }

    #[test]
    fn a_caller_whose_share_is_in_use_is_not_told_of_a_failure_of_ours() {
        let reply = rendered(&Error::share_used_up("read"));
        let wanted = br#"{"error":"too many such calls are under way; try again later"}"#;
        assert_eq!((&*reply.body, reply.by_sender), (&wanted[..], true));
    }

    #[test]
    fn only_what_is_unavailable_says_when_to_try_again() {
        let denied = |status| Error::from(Denial::new(status, "not now"));
        for (error, status, is_told) in [
            (Error::unavailable("read"), 503, true),
            (Error::share_used_up("read"), 503, true),
            (denied(StatusCode::SERVICE_UNAVAILABLE), 503, true),
            (Error::invariant("read"), 500, false),
            (denied(StatusCode::CONFLICT), 409, false),
        ] {
            let reply = rendered(&error);
            assert_eq!(reply.status.as_u16(), status);
            assert_eq!(reply.headers.contains_key("retry-after"), is_told, "{status}");
        }
    }
}
