//! An order's decisions made again: the same component with the same configuration, asked the same
//! question, must give the same answer for the same fuel.

use std::sync::Arc;

use rampart_plugins::contract::{CallContext, PolicyKind};
use serde::Deserialize;
use serde_json::{Value, json};

use super::ask::{Ask, open_payload};
use super::dry_run::Subject;
use super::dry_run::question::Question;
use super::lifecycle::{NotDone, Target};
use crate::Core;
use crate::platform::error::Error;
use rampart_types::ClientId;

/// A decision as it was kept. The host's own, such as a clamped built-in fee, is none.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Decision {
    kind: String,
    version: i64,
    digest: String,
    rule: String,
    fuel: u64,
    answer: Option<String>,
    now: Option<u32>,
    request_id: Option<String>,
    input: Option<Value>,
}

/// What policies decided about an order, and what they decide now. A signature is judged with the
/// keys that the partner has today.
///
/// # Errors
/// When the database cannot be read, or a payload cannot be opened.
pub(crate) async fn replay(
    core: &Core,
    (client, slug): (ClientId, &str),
    decisions: &Value,
) -> Result<Value, NotDone> {
    let mut replayed = Vec::new();
    for kept in decisions.as_array().into_iter().flatten() {
        let Ok(decision) = Decision::deserialize(kept) else { continue };
        let Some(kind) = PolicyKind::from_name(&decision.kind) else { continue };
        let target = Target { actor: "", slug, client, kind, reason: None };
        replayed.push(decision.again(core, target).await?);
    }
    let same = replayed.iter().all(|decision| decision["same"] == true);
    Ok(json!({"same": same, "decisions": replayed}))
}

impl Decision {
    async fn again(self, core: &Core, target: Target<'_>) -> Result<Value, NotDone> {
        let shown = |same: bool, now: Value| {
            json!({
                "kind": self.kind,
                "version": self.version,
                "digest": self.digest,
                "same": same,
                "then": {"rule": self.rule, "fuel": self.fuel, "answer": self.answer},
                "now": now,
            })
        };
        let (Some(input), Some(now), Some(request_id)) = (&self.input, self.now, &self.request_id)
        else {
            return Ok(shown(false, json!({"failure": "the question was not kept"})));
        };
        let question = question(core, target, input)?;
        let subject = Subject::find(core, target, Some(self.version)).await?;
        if subject.digest() != self.digest {
            return Err(Error::broken("find the component that decided").into());
        }
        let context = CallContext {
            partner: target.slug.to_owned(),
            request_id: request_id.clone(),
            now,
            rehearsal: true,
            attributes: Vec::new(),
        };
        let _place = core.policies.dry_run_permit().await?;
        let run = move || match &question {
            Question::Fee(question) => asked(&subject, question, &context),
            Question::MethodOrder(question) => asked(&subject, question, &context),
            Question::Signature(question) => asked(&subject, question, &context),
        };
        let now = tokio::task::spawn_blocking(run)
            .await
            .map_err(|error| Error::internal("run a policy", error))?;
        let same = now["answer"].is_string()
            && now["answer"].as_str() == self.answer.as_deref()
            && now["fuel"] == self.fuel;
        Ok(shown(same, now))
    }
}

fn question(core: &Core, target: Target<'_>, input: &Value) -> Result<Question, NotDone> {
    if target.kind == PolicyKind::Signature {
        let payload = open_payload(core, target.client, input.as_str().unwrap_or_default())?;
        return Ok(Question::Signature(payload));
    }
    let catalogue = Arc::clone(&core.snapshots.current().catalogue);
    let read = Question::read(target.kind, input.clone(), &catalogue);
    read.map_err(|_| Error::broken("read a question that was kept").into())
}

fn asked<Q: Ask>(subject: &Subject, question: &Q, context: &CallContext) -> Value {
    let Some(called) = subject.ask(question, context) else { return Value::Null };
    match called.outcome {
        Ok(answer) => json!({
            "rule": Q::rule(&answer),
            "fuel": called.fuel,
            "answer": Q::fingerprint(&answer),
            "decision": Q::answer_as_json(&answer),
        }),
        Err(failure) => json!({
            "fuel": called.fuel,
            "failure": format!("{}: {}", failure.kind.as_str(), failure.message),
        }),
    }
}
