//! `PUT` and `DELETE /admin/v1/partners/{slug}/verification-keys/{name}`

use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::NAME;
use crate::Core;
use crate::endpoint::openapi::doc::{Doc, Shape};
use crate::endpoint::{Body, Endpoint, Json, NoContent};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::operate::admin::operator::Operator;
use crate::operate::admin::partners::{self, SLUG};
use crate::platform::crypto::Secret;
use crate::platform::error::Result;
use crate::policies::keys;

/// `PUT /admin/v1/partners/{slug}/verification-keys/{name}`
pub struct PutVerificationKey;

impl Endpoint for PutVerificationKey {
    const METHOD: Method = Method::PUT;
    const PATH: &'static str = "/admin/v1/partners/{slug}/verification-keys/{name}";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Set a verification key of a partner",
        details: "A `signature` policy of the partner may name it.",
        path: &[SLUG, NAME],
        body: Shape::of::<Key>(),
        request: r#"{"algorithm": "hmac-sha256", "key": "c2VjcmV0IG9mIHRoZSBwYXJ0bmVyIGhlcmU="}"#,
        answer: r#"{"name": "shop", "algorithm": "hmac-sha256"}"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = (String, String, Key);
    type Response = Json<KeySet>;

    fn read(input: &Input, _: &Operator) -> Result<(String, String, Key)> {
        let key = strict::body(input)?;
        Ok((input.param("slug").to_owned(), input.param("name").to_owned(), key))
    }

    async fn call(
        core: &Core,
        operator: Operator,
        (slug, name, Key { algorithm, key }): (String, String, Key),
    ) -> Result<Json<KeySet>> {
        let (client, _) = partners::find(core, &slug).await?;
        keys::put(core, operator.actor(), (client, &slug), &name, (&algorithm, &key)).await?;
        Ok(Json(KeySet { name, algorithm }))
    }
}

/// A verification key to be set.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "NewVerificationKey")]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// An algorithm of the policies' WIT, such as `ed25519`.
    algorithm: String,
    /// PEM, or base64 for HMAC.
    #[schemars(with = "String")]
    key: Secret,
}

/// A verification key that is set.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "VerificationKey")]
pub struct KeySet {
    name: String,
    algorithm: String,
}

/// `DELETE /admin/v1/partners/{slug}/verification-keys/{name}`
pub struct DeleteVerificationKey;

impl Endpoint for DeleteVerificationKey {
    const METHOD: Method = Method::DELETE;
    const PATH: &'static str = "/admin/v1/partners/{slug}/verification-keys/{name}";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const DOC: Doc = Doc {
        summary: "Delete a verification key of a partner",
        details: "Policies that name it fail from then on.",
        path: &[SLUG, NAME],
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = (String, String);
    type Response = NoContent;

    fn read(input: &Input, _: &Operator) -> Result<(String, String)> {
        Ok((input.param("slug").to_owned(), input.param("name").to_owned()))
    }

    async fn call(
        core: &Core,
        operator: Operator,
        (slug, name): (String, String),
    ) -> Result<NoContent> {
        let (client, _) = partners::find(core, &slug).await?;
        keys::delete(core, operator.actor(), (client, &slug), &name).await?;
        Ok(NoContent)
    }
}
