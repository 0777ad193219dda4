//! The error envelope of the partners' API (section 1.5 of the contract).

use serde_json::{Map, Value, json};

use crate::http::reply::Reply;
use crate::platform::error::{Chain, Code, Error, Refusal};

impl Refusal {
    fn reply(&self) -> Reply {
        let mut errors = Map::new();
        for (code, detail) in self.violations() {
            let solution = match detail {
                Some(detail) => format!("{} ({detail})", code.solution()),
                None => code.solution().to_owned(),
            };
            errors.insert(
                code.as_str().to_owned(),
                json!({"code": code.as_str(), "message": code.message(), "solution": solution}),
            );
        }
        let body = json!({ "errors": Value::Object(errors) }).to_string();
        let mut reply = Reply::with_body(self.status(), "application/json", body.into());
        reply.codes = self.codes().collect();
        if let Some(seconds) = self.retry_after_seconds() {
            reply.set("retry-after", &seconds.to_string());
        }
        reply
    }
}

impl Error {
    /// The reply to the partner. The cause of a failure is logged here, once.
    pub fn reply(&self, request_id: &str) -> Reply {
        match self {
            Self::Refused(refusal) => refusal.reply(),
            Self::Denied(denial) => {
                tracing::error!(request_id, %denial, "an operators' refusal on the partners' API");
                Self::from(Code::GeneralError).reply(request_id)
            }
            Self::Failed(failure) => {
                let doing = failure.doing;
                tracing::error!(request_id, doing, cause = %Chain(failure), "failed");
                failure.refusal().reply()
            }
        }
    }
}
