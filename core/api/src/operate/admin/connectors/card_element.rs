//! `PUT /admin/v1/connectors/{name}/card-element`

use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;
use sqlx::types::Json as JsonColumn;

use super::{NAME, check_known};
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Shape};
use crate::endpoint::{Body, Endpoint, Json};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::money::connectors::card_element::CardElement;
use crate::operate::admin::operator::Operator;
use crate::platform::error::{Denial, Result};

const EXAMPLE: &str = r#"{"cardElement": {"scriptUrl": "https://js.stripe.com/v3/",
    "publicKey": "pk_live_51H8b",
    "origins": ["https://api.stripe.com", "https://hooks.stripe.com"]}}"#;

/// `PUT /admin/v1/connectors/{name}/card-element`
pub struct PutCardElement;

impl Endpoint for PutCardElement {
    const METHOD: Method = Method::PUT;
    const PATH: &'static str = "/admin/v1/connectors/{name}/card-element";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND];
    const ROLES: &'static [Role] = &[Role::Platform];
    const APPROVAL: bool = true;
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Set a connector's card form",
        details: "The provider's form for cards, shown on the pay page of orders whose \
                  `payment.create` this connector answers with a `clientToken`. Its script runs on \
                  that page and on no other, and may call and frame its own origin and `origins` \
                  alone. Null takes it away. Pages follow at once.",
        path: &[NAME],
        body: Shape::of::<CardForm>(),
        request: EXAMPLE,
        answer: EXAMPLE,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = (String, CardForm);
    type Response = Json<CardForm>;

    fn read(input: &Input, _: &Operator) -> Result<(String, CardForm)> {
        let form: CardForm = strict::body(input)?;
        let checked = form.card_element.as_ref().map_or(Ok(()), CardElement::check);
        checked.map_err(|reason| Denial::unprocessable(format!("cardElement.{reason}")))?;
        Ok((input.param("name").to_owned(), form))
    }

    async fn needs_approval(
        core: &Core,
        _: &Operator,
        (name, _): &(String, CardForm),
    ) -> Result<bool> {
        check_known(core, name).await?;
        Ok(true)
    }

    async fn call(
        core: &Core,
        operator: Operator,
        (name, form): (String, CardForm),
    ) -> Result<Json<CardForm>> {
        let mut tx = core.db.begin().await?;
        let updated = sqlx::query!(
            "update connector set card_element = $2 where name = $1",
            name,
            form.card_element.as_ref().map(JsonColumn) as Option<JsonColumn<&CardElement>>,
        )
        .execute(&mut *tx)
        .await?;
        if updated.rows_affected() == 0 {
            return Err(Denial::not_found("connector").into());
        }
        let detail = json!({ "cardElement": form.card_element });
        operator.record(&mut tx, core, "connector.card_element", &name, detail).await?;
        tx.commit().await?;
        Ok(Json(form))
    }
}

/// A connector's form for cards.
#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[schemars(rename = "ConnectorCardForm")]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct CardForm {
    /// Null for none; never left out.
    #[serde(deserialize_with = "Option::deserialize")]
    card_element: Option<CardElement>,
}
