//! `POST /admin/v1/screenings/{id}/decision`

use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::{ID, Screening, example, find, id};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Shape};
use crate::endpoint::{Body, Endpoint, Json};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::money::connectors::screening::{Decision, cleared, screen_changed};
use crate::operate::admin::line;
use crate::operate::admin::operator::Operator;
use crate::platform::error::{Denial, Result};
use rampart_types::UserKey;

/// `POST /admin/v1/screenings/{id}/decision`
pub struct DecideScreening;

impl Endpoint for DecideScreening {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/admin/v1/screenings/{id}/decision";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const ROLES: &'static [Role] = &[Role::Compliance];
    const RETRIED: bool = true;
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Decide about a screening",
        details: "`clear` lets the coins leave that wait for it alone, at once; `block` holds them \
                  until another decision, also if the user changes its name or country; those that \
                  were taken meanwhile are screened once it is cleared. What the provider says \
                  afterwards changes nothing. 409 if it is decided so already.",
        path: &[ID],
        body: Shape::of::<NewDecision>(),
        request: r#"{"decision": "clear", "reason": "another person of this name"}"#,
        answer: example!(),
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = (Uuid, NewDecision);
    type Response = Json<Screening>;

    fn read(input: &Input, _: &Operator) -> Result<(Uuid, NewDecision)> {
        let decision: NewDecision = strict::body(input)?;
        line::check("reason", &decision.reason)?;
        Ok((id(input.param("id"))?, decision))
    }

    async fn call(
        core: &Core,
        operator: Operator,
        (id, NewDecision { decision, reason }): (Uuid, NewDecision),
    ) -> Result<Json<Screening>> {
        let (actor, target) = (operator.actor(), id.to_string());
        let decision = decision.decision();
        let mut tx = core.db.begin().await?;
        let decided = sqlx::query!(
            r#"
            with before as (
                -- the user has taken another name or country after the operator's block; an
                -- earlier edge has moved created_at then
                select client_id, screening_id, state = 'block' and decided_by is not null
                    and coalesce(decided_at < created_at, true) as is_outdated
                from screening where screening_id = $1 for update
            )
            update screening s set state = $2, decided_by = $3, decision_reason = $4,
                decided_at = rampart_now()
            from before b
            where s.client_id = b.client_id and s.screening_id = b.screening_id
                and (s.state <> $2 or s.decided_by is null or s.decided_at is null)
            returning s.client_id, s.order_id, s.user_id, b.is_outdated as "is_outdated!"
            "#,
            id,
            decision.as_str(),
            actor,
            reason,
        )
        .fetch_optional(&mut *tx)
        .await?;
        let Some(subject) = decided else {
            tx.rollback().await?;
            find(core, id).await?;
            return Err(Denial::conflict("the screening has this decision already").into());
        };
        if decision == Decision::Clear {
            let client = subject.client_id.into();
            if let Some(user) = subject.user_id.filter(|_| subject.is_outdated) {
                let key = UserKey { client, user: user.into() };
                screen_changed(&mut tx, core, key).await?;
            }
            cleared(&mut tx, core, client, subject.order_id, subject.user_id).await?;
        }
        let detail = json!({ "decision": decision.as_str(), "reason": reason });
        operator.record(&mut tx, core, "screening.decide", &target, detail).await?;
        tx.commit().await?;
        Ok(Json(find(core, id).await?))
    }
}

/// An operator's decision.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[schemars(rename = "ScreeningDecision")]
#[serde(deny_unknown_fields)]
pub struct NewDecision {
    /// The decision.
    decision: Name,
    /// For the audit, 1 to 255 characters.
    reason: String,
}

/// An operator's decision on a screening.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, Serialize)]
#[schemars(rename = "ScreeningDecisionName")]
#[serde(rename_all = "lowercase")]
enum Name {
    Clear,
    Block,
}

impl Name {
    const fn decision(self) -> Decision {
        match self {
            Self::Clear => Decision::Clear,
            Self::Block => Decision::Block,
        }
    }
}
