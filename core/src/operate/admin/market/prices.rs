//! `PUT /admin/v1/prices/{pair}`

use chrono::{DateTime, Utc};
use http::{Method, StatusCode};
use rust_decimal::Decimal;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{PAIR, pair, publish};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Shape};
use crate::endpoint::{Body, Endpoint, Json};
use crate::http::fields::strict;
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::operate::admin::approvals;
use crate::operate::admin::operator::Operator;
use crate::platform::audit::Entry;
use crate::platform::error::{Denial, Error, Result};
use rampart_types::{JsonDecimal, PairCode};

/// `PUT /admin/v1/prices/{pair}`
pub struct SetPrice;

impl Endpoint for SetPrice {
    const METHOD: Method = Method::PUT;
    const PATH: &'static str = "/admin/v1/prices/{pair}";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND];
    const ROLES: &'static [Role] = &[Role::Treasury];
    const APPROVAL: bool = true;
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Set the price of a pair",
        details: "Sets the mid price. It does not age, unless the pair has a `priceMaxAgeSeconds`.",
        path: &[PAIR],
        body: Shape::of::<NewPrice>(),
        request: r#"{"price": 51234.56}"#,
        answer: r#"{"pair": "BTC-EUR", "price": 51234.56, "observedAt": "2026-03-01T12:00:00Z"}"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = (PairCode, Decimal);
    type Response = Json<Price>;

    fn read(input: &Input, _: &Operator) -> Result<(PairCode, Decimal)> {
        let NewPrice { price: JsonDecimal(price) } = strict::body(input)?;
        if price <= Decimal::ZERO {
            return Err(Denial::unprocessable("price: above zero").into());
        }
        Ok((pair(input)?, price))
    }

    async fn hold(
        core: &Core,
        input: &Input,
        operator: &Operator,
        _: &(PairCode, Decimal),
    ) -> Result<Option<Reply>> {
        approvals::hold::<Self>(core, input, operator).await
    }

    async fn call(
        core: &Core,
        operator: Operator,
        (pair, price): (PairCode, Decimal),
    ) -> Result<Json<Price>> {
        let now = core.clock.now();
        let mut tx = core.db.begin().await?;
        sqlx::query!(
            "insert into price (pair, price, fixed, observed_at) values ($1, $2, true, $3) \
             on conflict (pair) do update set price = $2, fixed = true, observed_at = $3",
            pair.to_string(),
            price,
            now,
        )
        .execute(&mut *tx)
        .await
        .map_err(|error| {
            match error.as_database_error().is_some_and(|e| e.is_foreign_key_violation()) {
                true => Denial::not_found("pair").into(),
                false => Error::from(error),
            }
        })?;
        let entry = Entry {
            actor: operator.actor(),
            action: "price.set",
            target: &pair.to_string(),
            detail: json!({"price": JsonDecimal(price)}),
        };
        publish(core, tx, entry).await?;
        Ok(Json(Price { pair, price: JsonDecimal(price), observed_at: now }))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NewPrice {
    /// The mid price, above zero.
    price: JsonDecimal,
}

/// The price of a pair.
#[derive(Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Price {
    pair: PairCode,
    price: JsonDecimal,
    observed_at: DateTime<Utc>,
}
