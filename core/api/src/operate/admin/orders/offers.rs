//! `POST /admin/v1/offers/{uuid}/expire`

use http::{Method, StatusCode};
use serde_json::json;
use uuid::Uuid;

use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Kind, required};
use crate::endpoint::{Endpoint, NoContent};
use crate::http::request::Input;
use crate::operate::admin::operator::Operator;
use crate::platform::error::{Denial, Result};

/// `POST /admin/v1/offers/{uuid}/expire`
pub struct ExpireOffer;

impl Endpoint for ExpireOffer {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/admin/v1/offers/{uuid}/expire";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const ROLES: &'static [Role] = &[Role::Support, Role::Treasury];
    const DOC: Doc = Doc {
        summary: "End an offer now",
        details: "An offer that is confirmed already is 409.",
        path: &[required("uuid", Kind::Format("uuid"), "The offer's id.")],
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Uuid;
    type Response = NoContent;

    fn read(input: &Input, _: &Operator) -> Result<Uuid> {
        input.param("uuid").parse().map_err(|_| Denial::not_found("offer").into())
    }

    async fn call(core: &Core, operator: Operator, offer: Uuid) -> Result<NoContent> {
        let client = sqlx::query_scalar!("select client_id from offer where offer_id = $1", offer)
            .fetch_optional(&core.db)
            .await?
            .ok_or_else(|| Denial::not_found("offer"))?;
        let mut tx = core.db.begin().await?;
        let ended = sqlx::query!(
            "update offer set expires_at = least(expires_at, $3) \
             where client_id = $1 and offer_id = $2 and confirmed_at is null",
            client,
            offer,
            core.clock.now(),
        )
        .execute(&mut *tx)
        .await?;
        if ended.rows_affected() == 0 {
            return Err(Denial::conflict("the offer is confirmed already").into());
        }
        let target = offer.to_string();
        operator.record(&mut tx, core, "offer.expire", &target, json!({})).await?;
        tx.commit().await?;
        Ok(NoContent)
    }
}
