//! Errors of the APIs that are not for partners: `{"error":"…"}`.

use http::StatusCode;
use serde_json::json;

use crate::http::reply::Reply;
use crate::platform::error::{Denial, Error, Refusal, Violation};

/// The reply to an error. A failure's cause is logged here, once.
pub(crate) fn reply(error: &Error) -> Reply {
    let (status, reason) = match error {
        Error::Denied(denial) => (denial.status(), denial.reason().to_owned()),
        Error::Refused(refusal) => (StatusCode::UNPROCESSABLE_ENTITY, sentences(refusal)),
        Error::Failed(failure) => {
            tracing::error!(%error, "a private call failed");
            let status = if failure.unavailable {
                StatusCode::SERVICE_UNAVAILABLE
            } else {
                StatusCode::INTERNAL_SERVER_ERROR
            };
            (status, "something went wrong on our side".to_owned())
        }
    };
    let body = json!({ "error": reason }).to_string();
    let mut reply = Reply::with_body(status, "application/json", body.into());
    if let Error::Denied(denial) = error {
        denial.set_headers(&mut reply);
    }
    reply
}

impl Denial {
    /// Sets the headers that say which methods the path has, and when to try again.
    pub(crate) fn set_headers(&self, reply: &mut Reply) {
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
        let reply = reply(&error);
        assert_eq!(reply.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert_eq!(&*reply.body, br#"{"error":"The currency pair is unknown. (BTC-XXX)"}"#);
    }
}
