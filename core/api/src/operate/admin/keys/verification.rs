//! `GET /admin/v1/partners/{slug}/verification-keys`, `PUT` and `DELETE …/{name}`

use chrono::{DateTime, Utc};
use http::{Method, StatusCode};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::NAME;
use super::signing::Removal;
use crate::Core;
use crate::auth::roles::Role;
use crate::endpoint::openapi::doc::{Doc, Kind, Shape, optional};
use crate::endpoint::{Body, Endpoint, Json, NoContent};
use crate::http::fields::strict;
use crate::http::reply::Reply;
use crate::http::request::Input;
use crate::operate::admin::approvals::{self, Held};
use crate::operate::admin::operator::Operator;
use crate::operate::admin::page::{Page, Part, limit};
use crate::operate::admin::partners::{self, SLUG};
use crate::operate::admin::policies::needs_second;
use crate::platform::crypto::{Purpose, Secret};
use crate::platform::error::Result;
use crate::policies::keys::{self, KEYS_MAX, KeyTarget, ListedKey, NewKey};
use crate::policies::runtime::is_secret;
use crate::policies::statement::SignedChange;

/// `GET /admin/v1/partners/{slug}/verification-keys`
pub struct ListVerificationKeys;

impl Endpoint for ListVerificationKeys {
    const METHOD: Method = Method::GET;
    const PATH: &'static str = "/admin/v1/partners/{slug}/verification-keys";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND];
    const ROLES: &'static [Role] = Role::ALL;
    const DOC: Doc = Doc {
        summary: "List the verification keys of a partner",
        details: "By name, at most 100, without the keys.",
        path: &[SLUG],
        query: &[
            optional("after", Kind::Text, "The last name of the page before."),
            limit(KEYS_MAX),
        ],
        answer: r#"[{"name": "shop", "algorithm": "ed25519",
            "fingerprint": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            "notBefore": null, "notAfter": "2027-01-01T00:00:00Z",
            "createdAt": "2026-03-01T12:00:00Z"}]"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = (String, Part);
    type Response = Page<ListedKey>;

    fn read(input: &Input, _: &Operator) -> Result<(String, Part)> {
        Ok((input.param("slug").to_owned(), Part::read(input, KEYS_MAX)?))
    }

    async fn call(
        core: &Core,
        _: Operator,
        (slug, part): (String, Part),
    ) -> Result<Page<ListedKey>> {
        let (client, _) = partners::find(core, &slug).await?;
        part.of(keys::list(core, client).await?, |key| key.name.clone())
    }
}

/// `PUT /admin/v1/partners/{slug}/verification-keys/{name}`
pub struct PutVerificationKey;

impl Endpoint for PutVerificationKey {
    const METHOD: Method = Method::PUT;
    const PATH: &'static str = "/admin/v1/partners/{slug}/verification-keys/{name}";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const ROLES: &'static [Role] = &[Role::Platform];
    const APPROVAL: bool = true;
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Set a verification key of a partner",
        details: "A `signature` policy of the partner may name it. Takes two persons where the \
                  partner's policies do: the second one sees a public key, and of a secret a keyed \
                  digest alone. 409 without a signed statement where the partner's policies must \
                  be signed.",
        path: &[SLUG, NAME],
        body: Shape::of::<Key>(),
        request: r#"{"algorithm": "hmac-sha256", "key": "c2VjcmV0IG9mIHRoZSBwYXJ0bmVyIGhlcmU=",
            "notAfter": "2027-01-01T00:00:00Z"}"#,
        answer: r#"{"name": "shop", "algorithm": "hmac-sha256", "notBefore": null,
            "notAfter": "2027-01-01T00:00:00Z"}"#,
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = (String, String, Key);
    type Response = Json<KeySet>;

    fn read(input: &Input, _: &Operator) -> Result<(String, String, Key)> {
        let key = strict::body(input)?;
        Ok((input.param("slug").to_owned(), input.param("name").to_owned(), key))
    }

    async fn hold(
        core: &Core,
        input: &Input,
        operator: &Operator,
        (slug, name, key): &(String, String, Key),
    ) -> Result<Option<Reply>> {
        let algorithm = keys::check(name, key.to_store())?;
        if !needs_second(core, slug).await? {
            return Ok(None);
        }
        if !is_secret(algorithm) {
            return approvals::hold::<Self>(core, input, operator).await;
        }
        let without_secret = key.without_secret(core, input)?;
        let call = Held::of::<Self>(input, &[]);
        approvals::hold_as(core, &without_secret, call, operator).await
    }

    async fn call(
        core: &Core,
        operator: Operator,
        (slug, name, key): (String, String, Key),
    ) -> Result<Json<KeySet>> {
        let (client, _) = partners::find(core, &slug).await?;
        let target = KeyTarget {
            actor: operator.actor(),
            slug: &slug,
            client,
            name: &name,
            signed: key.signed.as_ref(),
            is_approved: operator.is_approved(),
            approval: operator.approval(),
        };
        keys::put(core, target, key.to_store()).await?;
        let Key { algorithm, not_before, not_after, .. } = key;
        Ok(Json(KeySet { name, algorithm, not_before, not_after }))
    }
}

