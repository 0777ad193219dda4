//! `POST` and `DELETE /admin/v1/reviews/{subject}/{id}/claim`

use http::{Method, StatusCode};
use serde_json::json;

use super::{REVIEWERS, Review, SUBJECTS, example, find};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Kind, Member, required};
use crate::endpoint::{Endpoint, Json, NoContent};
use crate::http::request::Input;
use crate::operate::admin::operator::Operator;
use crate::platform::error::{Denial, Result};

/// Time that a claim lasts, in seconds; its operator can claim again.
const CLAIM_SECONDS: i32 = 30 * 60;
const PATH: &str = "/admin/v1/reviews/{subject}/{id}/claim";
const PATH_MEMBERS: &[Member] = &[
    required("subject", Kind::OneOf(&SUBJECTS), "A user or an order."),
    required("id", Kind::Text, "The user's uuid or the order's number."),
];

/// `POST /admin/v1/reviews/{subject}/{id}/claim`
pub struct ClaimReview;

impl Endpoint for ClaimReview {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = PATH;
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const ROLES: &'static [Role] = REVIEWERS;
    const DOC: Doc = Doc {
        summary: "Claim a user or an order of the review queue",
        details: "For half an hour, or another one when it is claimed again. 409 while another \
                  operator has it; nobody is kept from deciding about it.",
        path: PATH_MEMBERS,
        answer: example!(),
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Subject;
    type Response = Json<Review>;

    fn read(input: &Input, _: &Operator) -> Result<Subject> {
        Subject::read(input)
    }

    async fn call(core: &Core, operator: Operator, subject: Subject) -> Result<Json<Review>> {
        let mut review = subject.find(core).await?;
        let actor = operator.actor();
        let mut tx = core.db.begin().await?;
        let claimed = sqlx::query!(
            "insert into review_claim as r \
                 (client_id, subject, id, operator, claimed_at, expires_at) \
             values ($1, $2, $3, $4, rampart_now(), \
                 rampart_now() + make_interval(secs => $5::int)) \
             on conflict (client_id, subject, id) do update set operator = excluded.operator, \
                 claimed_at = excluded.claimed_at, expires_at = excluded.expires_at \
             where r.expires_at <= rampart_now() or r.operator = excluded.operator \
             returning expires_at",
            review.client.uuid(),
            review.subject,
            review.id,
            actor,
            CLAIM_SECONDS,
        )
        .fetch_optional(&mut *tx)
        .await?;
        let Some(claimed) = claimed else {
            tx.rollback().await?;
            return Err(Denial::conflict("another operator has claimed it").into());
        };
        let detail = json!({ "subject": review.subject, "reasons": review.reasons });
        operator.record(&mut tx, core, "review.claim", &review.id, detail).await?;
        tx.commit().await?;
        review.claimed_by = Some(actor.to_owned());
        review.claimed_until = Some(claimed.expires_at);
        Ok(Json(review))
    }
}

/// `DELETE /admin/v1/reviews/{subject}/{id}/claim`
pub struct ReleaseReview;

impl Endpoint for ReleaseReview {
    const METHOD: Method = Method::DELETE;
    const PATH: &'static str = PATH;
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const ROLES: &'static [Role] = REVIEWERS;
    const DOC: Doc = Doc {
        summary: "Give a claim back",
        details: "One of one's own; 409 without one.",
        path: PATH_MEMBERS,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Subject;
    type Response = NoContent;

    fn read(input: &Input, _: &Operator) -> Result<Subject> {
        Subject::read(input)
    }

    async fn call(core: &Core, operator: Operator, subject: Subject) -> Result<NoContent> {
        let review = subject.find(core).await?;
        let actor = operator.actor();
        let mut tx = core.db.begin().await?;
        let released = sqlx::query!(
            "delete from review_claim where client_id = $1 and subject = $2 and id = $3 \
                 and operator = $4 and expires_at > rampart_now()",
            review.client.uuid(),
            review.subject,
            review.id,
            actor,
        )
        .execute(&mut *tx)
        .await?;
        if released.rows_affected() == 0 {
            tx.rollback().await?;
            return Err(Denial::conflict("you have not claimed this review").into());
        }
        let detail = json!({ "subject": review.subject });
        operator.record(&mut tx, core, "review.release", &review.id, detail).await?;
        tx.commit().await?;
        Ok(NoContent)
    }
}

/// The user or order that the path names.
#[derive(Debug)]
pub struct Subject {
    kind: String,
    id: String,
}

impl Subject {
    fn read(input: &Input) -> Result<Self> {
        let (kind, id) = (input.param("subject").to_owned(), input.param("id").to_owned());
        if !SUBJECTS.contains(&&*kind) {
            return Err(Denial::not_found("kind of review").into());
        }
        Ok(Self { kind, id })
    }

    async fn find(&self, core: &Core) -> Result<Review> {
        let found = find(core, &self.kind, &self.id).await?;
        found.ok_or_else(|| Denial::not_found("review").into())
    }
}
