//! `POST /admin/v1/orders/{id}/wallet-proof`

use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::read::{EXAMPLE, Order};
use super::{FoundOrder, ID};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Shape};
use crate::endpoint::{Body, Endpoint, Json};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::operate::admin::line;
use crate::operate::admin::operator::Operator;
use crate::platform::error::{Denial, Result};
use crate::trading::quotes::Side;
use crate::trading::wallet_proof::{Proof, record};

/// `POST /admin/v1/orders/{id}/wallet-proof`
pub struct ProveWallet;

impl Endpoint for ProveWallet {
    const METHOD: Method = Method::POST;
    const PATH: &'static str = "/admin/v1/orders/{id}/wallet-proof";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const ROLES: &'static [Role] = &[Role::Compliance];
    const RETRIED: bool = true;
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Accept proof that an order's wallet is its user's",
        details: "For an unhosted wallet whose user has proven it by other means than a signed \
                  message. The coins leave at once unless the order waits for something else. 409 \
                  if it was proven before, the wallet is hosted, or the order is final or a sale.",
        path: &[ID],
        body: Shape::of::<NewProof>(),
        request: r#"{"reason": "a transfer of 0.00012345 BTC that we asked for has arrived from it"}"#,
        answer: EXAMPLE,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = (String, NewProof);
    type Response = Json<Order>;

    fn read(input: &Input, _: &Operator) -> Result<(String, NewProof)> {
        let proof: NewProof = strict::body(input)?;
        line::check("reason", &proof.reason)?;
        Ok((input.param("id").to_owned(), proof))
    }

    async fn call(
        core: &Core,
        operator: Operator,
        (id, NewProof { reason }): (String, NewProof),
    ) -> Result<Json<Order>> {
        let order = FoundOrder::find(core, &id).await?;
        let mut tx = core.db.begin().await?;
        let proof = Proof::Operator { name: operator.actor(), reason: &reason };
        let recorded = order.side == Side::Buy && record(&mut tx, core, order.key, proof).await?;
        if !recorded {
            tx.rollback().await?;
            return Err(Denial::conflict("the order needs no proof of its wallet").into());
        }
        let target = order.key.order.to_string();
        let detail = json!({ "reason": reason });
        operator.record(&mut tx, core, "order.wallet-proof", &target, detail).await?;
        tx.commit().await?;
        Ok(Json(order.detail(core).await?))
    }
}

/// An operator's act.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "NewWalletProof")]
#[serde(deny_unknown_fields)]
pub struct NewProof {
    /// The proof that was seen, for the audit: 1 to 255 characters.
    reason: String,
}
