//! `GET /admin/v1/operator-keys`, `PUT` and `DELETE /admin/v1/operator-keys/{name}`

use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::NAME;
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Kind, Shape, optional};
use crate::endpoint::{Body, Endpoint, Json, NoContent};
use crate::http::fields::strict;
use crate::http::request::Input;
use crate::operate::admin::operator::Operator;
use crate::operate::admin::page::{Page, Part, limit};
use crate::platform::error::Result;
use crate::policies::operator_keys::{self, KEYS_MAX, NewOperatorKey, OperatorKey};
use crate::policies::statement::SignedChange;

/// `GET /admin/v1/operator-keys`
pub struct ListOperatorKeys;

impl Endpoint for ListOperatorKeys {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/operator-keys";
    const ROLES: &'static [Role] = Role::ALL;
    const DOC: Doc = Doc {
        summary: "List the operators' keys",
        details: "By name, at most 100.",
        query: &[
            optional("after", Kind::Text, "The last name of the page before."),
            limit(KEYS_MAX),
        ],
        answer: r#"[{"name": "alice", "publicKey": "-----BEGIN PUBLIC KEY-----…",
            "fingerprint": "9f86d081884c7d65", "createdBy": "admin",
            "createdAt": "2026-03-01T12:00:00Z"}]"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = Part;
    type Response = Page<OperatorKey>;

    fn read(input: &Input, _: &Operator) -> Result<Part> {
        Part::read(input, KEYS_MAX)
    }

    async fn call(core: &Core, _: Operator, part: Part) -> Result<Page<OperatorKey>> {
        part.of(operator_keys::list(core).await?, |key| key.name.clone())
    }
}

/// `PUT /admin/v1/operator-keys/{name}`
pub struct RegisterOperatorKey;

impl Endpoint for RegisterOperatorKey {
    const METHOD: Method = Method::PUT;
    const PATH: &'static str = "/admin/v1/operator-keys/{name}";
    const STATUSES: &'static [StatusCode] = &[StatusCode::CONFLICT];
    const ROLES: &'static [Role] = &[Role::Owner];
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Register an operator's key",
        details: "It signs manifests and changes of policies. A name has one key for good; another is \
                  409, and so is a key without the signature of another one where signatures are \
                  required.",
        path: &[NAME],
        body: Shape::of::<NewKey>(),
        request: r#"{"publicKey": "-----BEGIN PUBLIC KEY-----…"}"#,
        answer: r#"{"name": "alice"}"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = (String, NewKey);
    type Response = Json<Registered>;

    fn read(input: &Input, _: &Operator) -> Result<(String, NewKey)> {
        let key = strict::body(input)?;
        Ok((input.param("name").to_owned(), key))
    }

    async fn call(
        core: &Core,
        operator: Operator,
        (name, NewKey { public_key, signed }): (String, NewKey),
    ) -> Result<Json<Registered>> {
        let key = NewOperatorKey { name: &name, public_key: &public_key };
        operator_keys::register(core, operator.actor(), key, signed.as_ref()).await?;
        Ok(Json(Registered { name }))
    }
}

/// An operator's key to be registered.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "NewOperatorKey")]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct NewKey {
    /// A PEM `PUBLIC KEY` of Ed25519.
    public_key: String,
    /// A signed statement, where signatures are required.
    signed: Option<SignedChange>,
}

/// An operator's key that is registered.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "RegisteredKey")]
pub struct Registered {
    /// The key's name, which signatures give.
    name: String,
}

/// `DELETE /admin/v1/operator-keys/{name}`
pub struct RemoveOperatorKey;

impl Endpoint for RemoveOperatorKey {
    const METHOD: Method = Method::DELETE;
    const PATH: &'static str = "/admin/v1/operator-keys/{name}";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const ROLES: &'static [Role] = &[Role::Owner];
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Remove an operator's key",
        details: "Versions that it signed serve on; where a signature is required they cannot be \
                  activated again. 409 for the last key while a partner's policies must be signed, \
                  unless the settings have a root key.",
        path: &[NAME],
        body: Shape::of::<Removal>(),
        request: "{}",
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = (String, Removal);
    type Response = NoContent;

    fn read(input: &Input, _: &Operator) -> Result<(String, Removal)> {
        Ok((input.param("name").to_owned(), strict::body(input)?))
    }

    async fn call(
        core: &Core,
        operator: Operator,
        (name, Removal { signed }): (String, Removal),
    ) -> Result<NoContent> {
        operator_keys::remove(core, operator.actor(), &name, signed.as_ref()).await?;
        Ok(NoContent)
    }
}

/// The removal of a key.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "KeyRemoval")]
#[serde(deny_unknown_fields)]
pub struct Removal {
    /// A signed statement, where signatures are required.
    pub(super) signed: Option<SignedChange>,
}