/// A verification key to be set.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(rename = "NewVerificationKey")]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct Key {
    /// An algorithm of the policies' WIT, such as `ed25519`.
    algorithm: String,
    /// PEM, or base64 for HMAC.
    #[schemars(with = "String")]
    key: Secret,
    /// Signatures before it are refused.
    not_before: Option<DateTime<Utc>>,
    /// Signatures after it are refused.
    not_after: Option<DateTime<Utc>>,
    /// A signed statement, where signatures are required.
    signed: Option<SignedChange>,
}

impl Key {
    fn to_store(&self) -> NewKey<'_> {
        let Self { algorithm, key, not_before, not_after, .. } = self;
        NewKey { algorithm, key, not_before: *not_before, not_after: *not_after }
    }

    /// The call as it is kept and shown while it waits: with a keyed digest in place of the secret,
    /// which nobody can guess by it.
    ///
    /// # Errors
    /// Those of the key that digests it.
    fn without_secret(&self, core: &Core, input: &Input) -> Result<Input> {
        let message = format!("verification-key{}/{}", input.head.path, self.key.expose());
        let digest = core.keys.mac(Purpose::BlindIndex, message.as_bytes())?;
        Ok(input.with_document(json!({
            "algorithm": self.algorithm,
            "fingerprint": hex::encode(digest),
            "notBefore": self.not_before,
            "notAfter": self.not_after,
        })))
    }
}

/// A verification key that is set.
#[derive(Debug, JsonSchema, Serialize)]
#[schemars(rename = "VerificationKey")]
#[serde(rename_all = "camelCase")]
pub struct KeySet {
    /// The key's name, which the policy gives.
    name: String,
    /// The algorithm that it verifies.
    algorithm: String,
    /// From when it is valid; null: always was.
    not_before: Option<DateTime<Utc>>,
    /// Until when it is valid; null: it has no end.
    not_after: Option<DateTime<Utc>>,
}

/// `DELETE /admin/v1/partners/{slug}/verification-keys/{name}`
pub struct DeleteVerificationKey;

impl Endpoint for DeleteVerificationKey {
    const METHOD: Method = Method::DELETE;
    const PATH: &'static str = "/admin/v1/partners/{slug}/verification-keys/{name}";
    const STATUSES: &'static [StatusCode] = &[StatusCode::NOT_FOUND, StatusCode::CONFLICT];
    const ROLES: &'static [Role] = &[Role::Platform];
    const APPROVAL: bool = true;
    const BODY: Body = Body::StrictJson;
    const DOC: Doc = Doc {
        summary: "Delete a verification key of a partner",
        details: "Policies that name it fail from then on. Takes two persons where the partner's \
                  policies do. 409 without a signed statement where they must be signed.",
        path: &[SLUG, NAME],
        body: Shape::of::<Removal>(),
        request: "{}",
        ..Doc::NONE
    };
    type Caller = Operator;
    type Request = (String, String, Removal);
    type Response = NoContent;

    fn read(input: &Input, _: &Operator) -> Result<(String, String, Removal)> {
        let removal = strict::body(input)?;
        Ok((input.param("slug").to_owned(), input.param("name").to_owned(), removal))
    }

    async fn needs_approval(
        core: &Core,
        _: &Operator,
        (slug, ..): &(String, String, Removal),
    ) -> Result<bool> {
        needs_second(core, slug).await
    }

    async fn call(
        core: &Core,
        operator: Operator,
        (slug, name, Removal { signed }): (String, String, Removal),
    ) -> Result<NoContent> {
        let (client, _) = partners::find(core, &slug).await?;
        let target = KeyTarget {
            actor: operator.actor(),
            slug: &slug,
            client,
            name: &name,
            signed: signed.as_ref(),
            is_approved: operator.is_approved(),
            approval: operator.approval(),
        };
        keys::delete(core, target).await?;
        Ok(NoContent)
    }
}
